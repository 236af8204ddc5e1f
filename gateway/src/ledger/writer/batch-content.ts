import { createCollapsed } from '../collapse.ts'
import type { BudgetCharge, LedgerEntry } from '../entry.ts'
import { withoutSettlement } from '../settlement.ts'
import type { LedgerBatch } from '../store/store.ts'
import type { UsageSum } from '../usage-sum.ts'
import { decodeLines } from '../wire.ts'
import type { QueuedBatch } from './record-queue.ts'

/**
 * Form of a batch. A batch that the database refuses, for a reason other than an outage, is simplified until
 * it is accepted: one bad row must not stop the queue.
 */
export type BatchForm = 'complete' | 'withoutDetails' | 'sums'

export type BatchContent = {
  readonly batch: LedgerBatch
  /** Lines of unreadable records, and unreadable lines. */
  readonly damaged: number
}

/** Reads the records of a batch. Unreadable parts are counted and skipped. */
export function readBatch({ source, first, number, records }: QueuedBatch, form: BatchForm): BatchContent {
  const entries: LedgerEntry[] = []
  const sums: UsageSum[] = []
  let damaged = 0
  for (const { read, rows } of records) {
    const payload = readable(read)
    const { records: lines, invalid } =
      payload === undefined ? { records: [], invalid: rows } : decodeLines(payload)
    damaged += invalid
    for (const line of lines) {
      if (line.kind === 'entry') entries.push(line.entry)
      else sums.push(line.sum)
    }
  }
  return { batch: { source, first, number, ...formed({ entries, sums }, form) }, damaged }
}

/** Sums of the charges of a batch by budget, value and window. */
export function chargesOf({ entries, sums }: Pick<LedgerBatch, 'entries' | 'sums'>): BudgetCharge[] {
  const charges = new Map<string, BudgetCharge>()
  for (const { charges: added } of [...entries, ...sums]) {
    for (const charge of added) {
      const key = JSON.stringify([charge.budget, charge.value, charge.windowStart, charge.windowEnd])
      const known = charges.get(key)
      charges.set(key, known === undefined ? charge : { ...known, amount: known.amount + charge.amount })
    }
  }
  return [...charges.values()]
}

type Content = { entries: readonly LedgerEntry[]; sums: readonly UsageSum[] }

function formed({ entries, sums }: Content, form: BatchForm): Content {
  switch (form) {
    case 'complete':
      return { entries, sums }
    case 'withoutDetails':
      return { entries: entries.map((entry) => ({ ...entry, details: {} })), sums }
    case 'sums': {
      const collapsed = createCollapsed(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY)
      for (const entry of entries) collapsed.add(withoutSettlement(entry))
      for (const sum of sums) collapsed.addSum(sum)
      return { entries: [], sums: collapsed.sums() }
    }
  }
}

function readable(read: () => Buffer): Buffer | undefined {
  try {
    return read()
  } catch {
    // The file was damaged or removed: its records are lost, and counted.
    return undefined
  }
}
