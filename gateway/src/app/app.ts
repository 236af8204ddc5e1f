import { randomBytes, randomUUID } from 'node:crypto'
import { tmpdir } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { createCacheDatabase } from '../backends/llm/cache/database/cache-database.ts'
import { cacheDatabaseOf } from '../backends/llm/cache/database/settings.ts'
import { createRecordDatabase } from '../backends/llm/lists/record-database.ts'
import { recordsUrlOf } from '../backends/llm/lists/records-url.ts'
import { terminationOf } from '../config/frontend/termination.ts'
import { type ConfigVersions, createConfigVersions } from '../config/live/config-versions.ts'
import { createLiveConfig } from '../config/live/live.ts'
import type { Environment } from '../config/load/environment.ts'
import type { Config } from '../config/schema.ts'
import { exportIntervalMs, expositionOf } from '../config/telemetry/metrics-config.ts'
import { ledgerSettingsOf } from '../ledger/config.ts'
import { type Ledger, openLedger } from '../ledger/ledger.ts'
import { systemClock } from '../lib/clock.ts'
import { createYieldPoint } from '../lib/scheduling/yielding.ts'
import { createLeaseDatabase } from '../policies/rate-limit/leases/lease-database.ts'
import { renderMetrics } from '../telemetry/exposition/exposition.ts'
import type { ProcessLog } from '../telemetry/log.ts'
import { logLevelOf } from '../telemetry/log-level.ts'
import { createMetrics, type Metrics } from '../telemetry/metrics/metrics.ts'
import { createMetricExport } from '../telemetry/otlp/metric-export.ts'
import type { ThreadUrls } from '../workers/data-planes.ts'
import { openDataPlanes } from '../workers/workers.ts'
import { createBudgetFeed } from './budgets.ts'
import type { ConfigFeed } from './config-feed.ts'
import { createControlLink } from './control-link.ts'
import { openControlPlane } from './control-plane.ts'
import { createProcessServers } from './process-servers.ts'
import { createReload } from './reload.ts'
import type { RunConfigTask } from './worker-tasks.ts'

export type AppOptions = {
  /** Closed by the app, also if the start fails. */
  feed: ConfigFeed
  env: Environment
  version: string
  log: ProcessLog
  runTask: RunConfigTask
  threadUrls: ThreadUrls
  /** Reads the JSON Schema of the configuration file. */
  readSchema: () => Promise<object>
  /** Folder of the built console. */
  consoleFolder: URL
  /** Metrics of the process that exist before the app; created if undefined. */
  metrics?: Metrics
  /** Time between the failure of readiness and the end of the listeners at `stop`; 0 if undefined. */
  drainDelayMs?: number
  /** Time for pending requests at `stop`, unless the configuration sets it. */
  drainDeadlineMs?: number
  /** Ends the process after an error that it cannot continue from. */
  fail(error: Error): void
}

export type App = {
  /** Kills the programs of stdio targets without a grace period, before an immediate exit of the process. */
  killChildren(): void
  /** Finishes the requests in flight up to the deadline, then closes everything. */
  stop(): Promise<void>
}

/** Time for the usage reports and log lines of requests that the deadline aborts. */
const abortedRequestsMs = 1_000
const processKeyBytes = 32

/**
 * Starts the gateway. Throws `ConfigRejected`, or the error of an address that cannot be opened; then
 * everything is closed again.
 */
export async function startApp(options: AppOptions): Promise<App> {
  const { feed, env, version, log, metrics = createMetrics(), drainDelayMs, drainDeadlineMs } = options
  const clock = systemClock
  const versions = await firstVersion(feed)
  const settings = versions.current.config ?? {}
  metrics.expose(expositionOf(settings))
  log.setLevel(logLevelOf(settings.logging?.level))
  log.setFormat(settings.logging?.format ?? 'json')

  const link = createControlLink()
  const servers = createProcessServers(clock, metrics)
  const ledger = openLedgerOf(settings, { log, metrics })
  const leases = createLeaseDatabase({
    url: settings.logging?.database?.url ?? settings.database?.url,
    process: randomUUID(),
    log,
    report: metrics.sharedLimits,
  })
  const objectDatabase = createRecordDatabase(recordsUrlOf(settings))
  const cacheDatabase = createCacheDatabase({
    settings: cacheDatabaseOf(settings),
    log,
    meter: metrics.cacheDatabase(),
  })
  const dataPlane = await openDataPlanes({
    settings,
    origin: feed.origin.kind === 'file' ? 'file' : feed.origin.from,
    env,
    version,
    processKey: randomBytes(processKeyBytes),
    clock,
    log,
    metrics,
    threadUrls: options.threadUrls,
    acceptEntries: ledger?.accept,
    exchangeLeases: leases.exchange,
    objectRecords: objectDatabase.call,
    cachedRows: cacheDatabase.rows,
    adminPort: servers.adminPort,
    api: link.api,
    fail: options.fail,
  })
  /** Reason in the data plane why no traffic is served. */
  let unavailable: string | undefined = 'listeners'
  const live = createLiveConfig({
    clock,
    prepare: dataPlane.prepare,
    onStatus: ({ synchronized }) => metrics.configSynchronized(synchronized),
    async onSettled() {
      const reason = live.status.revision === 0 ? 'listeners' : link.pending()
      if (reason === unavailable) return
      await dataPlane.setUnavailable(reason)
      unavailable = reason
    },
  })
  const metricExport = createMetricExport({
    collect: async () => metrics.collect(await dataPlane.metrics()),
    send: dataPlane.exportMetrics,
    clock,
    log,
  })
  const budgets = createBudgetFeed({ ledger, dataPlane, clock, log })
  live.onCommit((config) => {
    log.setLevel(logLevelOf(config.config?.logging?.level))
    budgets.use(config)
    metricExport.use(exportIntervalMs(config.config?.metrics))
  })
  const control = await openControlPlane({
    ...options,
    clock,
    metrics,
    settings,
    versions,
    live,
    dataPlane,
    ledger,
  })
  const { resources, logApi, consoleApi } = control
  link.connect(control)
  const reload = createReload({ feed, log, versions, live, resources, evictFile: dataPlane.evictFile })
  const shutdown = new AbortController()

  function pending(): string[] {
    if (shutdown.signal.aborted) return ['shutdown']
    return unavailable === undefined ? [] : [unavailable]
  }

  async function closeAll(): Promise<void> {
    reload.close()
    servers.close()
    budgets.close()
    await metricExport.close()
    await Promise.all([dataPlane.close(), resources.close(), logApi.close(), consoleApi.close()])
    await Promise.all([leases.close(), objectDatabase.close(), cacheDatabase.close()])
    // After the data planes, which have sent their last entries.
    await ledger?.close()
  }

  try {
    await ledger?.ready
    const render = async (accept: string) => renderMetrics(metrics, accept, await dataPlane.metrics())
    await servers.open({ settings, api: control.api, pending, render })
    budgets.use(versions.current)
    await budgets.ready()
    await live.exclusive(() => resources.useFile(versions.current))
  } catch (error) {
    await closeAll()
    throw error
  }
  log.info({ version, listeners: dataPlane.addresses() }, 'serving')
  feed.settled({ kind: 'active' })
  reload.watch()

  return {
    killChildren: dataPlane.killChildren,
    async stop() {
      shutdown.abort()
      // Clients that read the addresses of this process elsewhere connect until they see the change.
      const defaults = { acceptMs: drainDelayMs, drainMs: drainDeadlineMs }
      const { acceptMs, drainMs } = terminationOf(settings, defaults)
      if (acceptMs > 0) {
        dataPlane.announceDrain()
        await delay(acceptMs)
      }
      reload.close()
      logApi.endStreams()
      // Pending changes receive a response; an unresponsive database does not delay the exit.
      const changes = resources.idle()
      const drained = dataPlane.drain()
      await atMost(Promise.all([drained, changes]), drainMs)
      // Aborts the remaining requests, whose usage and log lines are still to be written.
      dataPlane.abortRequests()
      await atMost(drained, abortedRequestsMs)
      await closeAll()
      await log.flush()
    },
  }
}

function openLedgerOf(
  settings: NonNullable<Config['config']>,
  { log, metrics }: { log: ProcessLog; metrics: Metrics },
): Ledger | undefined {
  const ledger = ledgerSettingsOf(settings)
  if (ledger === undefined) return undefined
  const tools = { log, meter: metrics.ledger, randomUuid: randomUUID, temporaryFolder: tmpdir() }
  return openLedger({ settings: ledger, ...tools })
}

async function firstVersion(feed: ConfigFeed): Promise<ConfigVersions> {
  try {
    return createConfigVersions({ first: await feed.read(), yieldPoint: createYieldPoint(systemClock) })
  } catch (error) {
    feed.close()
    throw error
  }
}

/** Waits for work up to a time limit. */
async function atMost(work: Promise<unknown>, ms: number): Promise<void> {
  const expired = Promise.withResolvers<void>()
  const timer = setTimeout(expired.resolve, ms)
  try {
    await Promise.race([work, expired.promise])
  } finally {
    clearTimeout(timer)
  }
}
