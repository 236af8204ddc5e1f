import { existsSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { parseArgs } from 'node:util'
import { parentPort, Worker, workerData } from 'node:worker_threads'
import { poolTasks, startApp, tasks, validateConfigFile } from './app.ts'
import { reasonsOf } from './config/live/live.ts'
import { createDefaultFile, defaultFilePath } from './config/load/default-file.ts'
import { createWorkerTasks, serveWorkerTasks, workerIdleMs } from './config/load/worker-task.ts'
import { configJsonSchema } from './config/schema.ts'
import { systemClock } from './lib/clock.ts'
import { keepTickShape } from './lib/scheduling/keep-tick-shape.ts'
import { releaseMemory } from './lib/scheduling/release-memory.ts'
import { createThreadPool, serveTasks } from './lib/scheduling/thread-pool.ts'
import { createYieldPoint } from './lib/scheduling/yielding.ts'
import { messageOf } from './lib/thrown.ts'
import { createLog, type LogSink } from './telemetry/log.ts'

const usage = `Tollgate, a gateway between clients and MCP servers and LLM providers.

Usage:
  tollgate [-f FILE]                    run with a configuration file
  tollgate --validate-only [-f FILE]    check the file, open nothing, and exit
  tollgate schema                       print the JSON Schema of the configuration file

Options:
  -f, --file FILE        configuration file (YAML); without it ~/.config/tollgate/config.yaml,
                         which is created where it does not exist
      --validate-only    only check the configuration
  -V, --version          print the version
  -h, --help             print this text
`

const poolThread = 'pool'
/** Threads for large work of single requests, and the work that may wait for them. */
const poolLimits = { maxThreads: 2, maxQueued: 64, maxQueuedBytes: 256 * 1024 * 1024, idleMs: 60_000 }

const taskThread = 'tasks'
/** One thread: changes of the configuration come one after another. */
const taskLimits = { maxThreads: 1, maxQueued: 64, maxQueuedBytes: 0, idleMs: workerIdleMs }

// The same file is the thread that tasks run on, so that the package stays one file.
if (parentPort && workerData === poolThread) serveTasks(parentPort, poolTasks())
else if (parentPort) serveWorkerTasks(parentPort, tasks, releaseMemory)
else void main(process.argv.slice(2))

async function main(argv: string[]): Promise<void> {
  const args = readArguments(argv)
  if (args.kind === 'mistake') return fail([args.message, 'Try tollgate --help.'])
  switch (args.kind) {
    case 'help':
      print(usage)
      return
    case 'version':
      print(`tollgate ${version()}\n`)
      return
    case 'schema':
      print(`${JSON.stringify(configJsonSchema(), null, 2)}\n`)
      return
    case 'validate':
      return validate(args.file)
    case 'run':
      return run(args.file)
  }
}

type Arguments =
  | { kind: 'mistake'; message: string }
  | { kind: 'help' | 'version' | 'schema' }
  /** Without a file the default one. */
  | { kind: 'validate' | 'run'; file: string | undefined }

function readArguments(argv: string[]): Arguments {
  try {
    const { values, positionals } = parseArgs({
      args: argv,
      allowPositionals: true,
      options: {
        file: { type: 'string', short: 'f' },
        'validate-only': { type: 'boolean' },
        version: { type: 'boolean', short: 'V' },
        help: { type: 'boolean', short: 'h' },
      },
    })
    if (values.help) return { kind: 'help' }
    if (values.version) return { kind: 'version' }
    const [command, ...rest] = positionals
    if (command === 'schema' && rest.length === 0) return { kind: 'schema' }
    if (command !== undefined) return { kind: 'mistake', message: `unknown command "${command}"` }
    // A variable of a shell that is not set: not the same as no -f at all.
    if (values.file === '')
      return { kind: 'mistake', message: 'no configuration file: the name behind -f is empty' }
    return { kind: values['validate-only'] ? 'validate' : 'run', file: values.file }
  } catch (error) {
    return { kind: 'mistake', message: messageOf(error) }
  }
}

async function validate(named: string | undefined): Promise<void> {
  try {
    const warn = (line: string) => process.stderr.write(`${line}\n`)
    await validateConfigFile(named ?? existingDefaultFile(), process.env, warn)
    print('Configuration is valid!\n')
  } catch (error) {
    fail(reasonsOf(error))
  }
}

/** Checking makes no file. */
function existingDefaultFile(): string {
  const file = defaultFilePath(process.env, homedir())
  if (existsSync(file)) return file
  throw new Error(`no configuration file: give one with -f FILE, for there is no ${file} either`)
}

/** Says where it is, so that nobody has to look for what runs. */
function madeDefaultFile(log: LogSink): string {
  const file = defaultFilePath(process.env, homedir())
  const isNew = createDefaultFile(file)
  if (isNew) process.stderr.write(`created the configuration file ${file}\n`)
  log.info({ file, isNew }, 'no file was given with -f, the default one is used')
  return file
}

async function run(named: string | undefined): Promise<void> {
  keepTickShape()
  const log = createLog('info', 1)
  process.on('uncaughtException', (error) => {
    log.error({ err: error }, 'unexpected error, the process ends')
    log.flush().finally(() => process.exit(1))
  })
  try {
    const app = await startApp({
      file: named ?? madeDefaultFile(log),
      env: process.env,
      version: version(),
      log,
      runTask: createWorkerTasks(
        createThreadPool({ start: startThread(taskThread), ...taskLimits }),
        createYieldPoint(systemClock),
      ),
      threads: createThreadPool({ start: startThread(poolThread), ...poolLimits }),
    })
    process.on('exit', app.killChildren)
    stopOnSignal(app, log)
  } catch (error) {
    await log.flush()
    fail(reasonsOf(error))
    process.exit(1)
  }
}

function startThread(kind: string): () => Worker {
  return () => new Worker(new URL(import.meta.url), { workerData: kind, execArgv: [], env: {} })
}

/** The first signal ends gracefully, a second one at once. */
function stopOnSignal(app: { stop(): Promise<void> }, log: { flush(): Promise<void> }): void {
  let stopping = false
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (stopping) {
        log.flush().finally(() => process.exit(0))
        return
      }
      stopping = true
      app.stop().then(() => process.exit(0))
    })
  }
}

/** Writes the result of a command. A reader such as `head` may close the pipe early, which is no error. */
function print(text: string): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
  })
  process.stdout.write(text)
}

function fail(lines: readonly string[]): void {
  process.stderr.write(`${lines.join('\n')}\n`)
  process.exitCode = 1
}

/** Beside the source in a checkout, beside the bundle in the package: both are one folder below package.json. */
function version(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
  const parsed: unknown = JSON.parse(text)
  return typeof parsed === 'object' && parsed !== null && 'version' in parsed
    ? String(parsed.version)
    : 'unknown'
}
