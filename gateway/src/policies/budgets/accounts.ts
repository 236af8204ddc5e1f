import type { BudgetReport } from '../../ledger/budget-use.ts'
import type { Clock } from '../../lib/clock.ts'
import { createKeyedAccounts, type KeyedAccounts } from '../../lib/planes/keyed-accounts.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'

/** Windows of budgets by value, in memory of all data planes. */
const maxAccounts = 1_000_000
const separator = '\n'

/** The accounts of all budgets of the process: a use and reservations per budget, window and value. */
export function budgetAccounts({
  memory,
  retained,
}: Pick<CompileContext, 'memory' | 'retained'>): KeyedAccounts {
  return retained('budgets', () => createKeyedAccounts(memory, 'budgets', maxAccounts))
}

/** Start of the account keys of a budget in a window; the value follows. */
export function accountPrefix(budget: string, windowStart: number): string {
  return `${budget}${separator}${windowStart.toString(36)}${separator}`
}

/** Splits an account key; undefined for a key that was hashed because of its length. */
export function parseAccountKey(
  key: string,
): { budget: string; windowStart: number; value: string } | undefined {
  const first = key.indexOf(separator)
  const second = key.indexOf(separator, first + 1)
  if (first < 0 || second < 0) return undefined
  const windowStart = Number.parseInt(key.slice(first + 1, second), 36)
  return { budget: key.slice(0, first), windowStart, value: key.slice(second + 1) }
}

/** Applies what the database holds to the accounts. */
export function applyBudgetReport(accounts: KeyedAccounts, report: BudgetReport, clock: Clock): void {
  const now = clock.now()
  for (const { budget, value, windowStart, windowEnd, others } of report.uses) {
    if (windowEnd <= now - lateMs) continue
    const use = { amount: others, number: report.number, endsAt: windowEnd }
    accounts.setElsewhere(accountPrefix(budget, windowStart) + value, use, now)
  }
  accounts.reported(clock.monotonic())
}

/** Requests of an ended window may still be in progress. */
const lateMs = 60_000
