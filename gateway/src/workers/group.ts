import { MessageChannel } from 'node:worker_threads'
import type { CostPage } from '../backends/llm/catalog/price-list.ts'
import { ConfigRejected } from '../config/config-rejected.ts'
import type { RequestExplanation } from '../config/inspection/explain-request.ts'
import type { GuardTestResult } from '../config/inspection/test-guards.ts'
import type { PreparedSnapshot } from '../config/live/live.ts'
import { createProvenance } from '../config/load/provenance.ts'
import type { McpAnswer } from '../config/mcp-inspection.ts'
import type { Config } from '../config/schema.ts'
import type { LedgerLines } from '../ledger/sender.ts'
import { releaseFailedPlane } from '../lib/planes/failed-plane.ts'
import { regionOf } from '../lib/planes/memory.ts'
import type { BudgetPage } from '../policies/budgets/snapshot.ts'
import { type LimitSnapshot, mergeLimitSnapshots } from '../policies/rate-limit/limit-snapshot.ts'
import { createProcessGuardian } from '../process/guardian.ts'
import type { PlaneObservation } from '../telemetry/live/observation.ts'
import { addTotals, type MetricDump } from '../telemetry/metrics/dump.ts'
import { createChildGroups } from './child-groups.ts'
import type { DataPlanes, DataPlanesOptions } from './data-planes.ts'
import { createEndLimit } from './end-limit.ts'
import { serveApiCalls } from './messages/api-calls.ts'
import type { LogBatch } from './messages/log-lines.ts'
import type { AddressRequest, Prepared } from './messages/plane-protocol.ts'
import { createPatches } from './patches.ts'
import { createPlaneRunner, type PlaneRunner } from './plane-runner.ts'
import { startPlaneThread } from './plane-thread.ts'
import { createReservations } from './reservations.ts'
import { createMemoryDirectory, type RegionRequest } from './shared-memory.ts'

/** Wait for the metrics of a data plane; then its previous ones count. */
const metricsTimeoutMs = 2_000
/** Attempts to prepare a configuration whose files change at the same time. */
const maxAttempts = 3

/** Starts `count` data planes on threads, which serve the same configuration on the same addresses. */
export async function startGroup(options: DataPlanesOptions, count: number): Promise<DataPlanes> {
  const { log, settings, origin, env, version, processKey, threadUrls } = options
  const memory = createMemoryDirectory()
  const provenance = createProvenance()
  const patchOf = createPatches(provenance.isFromApi)
  const reservations = createReservations()
  const children = createChildGroups(createProcessGuardian())
  const totals = createTotals()
  const { mayReplace } = createEndLimit(options.clock.monotonic, options.fail)
  const planes: PlaneRunner[] = Array.from({ length: count }, (_, plane) => createRunner(plane))
  let addresses: readonly string[] = []
  /** Resolves after the last abort: addresses to reserve may be open until then. */
  let aborted: Promise<unknown> = Promise.resolve()

  function createRunner(plane: number): PlaneRunner {
    return createPlaneRunner({
      plane,
      log,
      mayReplace,
      start: (onEnd) =>
        startPlaneThread({
          url: threadUrls.dataPlane,
          start: {
            plane,
            planes: count,
            poolUrl: threadUrls.pool.href,
            settings,
            origin,
            env: { ...env },
            version,
            processKey,
            hasLedger: options.acceptEntries !== undefined,
          },
          patchOf,
          adminPort: options.adminPort,
          handlers: handlersOf(plane),
          onEnd,
        }),
      onStart: () => link(plane),
      onEnd() {
        const regions = memory
          .releaseAll(plane)
          .map(({ name, buffer }) => ({ name, region: regionOf(buffer) }))
        releaseFailedPlane(regions, plane, count)
        children.kill(plane)
        totals.ended(plane)
        options.metrics.workers.ended()
      },
    })
  }

  function handlersOf(plane: number) {
    return {
      async log({ lines, lost }: LogBatch) {
        log.writeBatch(lines, lost)
      },
      api: serveApiCalls(options.api),
      ledger: (lines: LedgerLines) => options.acceptEntries?.(lines),
      exchangeLeases: options.exchangeLeases,
      objectRecords: options.objectRecords,
      readCache: options.cachedRows.read,
      writeCache: options.cachedRows.write,
      acquireMemory: (requests: readonly RegionRequest[]) => memory.acquire(plane, requests),
      releaseMemory: (name: string) => memory.release(plane, [name]),
      reserve: (address: AddressRequest) => reservations.reserve(address),
      watchGroup: (group: number) => children.watch(plane, group),
      unwatchGroup: children.unwatch,
      totals: (dump: MetricDump) => totals.record(plane, dump),
    }
  }

  /** Connects a new data plane with all others. */
  function link(plane: number): void {
    for (const [other, runner] of planes.entries()) {
      if (other === plane || !runner.isStarted()) continue
      const { port1, port2 } = new MessageChannel()
      runner.thread().connect(plane, port1)
      planes[plane]?.thread().connect(other, port2)
    }
  }

  async function prepareAll(config: Config): Promise<ReadonlyMap<string, string>> {
    await aborted
    for (let attempt = 1; ; attempt += 1) {
      reservations.begin(addresses)
      const outcomes = await Promise.allSettled(planes.map((plane) => plane.prepare(config)))
      const failed = outcomes.find((outcome) => outcome.status === 'rejected')
      const prepared = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []))
      const [first] = prepared
      if (failed === undefined && first !== undefined && isSame(prepared)) return first.files
      await abortAll()
      if (failed !== undefined) throw failed.reason
      if (attempt === maxAttempts)
        throw new ConfigRejected(['a file that the configuration names changes while it is read; try again'])
      for (const path of first?.files.keys() ?? []) await evictFile(path)
    }
  }

  function abortAll(): Promise<unknown> {
    aborted = Promise.all(planes.map((plane) => plane.abort()))
    return aborted
  }

  async function evictFile(path: string): Promise<void> {
    await Promise.all(planes.map((plane) => plane.evictFile(path)))
  }

  /** Calls a data plane on memory that all have in common; another one if it fails. */
  async function callOne(name: string, request: unknown): Promise<unknown> {
    let failure: unknown
    for (const plane of planes) {
      try {
        return await plane.call(name, request)
      } catch (error) {
        failure = error
      }
    }
    throw failure
  }

  await Promise.all(planes.map((plane) => plane.run()))

  return {
    async prepare(config): Promise<PreparedSnapshot> {
      const files = await prepareAll(config)
      return {
        files,
        async commit() {
          const committed = await Promise.all(planes.map((plane) => plane.commit(config)))
          addresses = committed[0]?.addresses ?? addresses
        },
        abort: () => void abortAll(),
      }
    },
    markApi: provenance.markApi,
    evictFile,
    async setUnavailable(reason) {
      await Promise.all(planes.map((plane) => plane.setUnavailable(reason)))
    },
    async limits() {
      const snapshots = await Promise.all(planes.map((plane) => plane.call('limits').catch(() => undefined)))
      return mergeLimitSnapshots(snapshots.filter((snapshot) => snapshot !== undefined) as LimitSnapshot[])
    },
    async metrics() {
      await Promise.all(
        planes.map(async (plane, index) => {
          const asked = plane.thread()
          const dump = await plane.call('metrics', undefined, metricsTimeoutMs).catch(() => undefined)
          // The totals of a thread that has ended meanwhile count already.
          if (dump !== undefined && plane.thread() === asked) totals.record(index, dump as MetricDump)
        }),
      )
      return totals.all()
    },
    budgets: async (request) => (await callOne('budgets', request)) as BudgetPage,
    costs: async (query) => (await callOne('costs', query)) as CostPage,
    inspectMcp: async (question) => (await callOne('inspectMcp', question)) as McpAnswer,
    observe: () =>
      Promise.all(
        planes.map(
          (plane) =>
            plane.call('observe', undefined, metricsTimeoutMs).catch(() => undefined) as Promise<
              PlaneObservation | undefined
            >,
        ),
      ),
    explainRequest: async (request) => (await callOne('explainRequest', request)) as RequestExplanation,
    testGuards: async (test) => (await callOne('testGuards', test)) as GuardTestResult,
    async expectBudgets() {
      await callOne('expectBudgets', undefined)
    },
    async reportBudgets(report) {
      await callOne('reportBudgets', report)
    },
    async exportMetrics(batch) {
      await callOne('exportMetrics', batch)
    },
    addresses: () => addresses,
    announceDrain() {
      for (const plane of planes) plane.note('announceDrain')
    },
    async drain() {
      for (const plane of planes) plane.stop()
      await Promise.all(planes.map((plane) => plane.call('drain').catch(() => undefined)))
    },
    abortRequests() {
      for (const plane of planes) plane.note('abortRequests')
    },
    killChildren: children.killAll,
    async close() {
      await Promise.all(planes.map((plane) => plane.close()))
    },
  }
}

function isSame(prepared: readonly Prepared[]): boolean {
  return prepared.every(({ fingerprint }) => fingerprint === prepared[0]?.fingerprint)
}

/** Metrics of the data planes, with the totals of those that have ended. */
function createTotals() {
  const current = new Map<number, MetricDump>()
  let past: MetricDump = []
  return {
    record: (plane: number, dump: MetricDump) => void current.set(plane, dump),
    ended(plane: number) {
      past = addTotals(past, current.get(plane) ?? [])
      current.delete(plane)
    },
    all: (): MetricDump[] => [past, ...current.values()],
  }
}
