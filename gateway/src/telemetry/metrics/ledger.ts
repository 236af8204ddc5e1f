import type { MetricRegistry } from './families.ts'

/** State of the writer of the ledger. */
export type LedgerQueueState = {
  readonly connected: boolean
  /** Rows and sums that the database has not confirmed. */
  readonly queuedRows: number
  readonly spoolBytes: number
}

/** Meter of the ledger. Series exist in processes with a ledger only. */
export type LedgerMeter = {
  queue(state: LedgerQueueState): void
  written(rows: number): void
  retried(batches: number): void
  /** Details are payloads and explanations; the amounts of dropped rows are retained in sums. */
  dropped(kind: 'details' | 'rows', count: number): void
  /** Records of the spool that cannot be read. */
  damaged(records: number): void
}

export function createLedgerMeter(registry: MetricRegistry): LedgerMeter {
  const connected = registry.gauge({
    name: 'tollgate_ledger_database_connected',
    help: '1 if the database of the ledger accepts writes, 0 during an outage. Absent without a ledger.',
    labels: [],
  })
  const queued = registry.gauge({
    name: 'tollgate_ledger_queue_rows',
    help: 'Rows and sums that wait for the database of the ledger.',
    labels: [],
  })
  const spool = registry.gauge({
    name: 'tollgate_ledger_spool_bytes',
    help: 'Size of the spool files of the ledger.',
    labels: [],
  })
  const written = registry.counter({
    name: 'tollgate_ledger_rows_written_total',
    help: 'Rows and sums that the database of the ledger has confirmed.',
    labels: [],
  })
  const retried = registry.counter({
    name: 'tollgate_ledger_batches_retried_total',
    help: 'Batches that were written again after an error.',
    labels: [],
  })
  const dropped = registry.counter({
    name: 'tollgate_ledger_dropped_total',
    help: 'Entries whose details (payloads, explanation) were dropped, or whose row was replaced by a sum, because the queue was full.',
    labels: ['kind'],
  })
  const damaged = registry.counter({
    name: 'tollgate_ledger_spool_damaged_records_total',
    help: 'Records of the spool that could not be read and were skipped.',
    labels: [],
  })
  return {
    queue(state) {
      connected.slot().value = state.connected ? 1 : 0
      queued.slot().value = state.queuedRows
      spool.slot().value = state.spoolBytes
    },
    written(rows) {
      written.slot().value += rows
    },
    retried(batches) {
      retried.slot().value += batches
    },
    dropped(kind, count) {
      dropped.slot(kind).value += count
    },
    damaged(records) {
      damaged.slot().value += records
    },
  }
}
