import { existsSync, readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { parseArgs } from 'node:util'
import { parentPort, Worker } from 'node:worker_threads'
import { type App, type AppOptions, startApp } from './app/app.ts'
import { createFileFeed } from './app/file-feed.ts'
import { createPoolTasks } from './app/pool-tasks.ts'
import { validateConfigFile } from './app/validate-file.ts'
import type { RunConfigTask } from './app/worker-tasks.ts'
import { reasonsOf } from './config/config-rejected.ts'
import { createDefaultFile, defaultFilePath } from './config/load/default-file.ts'
import { createWorkerTasks, workerIdleMs } from './config/load/worker-task.ts'
import { configJsonSchema } from './config/schema.ts'
import { systemClock } from './lib/clock.ts'
import { keepTickShape } from './lib/scheduling/keep-tick-shape.ts'
import { createThreadPool, serveTasks } from './lib/scheduling/thread-pool.ts'
import { createYieldPoint } from './lib/scheduling/yielding.ts'
import { messageOf } from './lib/thrown.ts'
import { createLog, createLogWriter, type LogSink } from './telemetry/log.ts'

const usage = `Tollgate, a gateway between clients and MCP servers and LLM providers.

Usage:
  tollgate [-f FILE]                    run with a configuration file
  tollgate --validate-only [-f FILE]    check the file and exit, without opening ports
  tollgate --manifests DIR [--gateway NAMESPACE/NAME]
                                        run a Gateway of Kubernetes manifests, without a cluster
  tollgate check DIR [--output json]    print the expected conditions of manifests
  tollgate schema                       print the JSON Schema of the configuration file
  tollgate controller [OPTIONS]         run the controller of a Kubernetes cluster
  tollgate proxy                        run a proxy of a Gateway in a Kubernetes cluster
  tollgate crds                         print the CustomResourceDefinitions for Kubernetes

Options:
  -f, --file FILE        configuration file (YAML); without it ~/.config/tollgate/config.yaml,
                         which is created if it does not exist; beside --manifests it has only
                         the section config
      --manifests DIR    folder with Kubernetes manifests, reloaded on changes
      --gateway NAME     Gateway of the manifests; not needed if there is only one
      --output FORMAT    text or json, of check
      --validate-only    only check the configuration
  -V, --version          print the version
  -h, --help             print this text
`

/** A single thread: changes of the configuration are sequential. */
const configWorkerLimits = { maxThreads: 1, maxQueued: 64, maxQueuedBytes: 0, idleMs: workerIdleMs }

/** Programs of threads: source in a checkout, bundles of their own in the package (scripts/build.ts). */
const configWorkerUrl = programUrl('./app/config-worker.ts', './config-worker.js')
const threadUrls = {
  dataPlane: programUrl('./workers/thread.ts', './data-plane.js'),
  pool: new URL(import.meta.url),
}
/** Files of the console: its own build in a checkout, copied beside the bundle in the package. */
const consoleFolder = programUrl('../../ui/dist/', './ui/')

// Kubernetes is loaded on demand: its schemas take 70 ms.

// The threads of the pool run this file too: their tasks share most code with the gateway.
if (parentPort) serveTasks(parentPort, createPoolTasks())
else void main(process.argv.slice(2))

async function main(argv: string[]): Promise<void> {
  if (argv[0] === 'controller') return runController(argv.slice(1))
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
    case 'crds': {
      const { crdYaml, ownCrds } = await import('./kubernetes/crd/own-crds.ts')
      print(ownCrds().map(crdYaml).join('---\n'))
      return
    }
    case 'validate':
      return validate(args.file)
    case 'check':
      return check(args)
    case 'manifests':
      return run(async (options) => {
        const { openManifestFeed } = await import('./app/manifests/manifests.ts')
        return startApp({ ...options, feed: await openManifestFeed({ ...args, ...options }) })
      })
    case 'proxy':
      return run(async (options) => {
        const { startProxy } = await import('./app/proxy/proxy.ts')
        return startProxy(options)
      })
    case 'run':
      return run((options) =>
        startApp({
          ...options,
          feed: createFileFeed({ ...options, file: args.file ?? ensureDefaultFile(options.log) }),
        }),
      )
  }
}

type Arguments =
  | { kind: 'mistake'; message: string }
  | { kind: 'help' | 'version' | 'schema' | 'crds' | 'proxy' }
  /** Undefined stands for the default file. */
  | { kind: 'validate' | 'run'; file: string | undefined }
  | ({ kind: 'check' } & CheckArguments)
  | { kind: 'manifests'; folder: string; gateway: string | undefined; settingsFile: string | undefined }

type CheckArguments = { folder: string; output: 'text' | 'json' }

function readArguments(argv: string[]): Arguments {
  try {
    const { values, positionals } = parseArgs({
      args: argv,
      allowPositionals: true,
      options: {
        file: { type: 'string', short: 'f' },
        'validate-only': { type: 'boolean' },
        manifests: { type: 'string' },
        gateway: { type: 'string' },
        output: { type: 'string' },
        version: { type: 'boolean', short: 'V' },
        help: { type: 'boolean', short: 'h' },
      },
    })
    if (values.help) return { kind: 'help' }
    if (values.version) return { kind: 'version' }
    const [command, ...rest] = positionals
    const isCommand = command === 'schema' || command === 'crds' || command === 'proxy'
    if (isCommand && rest.length === 0) return { kind: command }
    if (command === 'check') return readCheckArguments(rest, values.output)
    if (command !== undefined) return { kind: 'mistake', message: `unknown command "${command}"` }
    // An unset shell variable (`-f "$FILE"`) must not select the default file.
    if (values.file === '')
      return { kind: 'mistake', message: 'no configuration file: the name after -f is empty' }
    const { manifests: folder, gateway, file } = values
    if (folder === '')
      return { kind: 'mistake', message: 'no manifests: the name after --manifests is empty' }
    if (folder === undefined && gateway !== undefined)
      return { kind: 'mistake', message: '--gateway must follow --manifests DIR' }
    if (folder !== undefined && values['validate-only'])
      return { kind: 'mistake', message: `--validate-only is for files: run tollgate check ${folder}` }
    if (folder !== undefined) return { kind: 'manifests', folder, gateway, settingsFile: file }
    return { kind: values['validate-only'] ? 'validate' : 'run', file }
  } catch (error) {
    return { kind: 'mistake', message: messageOf(error) }
  }
}

function readCheckArguments(folders: readonly string[], output = 'text'): Arguments {
  const [folder, ...rest] = folders
  if (folder === undefined || folder === '' || rest.length > 0)
    return { kind: 'mistake', message: 'check must have one folder: tollgate check DIR' }
  if (output !== 'text' && output !== 'json')
    return { kind: 'mistake', message: '--output must be text or json' }
  return { kind: 'check', folder, output }
}

async function check({ folder, output }: CheckArguments): Promise<void> {
  try {
    const { checkManifests } = await import('./app/manifests/check-manifests.ts')
    const { text, isAccepted } = await checkManifests({ folder, output, env: process.env })
    print(text)
    if (!isAccepted) process.exitCode = 1
  } catch (error) {
    fail(reasonsOf(error))
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

/** The default file. Throws if it does not exist: validation creates no file. */
function existingDefaultFile(): string {
  const file = defaultFilePath(process.env, homedir())
  if (existsSync(file)) return file
  throw new Error(`no configuration file: ${file} does not exist; name one with -f FILE`)
}

/** The default file, created if it does not exist. Its path is logged. */
function ensureDefaultFile(log: LogSink): string {
  const file = defaultFilePath(process.env, homedir())
  const isNew = createDefaultFile(file)
  if (isNew) process.stderr.write(`created the configuration file ${file}\n`)
  log.info({ file, isNew }, 'default configuration file used')
  return file
}

type StartOptions = Omit<AppOptions, 'feed'>

/** Runs the gateway until a signal. */
async function run(start: (options: StartOptions) => Promise<App>): Promise<void> {
  keepTickShape()
  const log = createLog('info', createLogWriter(1))
  process.on('uncaughtException', (error) => {
    log.error({ err: error }, 'unexpected error, process exits')
    log.flush().finally(() => process.exit(1))
  })
  let app: App | undefined
  // Before the app exists too: the first process of a container ignores signals without a handler.
  stopOnSignal({ stop: () => (app === undefined ? log.flush() : app.stop()) }, log)
  try {
    const runTask: RunConfigTask = createWorkerTasks(
      createThreadPool({ start: () => startThread(configWorkerUrl), ...configWorkerLimits }),
      createYieldPoint(systemClock),
    )
    app = await start({
      env: process.env,
      version: version(),
      log,
      runTask,
      threadUrls,
      readSchema,
      consoleFolder,
      fail(error) {
        log.error({ err: error }, 'the gateway cannot continue, process exits')
        log.flush().finally(() => {
          fail(reasonsOf(error))
          process.exit(1)
        })
      },
    })
    process.on('exit', app.killChildren)
  } catch (error) {
    await log.flush()
    fail(reasonsOf(error))
    process.exit(1)
  }
}

async function runController(argv: string[]): Promise<void> {
  const log = createLog('info', createLogWriter(1))
  process.on('uncaughtException', (error) => {
    log.error({ err: error }, 'unexpected error, process exits')
    log.flush().finally(() => process.exit(1))
  })
  let app: { stop(): Promise<void> } | undefined
  // Before the start, which waits for the API server: nothing is written until it ends.
  stopOnSignal({ stop: () => (app === undefined ? log.flush() : app.stop()) }, log)
  try {
    const { readControllerSettings } = await import('./app/controller/options.ts')
    const { startControllerApp } = await import('./app/controller/controller.ts')
    const settings = readControllerSettings(argv, process.env)
    app = await startControllerApp({ settings, env: process.env, version: version(), log })
  } catch (error) {
    await log.flush()
    fail([messageOf(error)])
    process.exit(1)
  }
}

/**
 * The JSON Schema of the configuration file. A bundle has it in a file (scripts/bundle.ts): the conversion
 * blocks a thread for 200 ms, and few processes need it.
 */
async function readSchema(): Promise<object> {
  if (import.meta.url.endsWith('.ts')) return configJsonSchema()
  const schema: object = JSON.parse(await readFile(new URL('./config.schema.json', import.meta.url), 'utf8'))
  return schema
}

function programUrl(source: string, bundled: string): URL {
  return new URL(import.meta.url.endsWith('.ts') ? source : bundled, import.meta.url)
}

function startThread(url: URL): Worker {
  return new Worker(url, { execArgv: [], env: {} })
}

/** The first signal starts a graceful shutdown, a second one exits immediately. */
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

/** Writes the result of a command. Ignores a pipe that its reader closes early, such as `head`. */
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

/** The version in package.json, which is one folder above the source and the bundle. */
function version(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
  const parsed: unknown = JSON.parse(text)
  return typeof parsed === 'object' && parsed !== null && 'version' in parsed
    ? String(parsed.version)
    : 'unknown'
}
