import { type Query, shortQueryTimeoutMs } from '../../../database/postgres/client.ts'
import { withoutSettlement } from '../../settlement.ts'
import { type BatchPlan, planBatch, writtenBefore } from '../batch-plan.ts'
import type { BudgetTotal, LedgerBatch, WriteResult } from '../store.ts'
import { arrayLiteral } from './array-literal.ts'
import {
  addToBudgets,
  addToDays,
  addToHours,
  insertDetails,
  insertRequests,
  insertSettlements,
  readNumber,
  writeKeysUsed,
  writeNumber,
} from './statements.ts'
import { decodeTotal } from './totals.ts'

// A writer that disappears loses its locks. A slow statement fails before the client gives up.
const begin = `begin isolation level read committed read write; set local lock_timeout = '10s';
  set local statement_timeout = '12s'; set local idle_in_transaction_session_timeout = '30s'`

/**
 * Commits the rows of a batch. Rows that other writers change as well are last, so that they wait briefly.
 */
export async function writePlan(
  query: Query,
  batch: LedgerBatch,
  given: BatchPlan,
  now: number,
): Promise<WriteResult> {
  const { source, first, number } = batch
  await query(begin)
  const isNew = (await query(writeNumber, [source, number, now, first])).length > 0
  if (!isNew) {
    const [row] = await query(readNumber, [source])
    await query('rollback')
    return writtenBefore(batch, Number(row?.[0])) ?? { kind: 'duplicate' }
  }
  const settled = await settleOnce(query, batch, now)
  const plan = settled === batch ? given : planBatch(settled)
  await insertAll(query, insertRequests, plan.requests)
  await insertAll(query, insertDetails, plan.details)
  await insertAll(query, addToHours, plan.hours)
  await insertAll(query, addToDays, plan.days)
  await insertAll(query, writeKeysUsed, plan.keys)
  const totals = await addAll(query, plan.budgets)
  await query('commit', undefined, shortQueryTimeoutMs)
  return { kind: 'written', totals }
}

/** Records settlements. Returns the batch without those recorded before. */
async function settleOnce(query: Query, batch: LedgerBatch, now: number): Promise<LedgerBatch> {
  const ids = new Set<string>()
  for (const { settles } of batch.entries) if (settles !== undefined) ids.add(settles)
  if (ids.size === 0) return batch
  const rows = [...ids].sort().map((id) => [id, now])
  const first = new Set((await insertAll(query, insertSettlements, rows)).map(([id]) => String(id)))
  const entries = batch.entries.map((entry) =>
    entry.settles === undefined || first.delete(entry.settles) ? entry : withoutSettlement(entry),
  )
  return { ...batch, entries }
}

async function addAll(query: Query, rows: BatchPlan['budgets']): Promise<BudgetTotal[]> {
  const values = rows.map((row) => [
    row.id,
    row.budget,
    row.value,
    row.windowStart,
    row.windowEnd,
    String(row.amount),
  ])
  return (await insertAll(query, addToBudgets, values)).map(decodeTotal)
}

async function insertAll(
  query: Query,
  statement: string,
  rows: readonly (readonly unknown[])[],
): Promise<readonly (readonly unknown[])[]> {
  const [first] = rows
  if (first === undefined) return []
  return await query(
    statement,
    first.map((_, column) => arrayLiteral(rows, column)),
  )
}
