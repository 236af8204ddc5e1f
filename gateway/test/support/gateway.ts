import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { endAfter, type Lifetime } from './cleanup.ts'
import { freePorts } from './free-port.ts'
import { until, within } from './wait.ts'

/** The real gateway process, on ports and files of its own. */
export type Gateway = {
  /** `http://127.0.0.1:PORT` of the LLM listener; SDKs take it with `/v1` behind it. */
  url: string
  port: number
  mcpPort: number
  /** `http://127.0.0.1:PORT/mcp` of the MCP listener. */
  mcpUrl: string
  adminPort: number
  statsPort: number
  readinessPort: number
  child: ChildProcess
  /** The config file it runs. */
  file: string
  stdout(): string
  stderr(): string
  /** Lines of the access log so far. */
  requests(): AccessLine[]
  /** The access log lines once there are so many. */
  logged(count: number): Promise<AccessLine[]>
  /** Writes the file without waiting for anything. */
  write(config: GatewayConfig | string): void
  /** Writes the file and waits until the gateway runs it. */
  reload(config: GatewayConfig): Promise<void>
  status(): Promise<ConfigStatus>
  metrics(): Promise<string>
  /** Sends SIGTERM and waits for the end; fails when the process crashed. */
  stop(): Promise<Exit>
  /** Waits for the process to end by itself. */
  exited: Promise<Exit>
}

export type AccessLine = Record<string, unknown>
export type ConfigStatus = { synchronized: boolean; revision: number; appliedAt?: string; lastError?: string }
export type Exit = { code: number | null; signal: string | null }

/** A config without addresses: ports and `config.*Addr` are filled in. */
export type GatewayConfig = {
  config?: Record<string, unknown>
  llm?: Record<string, unknown>
  mcp?: Record<string, unknown>
  ui?: Record<string, unknown>
  frontendPolicies?: Record<string, unknown>
  gateways?: Record<string, unknown>
  routes?: readonly Record<string, unknown>[]
  tcpRoutes?: readonly Record<string, unknown>[]
  backends?: readonly Record<string, unknown>[]
  routeGroups?: readonly Record<string, unknown>[]
  binds?: readonly Record<string, unknown>[]
}

export type GatewayOptions = {
  lifetime?: Lifetime
  env?: Record<string, string>
  /** Of the MCP listener, where it has to be known beforehand. */
  mcpPort?: number
  /** Further arguments of the command line. */
  args?: readonly string[]
  /** Flags of the runtime. */
  nodeFlags?: readonly string[]
  /** Largest file that the process may write, in units of 512 bytes or, in some shells, of 1024. */
  maxFileBlocks?: number
  /** The exit is part of the test: an early or unclean one is no failure. */
  mayCrash?: boolean
  /**
   * One that has ended: its file, as it is now, and its ports are taken over, and the given configuration is
   * not written.
   */
  again?: Gateway
  /** Condition to wait for; `admin` where readiness will not be reached. */
  awaits?: 'readiness' | 'admin'
}

/** Data planes of a gateway, unless its configuration states another number. */
const workerThreads = process.env['TOLLGATE_TEST_WORKERS'] ?? '1'

/** Program under test: the bundle of `bundle.ts`; the source without it, in a campaign of its own. */
const bundle = fileURLToPath(new URL('../../dist-test/tollgate.js', import.meta.url))
const source = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const entry = process.env['TOLLGATE_TEST_ENTRY'] ?? (existsSync(bundle) ? bundle : source)

/** Environment of campaigns and benchmarks: the program under test starts faster than the source. */
export const entryEnv = { ...process.env, TOLLGATE_TEST_ENTRY: entry }

/** Starts the gateway and waits until it is ready; it ends with the test at the latest. */
export async function startGateway(config: GatewayConfig, options: GatewayOptions = {}): Promise<Gateway> {
  const { again, awaits = 'readiness' } = options
  const file = again?.file ?? join(mkdtempSync(join(tmpdir(), 'tollgate-test-')), 'config.yaml')
  const folder = dirname(file)
  const [port = 0, adminPort = 0, statsPort = 0, readinessPort = 0, freeMcpPort = 0] = again
    ? [again.port, again.adminPort, again.statsPort, again.readinessPort, again.mcpPort]
    : await freePorts(5)
  const mcpPort = options.mcpPort ?? freeMcpPort
  const addresses = {
    bindAddress: '127.0.0.1',
    adminAddr: `127.0.0.1:${adminPort}`,
    statsAddr: `127.0.0.1:${statsPort}`,
    readinessAddr: `127.0.0.1:${readinessPort}`,
  }
  const textOf = (next: GatewayConfig) =>
    JSON.stringify(
      {
        ...next,
        config: { ...addresses, ...next.config },
        ...(next.llm && { llm: { port, ...next.llm } }),
        ...(next.mcp && { mcp: { port: mcpPort, ...next.mcp } }),
      },
      undefined,
      1,
    )
  if (!again) writeFileSync(file, textOf(config))

  const process = launch(['-f', file, ...(options.args ?? [])], { ...options, cwd: folder })
  const { child, exited } = process
  let stopping = false
  const gateway: Gateway = {
    url: `http://127.0.0.1:${port}`,
    port,
    mcpPort,
    mcpUrl: `http://127.0.0.1:${mcpPort}/mcp`,
    adminPort,
    statsPort,
    readinessPort,
    child,
    file,
    exited,
    stdout: process.stdout,
    stderr: process.stderr,
    requests: () => accessLines(process.stdout()),
    logged: (count) =>
      until(`${count} lines in the access log`, () => {
        const lines = accessLines(process.stdout())
        return lines.length >= count && lines
      }),
    // Rename-over, as careful tools do it: a half-written file would be a change of its own.
    write(next) {
      writeFileSync(`${file}.next`, typeof next === 'string' ? next : textOf(next))
      renameSync(`${file}.next`, file)
    },
    async reload(next) {
      const before = await gateway.status()
      gateway.write(next)
      await until('the new configuration is applied', async () => {
        const status = await gateway.status()
        if (status.lastError !== undefined && status.lastError !== before.lastError)
          throw new Error(`configuration rejected: ${status.lastError}`)
        return status.synchronized && status.revision > before.revision
      })
    },
    status: () => getJson<ConfigStatus>(`http://127.0.0.1:${adminPort}/api/config/status`),
    metrics: async () => (await fetch(`http://127.0.0.1:${statsPort}/metrics`)).text(),
    async stop() {
      stopping = true
      child.kill('SIGTERM')
      const exit = await within('the gateway ends after SIGTERM', exited, 30_000)
      if (exit.code !== 0 && !options.mayCrash) throw new Error(crash(exit, process))
      return exit
    },
  }
  endAfter(options.lifetime ?? 'test', async () => {
    try {
      const ended = child.exitCode !== null || child.signalCode !== null
      if (ended && !stopping && !options.mayCrash) throw new Error(crash(await exited, process))
      if (!ended) await endNow(child, exited)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })
  await until(
    'the gateway is ready',
    async () => {
      if (child.exitCode !== null) throw new Error(crash(await exited, process))
      const [asked, path] =
        awaits === 'readiness' ? [readinessPort, '/healthz/ready'] : [adminPort, '/api/config/status']
      // A refused connection costs a tenth of a failed fetch.
      if (!(await isOpen(asked))) return false
      const ready = await fetch(`http://127.0.0.1:${asked}${path}`).catch(() => undefined)
      return ready?.status === 200
    },
    45_000,
  )
  return gateway
}

export type RunResult = { code: number | null; stdout: string; stderr: string }

/** Runs the command line to its end. */
export async function runTollgate(
  args: readonly string[],
  options: { env?: Record<string, string>; cwd?: string } = {},
): Promise<RunResult> {
  const { child, exited, stdout, stderr } = launch(args, options)
  endAfter('test', () => {
    child.kill('SIGKILL')
  })
  const { code } = await within(`tollgate ${args.join(' ')} ends`, exited, 45_000)
  return { code, stdout: stdout(), stderr: stderr() }
}

export type Launched = { child: ChildProcess; exited: Promise<Exit>; stdout(): string; stderr(): string }

/** Starts the command line with an environment of its own. */
export function launch(
  args: readonly string[],
  options: Pick<GatewayOptions, 'env' | 'nodeFlags' | 'maxFileBlocks'> & { cwd?: string },
): Launched {
  const { PATH, HOME, TMPDIR, NODE_COMPILE_CACHE } = process.env
  // Hundreds of processes share one compile cache of the runtime.
  const compiled =
    NODE_COMPILE_CACHE === undefined || options.maxFileBlocks !== undefined ? {} : { NODE_COMPILE_CACHE }
  const command = [process.execPath, ...(options.nodeFlags ?? []), entry, ...args]
  // Where the signal is ignored, a write that is too large fails as one to a full disk does.
  const limit =
    options.maxFileBlocks === undefined
      ? []
      : ['/bin/sh', '-c', `trap "" XFSZ; ulimit -f ${options.maxFileBlocks}; exec "$@"`, 'sh']
  const [program = '', ...rest] = [...limit, ...command]
  const child = spawn(program, rest, {
    stdio: ['ignore', 'pipe', 'pipe'],
    cwd: options.cwd,
    env: { PATH, HOME, TMPDIR, WORKER_THREADS: workerThreads, ...compiled, ...options.env },
  })
  const output = { stdout: '', stderr: '' }
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    output.stdout += text
  })
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    output.stderr += text
  })
  // `close` and not `exit`: only then has all output arrived.
  const exited = new Promise<Exit>((resolve) =>
    child.once('close', (code, signal) => resolve({ code, signal })),
  )
  return { child, exited, stdout: () => output.stdout, stderr: () => output.stderr }
}

/** Whether a loopback port accepts connections. */
function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('error', () => resolve(false))
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
  })
}

/** A test that leaves a stream open would otherwise wait for the gateway's own deadline. */
async function endNow(child: ChildProcess, exited: Promise<Exit>): Promise<void> {
  child.kill('SIGTERM')
  const patience = setTimeout(() => child.kill('SIGKILL'), 1000)
  await exited
  clearTimeout(patience)
}

function crash(exit: Exit, { stdout, stderr }: Launched): string {
  const how = exit.signal ?? `exit code ${exit.code}`
  return `the gateway ended unexpectedly (${how})\n${stderr()}\n${stdout().slice(-3000)}`
}

/** A broken line would be a finding of its own, so nothing is skipped here. */
function accessLines(stdout: string): AccessLine[] {
  const complete = stdout.slice(0, stdout.lastIndexOf('\n') + 1)
  return complete
    .split('\n')
    .filter((line) => line !== '')
    .map((line): AccessLine => JSON.parse(line))
    .filter((line) => line['msg'] === 'request')
}

async function getJson<T>(url: string): Promise<T> {
  const response = await fetch(url)
  if (response.status !== 200) throw new Error(`${url}: ${response.status} ${await response.text()}`)
  const value: T = JSON.parse(await response.text())
  return value
}
