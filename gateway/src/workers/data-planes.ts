import type { ApiHandler } from '../admin/admin.ts'
import type { DataPlane, DataPlaneSettings } from '../data-plane/data-plane.ts'
import type { LedgerLines } from '../ledger/sender.ts'
import type { Clock } from '../lib/clock.ts'
import type { CachedRows } from '../lib/planes/cached-rows.ts'
import type { ExchangeLeases } from '../lib/planes/lease-exchange.ts'
import type { CallObjectRecords } from '../lib/planes/object-records.ts'
import type { ProcessLog } from '../telemetry/log.ts'
import type { MetricDump } from '../telemetry/metrics/dump.ts'
import type { Metrics } from '../telemetry/metrics/metrics.ts'

/** Programs of threads. */
export type ThreadUrls = {
  dataPlane: URL
  /** Runs the tasks of `createPoolTasks`. */
  pool: URL
}

export type DataPlanesOptions = DataPlaneSettings & {
  clock: Clock
  log: ProcessLog
  metrics: Metrics
  threadUrls: ThreadUrls
  /** Accepts lines of data planes for the ledger; undefined without a ledger. */
  acceptEntries: ((lines: LedgerLines) => Promise<void>) | undefined
  exchangeLeases: ExchangeLeases
  objectRecords: CallObjectRecords
  cachedRows: CachedRows
  adminPort(): number
  api: ApiHandler
  /** Ends the process after an error that it cannot continue from. */
  fail(error: Error): void
}

/** All data planes of the process, as one. */
export type DataPlanes = DataPlane & {
  /** Metrics that are not part of those of the main thread. */
  metrics(): Promise<MetricDump[]>
}
