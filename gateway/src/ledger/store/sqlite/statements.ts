import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { withoutSettlement } from '../../settlement.ts'
import type { BatchPlan, BudgetRow } from '../batch-plan.ts'
import { requestColumnList, requestColumns } from '../columns.ts'
import type { BudgetTotal, LedgerBatch } from '../store.ts'
import { addToUsage, raiseLastUse } from '../upserts.ts'
import { usageColumns } from '../usage-columns.ts'

/** Statements of one connection, compiled once. */
export type Statements = ReturnType<typeof prepareStatements>

/** Memory for pages. Each index of random texts needs a page of its own for each row. */
const cacheKiB = 64 * 1024
/** Pages of the log before a copy into the file: 32 MiB. A page that changes often is copied once. */
const checkpointPages = 8192

export function prepareStatements(db: DatabaseSync) {
  db.exec(`pragma cache_size = -${cacheKiB}; pragma wal_autocheckpoint = ${checkpointPages}`)
  const usage = `(${usageColumns.join(', ')}) values (${parameters(usageColumns.length)}) ${addToUsage}`
  return {
    readNumber: db.prepare('select number from tollgate_ledger_sources where source = ?'),
    writeNumber: db.prepare(
      `insert into tollgate_ledger_sources (source, number, at) values (?, ?, ?)
       on conflict (source) do update set number = excluded.number, at = excluded.at`,
    ),
    requests: db.prepare(
      `insert into tollgate_requests (${requestColumnList}) values (${parameters(requestColumns.length)})
       on conflict (id) do nothing`,
    ),
    settle: db.prepare(
      'insert into tollgate_settlements (request_id, at) values (?, ?) on conflict (request_id) do nothing',
    ),
    details: db.prepare(
      `insert into tollgate_request_details (id, completed_at, explanation, request, response)
       values (${parameters(5)}) on conflict (id) do nothing`,
    ),
    hours: db.prepare(`insert into tollgate_usage_hours as stored ${usage}`),
    days: db.prepare(`insert into tollgate_usage_days as stored ${usage}`),
    keys: db.prepare(
      `insert into tollgate_keys_used as stored (key_id, last_used_at) values (?, ?) ${raiseLastUse}`,
    ),
    changeBudgets: db.prepare(
      'update tollgate_ledger_state set budget_changes = budget_changes + 1 returning budget_changes',
    ),
    readChanges: db.prepare('select budget_changes from tollgate_ledger_state'),
    readBudget: db.prepare('select used, window_end from tollgate_budgets where id = ?'),
    writeBudget: db.prepare(
      `insert into tollgate_budgets (id, budget, value, window_start, window_end, used, changed)
       values (${parameters(7)})
       on conflict (id) do update set
         window_end = excluded.window_end, used = excluded.used, changed = excluded.changed`,
    ),
    currentTotals: db.prepare(`${selectBudgets} where window_end > ?`),
    changedTotals: db.prepare(`${selectBudgets} where changed > ? and window_end > ?`),
  }
}

const selectBudgets = 'select budget, value, window_start, window_end, used from tollgate_budgets'

/** The last committed number of the source of a batch; 0 if it is not known. */
export function lastNumberOf({ readNumber }: Statements, { source }: LedgerBatch): number {
  return Number(readNumber.get(source)?.['number'] ?? 0)
}

/** Records settlements in the write transaction. Returns the batch without those recorded before. */
export function settleOnce({ settle }: Statements, batch: LedgerBatch, at: number): LedgerBatch {
  if (!batch.entries.some(({ settles }) => settles !== undefined)) return batch
  const isFirst = (id: string) => Number(settle.run(id, at).changes) > 0
  const entries = batch.entries.map((entry) =>
    entry.settles === undefined || isFirst(entry.settles) ? entry : withoutSettlement(entry),
  )
  return { ...batch, entries }
}

/** Writes the rows of a batch in the write transaction. Returns the totals of its budgets. */
export function writePlan(
  statements: Statements,
  { source, number, at }: LedgerBatch & { readonly at: number },
  plan: BatchPlan,
): BudgetTotal[] {
  statements.writeNumber.run(source, number, at)
  runAll(statements.requests, plan.requests)
  runAll(statements.details, plan.details)
  runAll(statements.hours, plan.hours)
  runAll(statements.days, plan.days)
  runAll(statements.keys, plan.keys)
  return addToBudgets(statements, plan.budgets)
}

function addToBudgets(statements: Statements, rows: readonly BudgetRow[]): BudgetTotal[] {
  if (rows.length === 0) return []
  const changed = Number(statements.changeBudgets.get()?.['budget_changes'])
  return rows.map(({ id, budget, value, windowStart, windowEnd, amount }) => {
    const known = statements.readBudget.get(id)
    const used = amount + BigInt(String(known?.['used'] ?? 0))
    const end = Math.max(windowEnd, Number(known?.['window_end'] ?? 0))
    statements.writeBudget.run(id, budget, value, windowStart, end, String(used), changed)
    return { budget, value, windowStart, windowEnd: end, used }
  })
}

/** Selects totals of windows that end after `now` and changed after `since`. */
export function selectTotals(
  statements: Statements,
  since: number | undefined,
  now: number,
): { totals: BudgetTotal[]; since: number } {
  // Before the rows: a commit in between is returned again.
  const changes = Number(statements.readChanges.get()?.['budget_changes'])
  // A database with fewer changes is an older copy.
  const isComplete = since === undefined || since > changes
  const rows = isComplete ? statements.currentTotals.all(now) : statements.changedTotals.all(since, now)
  const totals = rows.map((row) => ({
    budget: String(row['budget']),
    value: String(row['value']),
    windowStart: Number(row['window_start']),
    windowEnd: Number(row['window_end']),
    used: BigInt(String(row['used'])),
  }))
  return { totals, since: changes }
}

function runAll(statement: StatementSync, rows: readonly (readonly (string | number | null)[])[]): void {
  for (const row of rows) statement.run(...row)
}

function parameters(count: number): string {
  return new Array(count).fill('?').join(', ')
}
