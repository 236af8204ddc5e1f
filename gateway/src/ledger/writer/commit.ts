import { messageOf } from '../../lib/thrown.ts'
import { BatchRefused } from '../store/batch-refused.ts'
import type { BudgetTotal, LedgerBatch, LedgerStore } from '../store/store.ts'
import { type BatchForm, chargesOf, readBatch } from './batch-content.ts'
import type { BudgetUpdate } from './protocol.ts'
import type { QueuedBatch, RecordQueue } from './record-queue.ts'

/** Counts of commits since the creation of the function. */
export type CommitCounts = {
  written: number
  retried: number
  droppedDetails: number
  droppedRows: number
  damaged: number
}

export type CommitOptions = {
  store: Pick<LedgerStore, 'write' | 'budgetTotals'>
  /** Source of this process: its charges are confirmed. */
  source: string
  counts: CommitCounts
  /** Rows of a transaction. */
  maxRows: number
  now(): number
  onBudgets(update: BudgetUpdate): void
  /** A batch is refused although the database responds, or cannot be written once. */
  warn(fields: object, message: string): void
}

const leastRows = 100
const maxBatchBytes = 8 * 1024 * 1024
const oneRecord = { rows: 0, bytes: 0 }

const nextForm: Record<BatchForm, BatchForm> = {
  complete: 'withoutDetails',
  withoutDetails: 'sums',
  sums: 'sums',
}

/**
 * Creates a function that writes the oldest records of a queue and removes them from it. It rejects with
 * `DatabaseUnavailable` in an outage, and with `BatchRefused` if the database refuses the batch; the batch
 * remains in the queue, and the next call writes it in a simpler form.
 */
export function createCommit(options: CommitOptions): (queue: RecordQueue) => Promise<void> {
  const { store, source, counts, now, onBudgets, warn } = options
  let form: BatchForm = 'complete'
  /** Rows of the next transaction: fewer after an error, which may be a time limit. */
  let rows = options.maxRows
  /** The batch of the last attempt failed, and may have been written. */
  let isRetry = false

  async function totalsOf(): Promise<readonly BudgetTotal[]> {
    return (await store.budgetTotals(undefined, now())).totals
  }

  function confirm(queue: RecordQueue, batch: LedgerBatch, totals: readonly BudgetTotal[]): void {
    queue.confirm(batch.number)
    if (batch.source !== source) return
    const confirmed = chargesOf(batch)
    if (confirmed.length > 0 || totals.length > 0) onBudgets({ totals, confirmed })
  }

  /** Removes the records that were written before, by a process that combined other records. */
  async function confirmPart(queue: RecordQueue, queued: QueuedBatch, last: number): Promise<void> {
    const records = queued.records.filter(({ number }) => number <= last)
    const next = queued.records[records.length]
    const { batch } = readBatch({ ...queued, number: last, records }, form)
    confirm(queue, batch, await totalsOf())
    if (next === undefined || next.first > last) return
    warn({ first: next.first, number: next.number, last }, 'ledger sums skipped: written in part before')
    queue.confirm(next.number)
  }

  function count({ entries, sums }: LedgerBatch, damaged: number, rows: number): void {
    counts.written += entries.length + sums.length
    counts.damaged += damaged
    if (form === 'withoutDetails') counts.droppedDetails += entries.length
    if (form === 'sums') counts.droppedRows += rows
  }

  async function write(queue: RecordQueue, queued: QueuedBatch): Promise<void> {
    const { batch, damaged } = readBatch(queued, form)
    const result = await store.write(batch)
    switch (result.kind) {
      case 'written':
        count(
          batch,
          damaged,
          queued.records.reduce((sum, { rows }) => sum + rows, 0),
        )
        return confirm(queue, batch, result.totals)
      case 'duplicate':
        return confirm(queue, batch, await totalsOf())
      case 'partial':
        return await confirmPart(queue, queued, result.last)
    }
  }

  return async (queue) => {
    const queued = queue.peek(form === 'complete' ? { rows, bytes: maxBatchBytes } : oneRecord)
    if (queued === undefined) return
    if (isRetry) counts.retried += 1
    try {
      await write(queue, queued)
      isRetry = false
      form = 'complete'
      rows = Math.min(rows * 2, options.maxRows)
    } catch (error) {
      isRetry = true
      rows = Math.max(Math.floor(rows / 2), leastRows)
      if (error instanceof BatchRefused) {
        warn({ reason: messageOf(error), form }, 'ledger batch refused by the database')
        form = nextForm[form]
      }
      throw error
    }
  }
}
