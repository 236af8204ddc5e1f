import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { type ApiHandler, createAdmin, createUi } from './admin/admin.ts'
import { withLimits } from './admin/limits.ts'
import { createReadiness, createStats } from './admin/probes.ts'
import { createDocumentTask, documentTask } from './backends/mcp/targets/openapi/document-task.ts'
import { compileConfig, type ProcessFacts } from './config/compile.ts'
import { readLimitsOf } from './config/limits.ts'
import { createCompileCache } from './config/live/compile-cache.ts'
import { createFileSource } from './config/live/file-source.ts'
import { createLiveListeners } from './config/live/listeners.ts'
import { ConfigRejected, type ConfigSource, createLiveConfig, reasonsOf } from './config/live/live.ts'
import { watchUsedFiles } from './config/live/used-files.ts'
import { watchFile } from './config/live/watch.ts'
import { readConfigFile, rereadConfigFile } from './config/load/config-file.ts'
import type { Environment } from './config/load/environment.ts'
import { formatChecks } from './config/load/formats.ts'
import { formatIssue, loadConfigText } from './config/load/load.ts'
import { checkNamedFiles } from './config/load/named-files.ts'
import { createProvenance } from './config/load/provenance.ts'
import type { createWorkerTasks } from './config/load/worker-task.ts'
import { writeFileAtomically } from './config/load/write-file.ts'
import { admissionLimitsOf, upstreamLimitsOf } from './config/process-limits.ts'
import { type Config, checkConfig, configJsonSchema, configSchema } from './config/schema.ts'
import { parseYaml } from './config/yaml/yaml.ts'
import { parseHostPort } from './lib/address/host-port.ts'
import { systemClock } from './lib/clock.ts'
import { longestTimerMs, parseDuration } from './lib/duration.ts'
import type { PoolTasks, ThreadPool } from './lib/scheduling/thread-pool.ts'
import { createWorkQueue } from './lib/scheduling/work-queue.ts'
import { createYieldPoint } from './lib/scheduling/yielding.ts'
import { messageOf } from './lib/thrown.ts'
import { anywhere } from './net/egress/egress.ts'
import { createEgressPolicies } from './net/egress/policies.ts'
import { createGrpcClient } from './net/grpc-client.ts'
import { defaultServerLimits, type IncomingRequest } from './net/http/incoming-request.ts'
import { createHttpClient } from './net/http-client/http-client.ts'
import type { Reply } from './net/http-client/send.ts'
import { createAdmission, defaultAdmissionLimits } from './net/listener/admission.ts'
import type { ConnectionHandler, HttpHandler } from './net/listener/connection-handler.ts'
import { type ListeningServer, listen } from './net/listener/listener.ts'
import type { CompileContext } from './pipeline/compile-context.ts'
import { createPipeline } from './pipeline/pipeline.ts'
import type { Listener } from './pipeline/snapshot.ts'
import { createSearchTask, searchTask } from './policies/guardrails/kinds/regex/task.ts'
import { webhookLimits } from './policies/guardrails/kinds/webhook/limits.ts'
import { runWriteBack, writeBackTask } from './policies/guardrails/write-back.ts'
import { createChildProcesses } from './process/child-process.ts'
import { createConfigApi } from './resources/api/api.ts'
import { editFile } from './resources/file/file-edit.ts'
import { createExpand } from './resources/hybrid/expand.ts'
import { openResources } from './resources/open.ts'
import type { LogLevel, ProcessLog } from './telemetry/log.ts'
import { createMetrics } from './telemetry/metrics.ts'

export type AppOptions = {
  file: string
  env: Environment
  version: string
  log: ProcessLog
  /** Runs one of `tasks` on the worker thread. */
  runTask: ReturnType<typeof createWorkerTasks<typeof tasks>>
  /** Runs `poolTasks`; closed with the app. */
  threads: ThreadPool
}

export type App = {
  /** Kills the programs of stdio targets at once: for a process that must end now. */
  killChildren(): void
  /** Finishes what is under way up to the deadline, then closes everything. */
  stop(): Promise<void>
}

const connectTimeoutMs = 10_000
const upstreamKeepAliveMs = 60_000
/** Models think for minutes before the first byte of an unstreamed answer. */
const firstByteTimeoutMs = 600_000
const idleTimeoutMs = 300_000

/** Programs of stdio targets alive at once, one for each session at each target. */
const maxChildren = 5_000
const childCloseGraceMs = 1_000
const childTerminateGraceMs = 2_000

/** Connections to the admin, metrics and readiness addresses together. */
const fixedLimits = { ...defaultAdmissionLimits, maxConnections: 1_000, maxConnectionsPerClient: 500 }
const defaultAdminAddress = '127.0.0.1:15000'
const defaultStatsAddress = '[::]:15020'
const defaultReadinessAddress = '[::]:15021'
const defaultTerminationDeadline = '25s'
/** For what is told of requests that the deadline cuts off. */
const cutRequestsMs = 1_000
const restartNeeded = 'a change of config.* takes effect after a restart'

/** Everything `--validate-only` looks at: the text, the environment, the files it names, and that it compiles. No network, no ports. */
export async function validateConfigFile(
  file: string,
  env: Environment,
  warn: (line: string) => void = () => {},
): Promise<Config> {
  const config = configOf(loadConfig({ text: readConfigFile(file), file, env }))
  const context: CompileContext = {
    clock: systemClock,
    random: Math.random,
    send: () => Promise.reject(new Error('no network while validating')),
    grpc: createGrpcClient(),
    log: { debug() {}, info() {}, warn: (fields, message) => warn(warningLine(fields, message)), error() {} },
    egress: { of: () => anywhere, document: anywhere },
    metrics: createMetrics(),
    spawn: () => {
      throw new Error('no processes while validating')
    },
    parseYaml,
    threads: {
      run: () => Promise.reject(new Error('no threads while validating')),
      close() {},
    },
    workQueue: createWorkQueue(systemClock),
    ...createCompileCache((path) => readFileSync(path, 'utf8')),
  }
  await compileConfig(config, context, {
    version: '',
    sessionKey: env['SESSION_KEY'],
    webhooks: webhookLimits(env),
    ui: nothing,
  }).catch((error: unknown) => {
    throw new ConfigRejected([messageOf(error)])
  })
  return config
}

function warningLine(fields: object, message: string): string {
  const details = Object.entries(fields).map(([name, value]) => `${name}: ${value}`)
  return `warning: ${message} (${details.join(', ')})`
}

/** Starts the gateway; throws `ConfigRejected` or the error of a port that cannot be opened, with nothing left open. */
export async function startApp(options: AppOptions): Promise<App> {
  const { file, env, version, log } = options
  const clock = systemClock
  const metrics = createMetrics()
  const text = readConfigFile(file)
  const readText = async (text: string) => {
    const request = { text, file, env }
    return configOf(isSmall(text) ? loadConfig(request) : await options.runTask('load', request))
  }
  const source = createFileSource({
    first: await readText(text),
    read: readText,
    yieldPoint: createYieldPoint(clock),
  })
  const settings = source.current.config ?? {}
  log.setLevel(logLevelOf(source.current))
  const { storage } = settings
  let adminPort = 0
  const policies = createEgressPolicies({
    adminPort: () => adminPort,
    allowsMetadata: storage?.allowMetadataAddresses === true,
    fileIsWritable: (storage?.mode ?? 'file') === 'file',
  })
  const provenance = createProvenance()
  const client = createHttpClient({
    egress: policies.file,
    ...upstreamLimitsOf(settings.limits ?? {}),
    calls: metrics.admission('upstream_calls'),
    connectTimeoutMs,
    keepAliveMs: upstreamKeepAliveMs,
    firstByteTimeoutMs,
    idleTimeoutMs,
  })
  const grpc = createGrpcClient()
  const children = createChildProcesses({
    // The key that seals session ids is nobody else's.
    environment: { ...env, SESSION_KEY: undefined },
    maxChildren,
    closeGraceMs: childCloseGraceMs,
    terminateGraceMs: childTerminateGraceMs,
  })
  /** Asked only once everything below is there. */
  const api: ApiHandler = withLimits(
    async () => (running.config ? readLimitsOf(running.config, context) : { local: [], global: [] }),
    (request) => configApi(request),
  )
  const facts: ProcessFacts = {
    version,
    sessionKey: env['SESSION_KEY'],
    webhooks: webhookLimits(env),
    ui: createUi(api),
  }
  const cache = createCompileCache((path) => readFileSync(path, 'utf8'))
  const workQueue = createWorkQueue(clock)
  const context: CompileContext = {
    clock,
    random: Math.random,
    send: client.send,
    egress: {
      of: (node) => (provenance.isFromApi(node) ? policies.api : policies.file),
      document: policies.document,
    },
    grpc,
    log,
    metrics,
    spawn: children.spawn,
    parseYaml,
    threads: options.threads,
    workQueue,
    ...cache,
  }
  const unrouted = metrics.route('')
  const listeners = createLiveListeners((opened) => {
    const { key, host, port } = opened
    const unavailable = () => resources.pending()
    const handle = createPipeline({ listener: () => listeners.find(key), log, clock, unrouted, unavailable })
    return listen({
      host,
      port,
      clock,
      limits: defaultServerLimits,
      admission,
      // A connection may come before the snapshot that opened the address is the one that runs.
      serve() {
        const listener = listeners.find(key) ?? opened
        return listener.kind === 'tcp' && unavailable() !== undefined
          ? undefined
          : servingOf(listener, handle)
      },
    }).catch((error: unknown) => {
      throw describeListenError(error, host, port)
    })
  })
  const admission = createAdmission(admissionLimitsOf(settings.limits ?? {}), metrics.admission)
  // Apart from the others, so that clients who occupy every place cannot hide that they do.
  const fixedAdmission = createAdmission(fixedLimits, (resource) => metrics.admission(`admin_${resource}`))
  let stopping = false
  const fixed: ListeningServer[] = []

  const usedFiles = watchUsedFiles({
    onChange(path) {
      void running.exclusive(() => recompile(path))
    },
    onError: (path, error) =>
      log.warn({ file: path, reason: messageOf(error) }, 'a file of the configuration cannot be read'),
  })
  const running = createLiveConfig({
    context,
    cache,
    facts,
    listeners,
    onCommit(config, files) {
      log.setLevel(logLevelOf(config))
      usedFiles.watch(files)
    },
    onStatus: ({ synchronized }) => metrics.configSynchronized(synchronized),
  })

  const resources = await openResources(settings, {
    host: {
      ...running,
      markApi: provenance.markApi,
      report: (lastError) => running.report('resources', lastError),
      reportDatabase(lastError) {
        metrics.configDatabase(lastError === undefined)
        running.report('database', lastError)
      },
    },
    file: {
      read: () => rereadConfigFile(file),
      async edit(plain) {
        const request = { ...plain, env, allowedEnv: settings.storage?.allowedEnv ?? [] }
        return isSmall(plain.text) ? editFile(request) : await options.runTask('edit', request)
      },
      load: source.load,
      write: (next, expected) => writeFileAtomically(file, next, { expected }),
      written(_text, config) {
        if (source.accept(config)) log.warn({}, restartNeeded)
      },
    },
    environment: env,
    randomUuid: randomUUID,
    clock,
    log,
  })
  const configApi = createConfigApi({
    workQueue,
    resources,
    allowances: settings.storage ?? {},
    expand: createExpand(settings.storage?.allowedEnv ?? [], env),
    status: () => running.status,
    schema: configJsonSchema(),
    version,
    log,
    flushLog: log.flush,
    yieldPoint: createYieldPoint(clock),
  })

  /** The same configuration, with what the file of this path holds now. */
  async function recompile(path: string): Promise<void> {
    if (stopping) return
    cache.evictFile(path)
    try {
      await resources.reapply()
      log.info(
        { revision: running.status.revision, file: path },
        'configuration compiled again for a changed file',
      )
    } catch (error) {
      reject('namedFiles', error)
    }
  }

  /** Reads the file now: since it was seen to change, the API may have written to it. */
  async function reload(): Promise<void> {
    if (stopping) return
    try {
      const next = await source.load(await rereadConfigFile(file))
      if (next === source.current) {
        running.report('file', undefined)
        if (!running.status.synchronized) await resources.reapply()
        log.debug({ file }, 'configuration unchanged')
        return
      }
      await resources.useFile(next)
      running.report('file', undefined)
      if (source.accept(next)) log.warn({}, restartNeeded)
      log.info({ revision: running.status.revision }, 'configuration reloaded')
    } catch (error) {
      reject('file', error)
    }
  }

  function reject(from: ConfigSource, error: unknown): void {
    const reasons = reasonsOf(error)
    running.report(from, reasons.join('\n'))
    for (const reason of reasons)
      log.error({ reason }, 'configuration rejected, the previous one keeps running')
  }

  function pending(): string[] {
    if (stopping) return ['shutdown']
    if (running.status.revision === 0) return ['listeners']
    return [resources.pending()].flatMap((missing) => missing ?? [])
  }

  async function openFixed(address: string, answer: (request: IncomingRequest) => Reply | Promise<Reply>) {
    const { host, port } = parseHostPort(address) ?? { host: '', port: 0 }
    const serving: ConnectionHandler = {
      kind: 'http',
      tls: undefined,
      handle: (request) => ({ reply: Promise.resolve(answer(request)), end() {} }),
    }
    const server = await listen({
      host,
      port,
      clock,
      limits: defaultServerLimits,
      admission: fixedAdmission,
      serve: () => serving,
    }).catch((error: unknown) => {
      throw describeListenError(error, host, port)
    })
    fixed.push(server)
    return server
  }

  async function closeAll(): Promise<void> {
    usedFiles.close()
    listeners.close()
    for (const server of fixed) server.close()
    grpc.close()
    options.threads.close()
    await Promise.all([children.close(), client.close(), resources.close()])
  }

  try {
    const admin = await openFixed(
      settings.adminAddr ?? defaultAdminAddress,
      createAdmin({ port: () => adminPort, api }),
    )
    adminPort = admin.port
    await openFixed(settings.statsAddr ?? defaultStatsAddress, createStats(metrics))
    await openFixed(settings.readinessAddr ?? defaultReadinessAddress, createReadiness(pending))
    await running.exclusive(() => resources.useFile(source.current))
  } catch (error) {
    await closeAll()
    throw error
  }

  log.info({ version, listeners: listeners.addresses() }, 'serving')

  const watcher = watchFile(file, {
    text,
    onChange: () => void running.exclusive(reload),
    onError: (error) => {
      running.report('file', messageOf(error))
      log.error(
        { reason: messageOf(error) },
        'the configuration file cannot be read, the previous one keeps running',
      )
    },
  })

  return {
    killChildren: children.killAll,
    async stop() {
      stopping = true
      watcher.close()
      usedFiles.close()
      const deadlineMs =
        parseDuration(settings.connectionTerminationDeadline ?? defaultTerminationDeadline) ?? 0
      // Changes that were asked for are answered, but a database that hangs keeps nobody from ending.
      const changes = resources.idle()
      // What the last requests used is reported after them.
      const drained = listeners.drain().then(grpc.drain)
      await atMost(Promise.all([drained, changes]), Math.min(deadlineMs, longestTimerMs))
      // Requests that are cut off now have used tokens too, and their log lines are still to be written.
      listeners.close()
      await atMost(drained, cutRequestsMs)
      await closeAll()
      await log.flush()
    },
  }
}

/** Waits for work, but no longer than so many milliseconds. */
async function atMost(work: Promise<unknown>, ms: number): Promise<void> {
  const over = Promise.withResolvers<void>()
  const timer = setTimeout(over.resolve, ms)
  try {
    await Promise.race([work, over.promise])
  } finally {
    clearTimeout(timer)
  }
}

/** Reading a text of this length takes some ten milliseconds, starting a thread for it half a second. */
const maxSmallText = 32 * 1024

function isSmall(text: string): boolean {
  return text.length <= maxSmallText
}

/** What takes so long for a large file that traffic would notice. */
export const tasks = { load: loadConfig, edit: editFile }

/** Work of single requests that would stop the event loop. Called once in each thread of the pool. */
export const poolTasks = (): PoolTasks => ({
  [searchTask]: createSearchTask(),
  [writeBackTask]: runWriteBack,
  [documentTask]: createDocumentTask(parseYaml),
})

type LoadRequest = { text: string; file: string; env: Environment }

/** What a text turned out to be; issues are lines for a person. */
type LoadOutcome = { kind: 'config'; config: Config } | { kind: 'issues'; issues: string[] }

/** Reads a configuration text and checks it, with the files that it names. */
function loadConfig({ text, file, env }: LoadRequest): LoadOutcome {
  const result = loadConfigText({
    text,
    file,
    env,
    schema: configSchema,
    checks: [checkConfig, checkNamedFiles],
    formats: formatChecks,
  })
  if (result.kind === 'issues') return { kind: 'issues', issues: result.issues.map(formatIssue) }
  return { kind: 'config', config: result.config }
}

function configOf(outcome: LoadOutcome): Config {
  if (outcome.kind === 'issues') throw new ConfigRejected(outcome.issues)
  return outcome.config
}

function logLevelOf({ config }: Config): LogLevel {
  return config?.logging?.level ?? 'info'
}

function servingOf(listener: Listener, handle: HttpHandler['handle']): ConnectionHandler {
  const { tls, isProxy } = listener
  if (listener.kind === 'http') return { kind: 'http', tls, isProxy, handle }
  const { readsServerName = false, connect } = listener
  return { kind: 'tcp', tls, isProxy, readsServerName, connect }
}

/** While validating nobody asks. */
function nothing(): Reply {
  return { status: 503, headers: {}, body: undefined }
}

function describeListenError(error: unknown, host: string, port: number): Error {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  const address = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
  if (code === 'EADDRINUSE')
    return new Error(`cannot listen on ${address}: the port is in use by another process`)
  if (code === 'EACCES')
    return new Error(`cannot listen on ${address}: not allowed; ports below 1024 need privileges`)
  if (code === 'EADDRNOTAVAIL')
    return new Error(`cannot listen on ${address}: this machine has no such address`)
  return new Error(`cannot listen on ${address}: ${messageOf(error)}`, { cause: error })
}
