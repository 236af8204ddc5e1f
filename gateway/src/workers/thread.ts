import { createHash } from 'node:crypto'
import { type MessagePort, parentPort, Worker, workerData } from 'node:worker_threads'
import type { CostQuery } from '../backends/llm/catalog/price-list.ts'
import type { BudgetRequest } from '../config/budget-snapshot.ts'
import type { ExplainedRequest } from '../config/inspection/explain-request.ts'
import type { GuardTest } from '../config/inspection/test-guards.ts'
import type { PreparedSnapshot } from '../config/live/live.ts'
import type { McpQuestion } from '../config/mcp-inspection.ts'
import type { Config } from '../config/schema.ts'
import { expositionOf } from '../config/telemetry/metrics-config.ts'
import { createDataPlane, type DataPlane, type MetricBatch } from '../data-plane/data-plane.ts'
import { openServer } from '../data-plane/open-server.ts'
import type { BudgetReport } from '../ledger/budget-use.ts'
import { createLedgerSender, type LedgerLines, type LedgerSender } from '../ledger/sender.ts'
import { systemClock } from '../lib/clock.ts'
import type { FoundRow } from '../lib/planes/cached-rows.ts'
import type { LeaseReplies } from '../lib/planes/lease-exchange.ts'
import type { FoundObjects } from '../lib/planes/object-records.ts'
import { deserializeChunks } from '../lib/scheduling/chunked-clone.ts'
import { keepTickShape } from '../lib/scheduling/keep-tick-shape.ts'
import { createThreadPool } from '../lib/scheduling/thread-pool.ts'
import { createYieldPoint } from '../lib/scheduling/yielding.ts'
import { createLog, type ProcessLog } from '../telemetry/log.ts'
import { logLevelOf } from '../telemetry/log-level.ts'
import { createMetrics, type Metrics } from '../telemetry/metrics/metrics.ts'
import { createApiCaller } from './messages/api-calls.ts'
import { type Calls, createCalls } from './messages/calls.ts'
import { applyPatch, type Patch } from './messages/config-patch.ts'
import { createBatchWriter } from './messages/log-lines.ts'
import { createPeerLinks } from './messages/peer-links.ts'
import type {
  AddressRequest,
  Committed,
  PlaneApiReply,
  Prepared,
  PrepareRequest,
  ThreadStart,
} from './messages/plane-protocol.ts'
import { poolLimitsOf } from './pool-limits.ts'
import { createSharedMemory } from './shared-memory.ts'

// Entry of a thread with a data plane: a `DataPlane` whose calls are messages of the main thread.

if (parentPort) serveDataPlane(parentPort, workerData as ThreadStart)

function serveDataPlane(port: MessagePort, start: ThreadStart): void {
  keepTickShape()
  const { plane, planes, poolUrl, hasLedger, ...settings } = start
  const calls = createCalls(port, {
    prepare: (request: PrepareRequest) => configs.prepare(request),
    commit: () => configs.commit(),
    abort: () => configs.abort(),
    evictFile: (path: string) => dataPlane.evictFile(path),
    setUnavailable: (reason: string | undefined) => dataPlane.setUnavailable(reason),
    limits: () => dataPlane.limits(),
    budgets: (request: BudgetRequest) => dataPlane.budgets(request),
    costs: (query: CostQuery) => dataPlane.costs(query),
    explainRequest: (request: ExplainedRequest) => dataPlane.explainRequest(request),
    testGuards: (test: GuardTest) => dataPlane.testGuards(test),
    expectBudgets: () => dataPlane.expectBudgets(),
    reportBudgets: (report: BudgetReport) => dataPlane.reportBudgets(report),
    metrics: () => metrics.dump(),
    inspectMcp: (question: McpQuestion) => dataPlane.inspectMcp(question),
    exportMetrics: (batch: MetricBatch) => dataPlane.exportMetrics(batch),
    observe: async () => (await dataPlane.observe())[0],
    announceDrain: () => dataPlane.announceDrain(),
    drain: () => dataPlane.drain(),
    abortRequests: () => dataPlane.abortRequests(),
    async close() {
      peers.close()
      await dataPlane.close()
      await ledger?.flush()
      await log.flush()
    },
    connect: ({ plane: other, port: link }: { plane: number; port: MessagePort }) =>
      peers.connect(other, link),
  })
  const metrics = createMetrics()
  metrics.expose(expositionOf(settings.settings))
  const log = createLog(
    logLevelOf(settings.settings.logging?.level),
    createBatchWriter((batch) => calls.call('log', batch) as Promise<void>),
  )
  const ledger = hasLedger ? createSender(calls, metrics) : undefined
  const peers = createPeerLinks(plane, planes)
  let adminPort = 0
  const dataPlane = createDataPlane({
    ...settings,
    clock: systemClock,
    log,
    ledger,
    metrics,
    exchangeLeases: (reports) => calls.call('exchangeLeases', reports) as Promise<LeaseReplies>,
    objectRecords: (request) => calls.call('objectRecords', request) as Promise<FoundObjects>,
    cachedRows: {
      read: (key) => calls.call('readCache', key) as Promise<FoundRow | undefined>,
      write: (row) => calls.call('writeCache', row) as Promise<void>,
    },
    threads: createThreadPool({
      start: () => new Worker(new URL(poolUrl), { execArgv: [], env: {} }),
      ...poolLimitsOf(planes),
    }),
    memory: createSharedMemory({
      plane,
      planes,
      acquire: (requests) => calls.call('acquireMemory', requests) as Promise<SharedArrayBuffer[]>,
      release: (name) => calls.note('releaseMemory', name),
    }),
    peers,
    guardian: {
      watch: (group) => calls.note('watchGroup', group),
      unwatch: (group) => calls.note('unwatchGroup', group),
    },
    async openServer(options) {
      const { host, port } = options
      const free = (await calls.call('reserve', { host, port } satisfies AddressRequest)) as number
      return openServer({ ...options, port: free, reusePort: true })
    },
    adminPort: () => adminPort,
    api: createApiCaller(
      (request, transfer) => calls.call('api', request, transfer) as Promise<PlaneApiReply>,
    ),
  })
  const configs = createConfigs(dataPlane, log, (next) => {
    adminPort = next
  })
  process.on('uncaughtException', (error) => {
    log.error({ err: error, plane }, 'unexpected error, data plane ends')
    void ledger?.flush()
    calls.note('totals', metrics.dump())
    void log.flush()
    process.exit(1)
  })
  calls.note('ready', undefined)
}

function createSender(calls: Calls, metrics: Metrics): LedgerSender {
  const send = (lines: LedgerLines) => calls.call('ledger', lines) as Promise<void>
  return createLedgerSender({ send, meter: metrics.ledger })
}

/** The configurations of a data plane: the active one, and one between `prepare` and `commit` or `abort`. */
type Configs = {
  prepare(request: PrepareRequest): Promise<Prepared>
  commit(): Promise<Committed>
  abort(): void
}

function createConfigs(dataPlane: DataPlane, log: ProcessLog, setAdminPort: (port: number) => void): Configs {
  const yieldPoint = createYieldPoint(systemClock)
  let active: unknown
  let prepared: { config: Config; snapshot: PreparedSnapshot } | undefined

  return {
    async prepare({ patch, adminPort }) {
      setAdminPort(adminPort)
      const read = (await deserializeChunks(patch, yieldPoint)) as Patch
      const config = applyPatch(active, read, dataPlane.markApi) as Config
      const snapshot = await dataPlane.prepare(config)
      prepared = { config, snapshot }
      return { files: snapshot.files, fingerprint: fingerprintOf(snapshot.files) }
    },
    async commit() {
      if (prepared === undefined) throw new Error('there is no prepared configuration')
      const { config, snapshot } = prepared
      prepared = undefined
      await snapshot.commit()
      active = config
      log.setLevel(logLevelOf(config.config?.logging?.level))
      return { addresses: dataPlane.addresses() }
    },
    abort() {
      prepared?.snapshot.abort()
      prepared = undefined
    },
  }
}

/** Fingerprint of file contents, to compare those of several data planes. */
function fingerprintOf(files: ReadonlyMap<string, string>): string {
  const hash = createHash('sha256')
  for (const [path, text] of [...files].sort(([one], [other]) => (one < other ? -1 : 1)))
    hash.update(JSON.stringify([path, text]))
  return hash.digest('base64')
}
