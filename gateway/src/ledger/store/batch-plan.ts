import { hash } from 'node:crypto'
import { dayMs } from '../../lib/duration.ts'
import { createCollapsed } from '../collapse.ts'
import type { BudgetCharge } from '../entry.ts'
import type { UsageSum } from '../usage-sum.ts'
import { requestColumns, type SqlValue } from './columns.ts'
import type { LedgerBatch, WriteResult } from './store.ts'
import { dimensionColumns, valuesOfCounts, valuesOfDimensions } from './usage-columns.ts'

type Row = readonly SqlValue[]

/** Amount to add to a window of a budget. */
export type BudgetRow = Omit<BudgetCharge, 'amount'> & { readonly id: string; readonly amount: bigint }

/** Rows of a batch by table, each key once, sorted by key: transactions lock common rows in one order. */
export type BatchPlan = {
  /** In the order of `requestColumns`. */
  readonly requests: readonly Row[]
  /** Id, completion time, explanation, request, response. */
  readonly details: readonly Row[]
  /** In the order of `usageColumns`. */
  readonly hours: readonly Row[]
  readonly days: readonly Row[]
  /** Key id, time of use. */
  readonly keys: readonly (readonly [id: string, usedAt: number])[]
  readonly budgets: readonly BudgetRow[]
}

/** Result for a batch whose source has committed `last`; undefined if the batch is to be written. */
export function writtenBefore({ first, number }: LedgerBatch, last: number): WriteResult | undefined {
  if (last >= number) return { kind: 'duplicate' }
  return last >= first ? { kind: 'partial', last } : undefined
}

/** Converts a repaired batch into rows. */
export function planBatch({ entries, sums }: LedgerBatch): BatchPlan {
  const sorted = entries.toSorted((a, b) => compare(a.id, b.id))
  const hours = createCollapsed(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY)
  for (const entry of sorted) hours.add(entry)
  for (const sum of sums) hours.addSum(sum)
  const hourSums = hours.sums()
  const hourRows = hourSums.map(usageRow)
  const keys = new Map<string, number>()
  const use = (id: string | undefined, at: number) => {
    if (id !== undefined && id !== '') keys.set(id, Math.max(at, keys.get(id) ?? 0))
  }
  for (const { keyId, completedAt } of entries) use(keyId, completedAt)
  for (const { dimensions } of sums) use(dimensions.keyId, dimensions.hour)
  return {
    requests: sorted.map((entry) => requestColumns.map(({ read }) => read(entry))),
    details: sorted.flatMap(({ id, completedAt, details: { explanation, request, response } }) => {
      if (explanation === undefined && request === undefined && response === undefined) return []
      return [[id, completedAt, explanation ?? null, request ?? null, response ?? null]]
    }),
    hours: sortedRows(hourRows),
    days: sortedRows(dayRows(hourRows)),
    keys: [...keys].sort(([a], [b]) => compare(a, b)),
    budgets: budgetRows(hourSums.flatMap(({ charges }) => charges)),
  }
}

type UsageRow = { readonly start: number; readonly id: string; readonly values: readonly SqlValue[] }

function usageRow({ dimensions, counts }: UsageSum): UsageRow {
  const names = valuesOfDimensions(dimensions)
  return { start: dimensions.hour, id: digest(names), values: [...names, ...valuesOfCounts(counts)] }
}

/** A batch rarely contains two hours, so most rows are those of the hour with another start. */
function dayRows(hours: readonly UsageRow[]): UsageRow[] {
  const rows = new Map<string, UsageRow>()
  for (const { start: hour, id, values } of hours) {
    const start = Math.floor(hour / dayMs) * dayMs
    const key = `${start} ${id}`
    const known = rows.get(key)
    rows.set(key, { start, id, values: known === undefined ? values : addedValues(known.values, values) })
  }
  return [...rows.values()]
}

function addedValues(values: readonly SqlValue[], added: readonly SqlValue[]): readonly SqlValue[] {
  return values.map((value, index) =>
    index < dimensionColumns.length ? value : Number(value) + Number(added[index]),
  )
}

function sortedRows(rows: readonly UsageRow[]): Row[] {
  return rows
    .toSorted((a, b) => a.start - b.start || compare(a.id, b.id))
    .map(({ start, id, values }) => [start, id, ...values])
}

/** A window is identified by its start: its end changes with the configuration. */
function budgetRows(charges: readonly BudgetCharge[]): BudgetRow[] {
  const rows = new Map<string, BudgetRow>()
  for (const { budget, value, windowStart, windowEnd, amount } of charges) {
    const id = digest([budget, value, windowStart])
    const known = rows.get(id)
    rows.set(id, {
      id,
      budget,
      value,
      windowStart,
      windowEnd: Math.max(windowEnd, known?.windowEnd ?? 0),
      amount: BigInt(amount) + (known?.amount ?? 0n),
    })
  }
  return [...rows.values()].sort((a, b) => compare(a.id, b.id))
}

/** 128 bits, so that a key of any length fits into an index. */
function digest(values: readonly SqlValue[]): string {
  return hash('sha256', JSON.stringify(values), 'base64url').slice(0, 22)
}

function compare(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}
