import { readFileSync } from 'node:fs'
import { type ApiHandler, createUi } from '../admin/admin.ts'
import type { CostPage, CostQuery } from '../backends/llm/catalog/price-list.ts'
import { recordsUrlOf } from '../backends/llm/lists/records-url.ts'
import { openSessionsOf } from '../backends/llm/realtime/open-sessions.ts'
import { type BudgetRequest, readBudgetsOf } from '../config/budget-snapshot.ts'
import { readCostsOf } from '../config/cost-snapshot.ts'
import {
  type ExplainedRequest,
  explainRequest,
  type RequestExplanation,
} from '../config/inspection/explain-request.ts'
import { type GuardTest, type GuardTestResult, testGuards } from '../config/inspection/test-guards.ts'
import { readLimitsOf } from '../config/limit-snapshot.ts'
import { createCompileCache } from '../config/live/compile-cache.ts'
import { createLiveListeners, type LiveListeners } from '../config/live/listeners.ts'
import type { PreparedSnapshot } from '../config/live/live.ts'
import type { Environment } from '../config/load/environment.ts'
import { createProvenance } from '../config/load/provenance.ts'
import { inspectMcp, type McpAnswer, type McpQuestion } from '../config/mcp-inspection.ts'
import { admissionLimitsOf, upstreamLimitsOf } from '../config/process-limits.ts'
import type { Config } from '../config/schema.ts'
import { resourceOfEnvironment } from '../config/telemetry/exporter-environment.ts'
import { sensitiveHeadersOf } from '../config/telemetry/telemetry.ts'
import { parseYaml } from '../config/yaml/yaml.ts'
import type { BudgetReport } from '../ledger/budget-use.ts'
import { ledgerSettingsOf } from '../ledger/config.ts'
import type { LedgerSink } from '../ledger/sink.ts'
import type { Clock } from '../lib/clock.ts'
import type { CachedRows } from '../lib/planes/cached-rows.ts'
import type { ExchangeLeases } from '../lib/planes/lease-exchange.ts'
import type { BindableMemory } from '../lib/planes/memory.ts'
import type { CallObjectRecords } from '../lib/planes/object-records.ts'
import type { Peers } from '../lib/planes/peers.ts'
import type { ThreadPool } from '../lib/scheduling/thread-pool.ts'
import { createWorkQueue } from '../lib/scheduling/work-queue.ts'
import { type ConfigOriginKind, createEgressPolicies } from '../net/egress/policies.ts'
import { createGrpcClient } from '../net/grpc-client.ts'
import { defaultServerLimits, type PendingExchange } from '../net/http/incoming-request.ts'
import { createHttpClient } from '../net/http-client/http-client.ts'
import { createAdmission } from '../net/listener/admission.ts'
import type { ConnectionHandler, HttpHandler } from '../net/listener/connection-handler.ts'
import type { CompileContext } from '../pipeline/compile-context.ts'
import { createPipeline } from '../pipeline/pipeline.ts'
import { compileStandardAttributes } from '../pipeline/recording/standard-attributes.ts'
import type { Listener } from '../pipeline/snapshot.ts'
import { applyBudgetReport, budgetAccounts } from '../policies/budgets/accounts.ts'
import type { BudgetPage } from '../policies/budgets/snapshot.ts'
import { webhookLimits } from '../policies/guardrails/kinds/webhook/limits.ts'
import { type LimitSnapshot, noLimits } from '../policies/rate-limit/limit-snapshot.ts'
import { createChildProcesses } from '../process/child-process.ts'
import type { ProcessGuardian } from '../process/guardian.ts'
import type { PlaneObservation } from '../telemetry/live/observation.ts'
import type { LogSink } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics/metrics.ts'
import { createExporterSet } from '../telemetry/otlp/exporter-set.ts'
import { createActivation } from './activation.ts'
import type { OpenServer } from './open-server.ts'

/** Settings of a process that its data planes have in common: plain data. */
export type DataPlaneSettings = {
  settings: NonNullable<Config['config']>
  /** Source of the configuration, on which the permitted destinations depend. */
  origin: ConfigOriginKind
  env: Environment
  version: string
  /** Random key of the process, for values that only this process reads. */
  processKey: Uint8Array
}

export type DataPlaneOptions = DataPlaneSettings & {
  clock: Clock
  log: LogSink
  /** Undefined without a ledger. */
  ledger: LedgerSink | undefined
  metrics: Metrics
  /** Exchanges the use of shared limits for leases. */
  exchangeLeases: ExchangeLeases
  objectRecords: CallObjectRecords
  /** The response cache in the database. */
  cachedRows: CachedRows
  threads: ThreadPool
  memory: BindableMemory
  peers: Peers
  /** Kills programs after the end of the process. */
  guardian: ProcessGuardian
  openServer: OpenServer
  /** Port of the admin address, to which no connection may be made. */
  adminPort(): number
  /** The config resource API, for `ui` on gateways. */
  api: ApiHandler
}

/** Encoded metrics. The last batch of a process is sent without delay. */
export type MetricBatch = { readonly items: readonly Uint8Array[]; readonly isLast: boolean }

/**
 * Serves traffic: listeners, clients and child processes, and the context that configurations are compiled
 * with. Everything that it exchanges with the control plane is plain data.
 */
export type DataPlane = {
  /**
   * Compiles a configuration and opens new addresses. Throws `ConfigRejected`, or the error of an address;
   * then nothing has changed. One preparation at a time, each ended by `commit` or `abort`.
   */
  prepare(config: Config): Promise<PreparedSnapshot>
  /** Marks a part of later configurations as from the config API, with the egress policy of the API. */
  markApi(value: unknown): void
  /** Evicts the content of a file, and the results compiled from it. */
  evictFile(path: string): Promise<void>
  /** Sets the reason why no traffic may be served; undefined if it may. The initial reason is `listeners`. */
  setUnavailable(reason: string | undefined): Promise<void>
  /** Current state of the rate limits of the active configuration. */
  limits(): Promise<LimitSnapshot>
  /** Current state of the budgets of the active configuration. */
  budgets(request: BudgetRequest): Promise<BudgetPage>
  /** A page of the prices of the active configuration. */
  costs(query: CostQuery): Promise<CostPage>
  /** Explains the route of a request that a client could send. */
  explainRequest(request: ExplainedRequest): Promise<RequestExplanation>
  /** Runs guards on texts. Sent guards must be valid; their destinations are those of the config API. */
  testGuards(test: GuardTest): Promise<GuardTestResult>
  /** Expects reports on budgets from the database, which are unknown until then. */
  expectBudgets(): Promise<void>
  /** Applies the totals of budgets in the database. */
  reportBudgets(report: BudgetReport): Promise<void>
  /** Opens sessions at MCP targets for their lists, and evaluates rules on them. */
  inspectMcp(question: McpQuestion): Promise<McpAnswer>
  /** Sends metrics of the process to the collector of the active configuration. */
  exportMetrics(batch: MetricBatch): Promise<void>
  /** Figures and failures of each data plane; undefined for one that does not respond. */
  observe(): Promise<readonly (PlaneObservation | undefined)[]>
  /** Open addresses, as `host:port`. */
  addresses(): readonly string[]
  /** Ends each HTTP/1 connection with its next response; continues to accept. */
  announceDrain(): void
  /** Stops accepting; resolves after the last request and the reports that follow it. */
  drain(): Promise<void>
  /** Aborts the remaining requests. */
  abortRequests(): void
  /** Kills child processes without a grace period. */
  killChildren(): void
  close(): Promise<void>
}

const connectTimeoutMs = 10_000
const upstreamKeepAliveMs = 60_000
/** Models compute for minutes before the first byte of an unstreamed response. */
const firstByteTimeoutMs = 600_000
const idleTimeoutMs = 300_000

/** Programs of stdio targets alive at the same time, one for each session at each target. */
const maxChildren = 5_000
const childCloseGraceMs = 1_000
const childTerminateGraceMs = 2_000

export function createDataPlane(options: DataPlaneOptions): DataPlane {
  const { settings, env, version, clock, log, metrics, threads } = options
  const availability: Availability = { reason: 'listeners' }
  const policies = createEgressPolicies({
    adminPort: options.adminPort,
    allowsMetadata: settings.storage?.allowMetadataAddresses === true,
    allowsMachineIdentity:
      settings.storage?.allowMachineIdentity === true || env['ALLOW_MACHINE_IDENTITY'] === 'true',
    allowsFileCredentials: settings.storage?.allowFileCredentials === true,
    fileIsWritable: (settings.storage?.mode ?? 'file') === 'file',
    origin: options.origin,
  })
  const provenance = createProvenance()
  const client = createHttpClient({
    memory: options.memory,
    peers: options.peers,
    egress: policies.file,
    ...upstreamLimitsOf(settings.limits ?? {}),
    calls: metrics.admission('upstream_calls'),
    connectTimeoutMs,
    keepAliveMs: upstreamKeepAliveMs,
    firstByteTimeoutMs,
    idleTimeoutMs,
  })
  const grpc = createGrpcClient()
  const exporters = createExporterSet()
  const children = createChildProcesses({
    // Programs must not receive the keys that seal session ids and cookies.
    environment: { ...env, SESSION_KEY: undefined, OIDC_COOKIE_SECRET: undefined },
    guardian: options.guardian,
    maxChildren,
    closeGraceMs: childCloseGraceMs,
    terminateGraceMs: childTerminateGraceMs,
  })
  const cache = createCompileCache((path) => readFileSync(path, 'utf8'))
  const context: CompileContext = {
    clock,
    random: Math.random,
    exchangeLeases: options.exchangeLeases,
    objectRecords: recordsUrlOf(settings) === undefined ? undefined : options.objectRecords,
    cachedRows: options.cachedRows,
    send: client.send,
    egress: {
      of: (node) => (provenance.isFromApi(node) ? policies.api : policies.file),
      document: policies.document,
    },
    grpc,
    log,
    metrics,
    exporters,
    spawn: children.spawn,
    parseYaml,
    threads,
    workQueue: createWorkQueue(clock),
    memory: options.memory,
    peers: options.peers,
    processKey: options.processKey,
    environment: env,
    ...cache,
  }
  // Retained without a configuration, because totals may arrive before it.
  const accounts = budgetAccounts(context)
  const realtime = openSessionsOf(context)
  const listeners = createListeners(options, availability)
  const facts = {
    version,
    sessionKey: env['SESSION_KEY'],
    loginSecrets: env['OIDC_COOKIE_SECRET'] || undefined,
    webhooks: webhookLimits(env),
    resource: resourceOfEnvironment(env),
    labels: settings.metrics?.fields?.add,
    ui: createUi(options.api),
  }
  const activation = createActivation({ context, cache, facts, listeners, bind: options.memory.bind })

  return {
    prepare: activation.prepare,
    markApi: provenance.markApi,
    async evictFile(path) {
      activation.evictFile(path)
    },
    async setUnavailable(reason) {
      availability.reason = reason
    },
    async limits() {
      const { config } = activation
      return config ? readLimitsOf(config, context) : noLimits
    },
    budgets: (request) => readBudgetsOf(activation.config, context, request),
    async costs(query) {
      return readCostsOf(activation.config, context, query)
    },
    async explainRequest(request) {
      const { config = {} } = activation
      return explainRequest(request, config, (port) => {
        const key = listeners.addresses().find((address) => address.endsWith(`:${port}`))
        return key === undefined ? undefined : listeners.find(key)
      })
    },
    testGuards(test) {
      if (test.guards !== undefined) provenance.markApi(test.guards)
      return testGuards(test, { config: activation.config ?? {}, context, limits: facts.webhooks })
    },
    async expectBudgets() {
      await options.memory.bind()
      accounts.expectReports()
    },
    async reportBudgets(report) {
      await options.memory.bind()
      applyBudgetReport(accounts, report, clock)
    },
    inspectMcp: (question) => inspectMcp(activation.config, context, question, version),
    async exportMetrics({ items, isLast }) {
      const { metricExport } = activation
      for (const item of items) metricExport?.add(item)
      if (isLast) await metricExport?.flush()
    },
    async observe() {
      const { live, conditions, activeRequests } = metrics
      const connections = listeners.connections()
      return [
        {
          ...{ counts: live.counts(), conditions: conditions.current() },
          ...{ activeRequests: activeRequests(), connections },
        },
      ]
    },
    addresses: listeners.addresses,
    announceDrain: listeners.announceDrain,
    async drain() {
      realtime.drainAll()
      await listeners.drain()
      // The usage of the last requests is reported after them.
      await grpc.drain()
      await exporters.flush()
    },
    abortRequests: listeners.close,
    killChildren: children.killAll,
    async close() {
      listeners.close()
      grpc.close()
      threads.close()
      await Promise.all([children.close(), client.close()])
    },
  }
}

/** Reason why no traffic may be served; undefined if it may. */
type Availability = { reason: string | undefined }

function createListeners(
  { settings, clock, log, ledger, metrics, memory, openServer }: DataPlaneOptions,
  availability: Availability,
): LiveListeners {
  const unrouted = metrics.route('')
  const unavailable = () => availability.reason
  const { explain, attributes: expressions = {} } = ledgerSettingsOf(settings) ?? {}
  const recording = {
    ledger,
    explain,
    attributes: compileStandardAttributes(expressions, sensitiveHeadersOf(settings)),
  }
  const admission = createAdmission(admissionLimitsOf(settings.limits ?? {}), metrics.admission, memory)
  const pipelines = new Map<string, HttpHandler['handle']>()
  const listeners = createLiveListeners((opened) => {
    const { key, host, port } = opened
    return openServer({
      host,
      port,
      clock,
      limits: defaultServerLimits,
      admission,
      // A connection may arrive before the commit of the snapshot that opened the address.
      serve: () => handlerOf(listeners.find(key) ?? opened),
    })
  })
  return listeners

  function handlerOf(listener: Listener): ConnectionHandler | undefined {
    const { kind, key, tls, isProxy, rules, proxyProtocol, settings } = listener
    const address = { tls, isProxy, rules, proxyProtocol, settings }
    if (kind === 'http') return { kind, ...address, handle: pipelineOf(key) }
    if (availability.reason !== undefined) return undefined
    if (kind === 'connect') return { kind, ...address, ...connectHandling(key) }
    const { readsServerName = false, connect } = listener
    return { kind, ...address, readsServerName, connect }
  }

  function pipelineOf(key: string): HttpHandler['handle'] {
    const known = pipelines.get(key)
    if (known !== undefined) return known
    const handle = createPipeline({
      listener: () => listeners.find(key),
      log,
      clock,
      unrouted,
      unavailable,
      live: metrics.live,
      ...recording,
    })
    pipelines.set(key, handle)
    return handle
  }

  function connectHandling(listener: string) {
    return {
      handle: refuseOtherMethods,
      listenerAt(port: number) {
        const key = listeners.keyOfPort(port)
        if (key === undefined) return undefined
        return () => {
          const found = listeners.find(key)
          return found && handlerOf(found)
        }
      },
      refused(client: string, port: number) {
        const refusedBy = `CONNECT: no listener for port ${port}`
        log.info({ listener, client, outcome: 'refused', refusedBy }, 'connection')
      },
    }
  }
}

const onlyConnect = 'this port accepts CONNECT requests only'

function refuseOtherMethods(): PendingExchange {
  const headers = { 'content-type': 'text/plain; charset=utf-8', allow: 'CONNECT' }
  const reply = { status: 405, headers, body: Buffer.from(onlyConnect) }
  return { reply: Promise.resolve(reply), end() {} }
}
