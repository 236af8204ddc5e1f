import type { AccountReference, KeyedAccounts } from '../../lib/planes/keyed-accounts.ts'
import type { TimeWindow } from '../../lib/time-window.ts'
import type { BudgetStatus } from '../../pipeline/limits/limits.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Budget } from './budget.ts'

/** A value of a budget in a window. */
export type Place = { readonly budget: Budget; readonly value: string; readonly window: TimeWindow }

/** Amounts at the admission of a request. */
export type Held = {
  readonly used: number
  /** Reserved by other requests. */
  readonly reserved: number
  /** Reserved for this request. */
  readonly estimate: number
  /** Undefined without an account: the call is charged in the ledger only. */
  readonly reference: AccountReference | undefined
}

/** Status of a budget that admits a request, with its reservation. */
export function holdOf(
  place: Place,
  held: Held,
  { accounts, log }: { accounts: KeyedAccounts; log: Log },
): BudgetStatus {
  const { budget, value, window } = place
  const { rule, levels, meter, identity } = budget
  const { reference, estimate, used } = held
  const outcome = used >= rule.limit ? 'audited' : used >= levels[0] ? 'warned' : 'admitted'
  meter.count(outcome === 'admitted' ? 'allowed' : outcome)
  let isSettled = false
  return {
    budget: identity,
    name: rule.name,
    value,
    unit: rule.unit,
    limit: rule.limit,
    used,
    reserved: held.reserved,
    estimate,
    window,
    outcome,
    settle({ tokens, picodollars, isPriced }) {
      if (isSettled) return undefined
      isSettled = true
      const amount = rule.unit === 'tokens' ? tokens : picodollars
      if (reference !== undefined) {
        reportLevels(place, accounts.settle(reference, { reserved: estimate, amount, levels }), log)
      }
      if (rule.unit === 'usd' && !isPriced) meter.count('unpriced')
      if (!(amount > 0)) return undefined
      return { budget: identity, value, windowStart: window.start, windowEnd: window.end, amount }
    },
  }
}

/** Status of a budget without a reservation. */
export function refusedStatus(
  { budget: { identity, rule, meter }, value, window }: Place,
  { used, reserved, estimate }: Held,
  outcome: 'refused' | 'unavailable',
): BudgetStatus {
  meter.count(outcome)
  const { name, unit, limit } = rule
  const status = { budget: identity, name, value, unit, limit, used, reserved, estimate, window, outcome }
  return { ...status, settle: () => undefined }
}

const warningBit = 1
const limitBit = 2

/** Logs levels that are reached for the first time in a window. */
export function reportLevels({ budget, value, window }: Place, crossed: number, log: Log): void {
  if (crossed === 0) return
  const resetsAt = new Date(window.end).toISOString()
  const fields = { budget: budget.label, value: value === '' ? undefined : value, resetsAt }
  if ((crossed & limitBit) !== 0) log.warn({ ...fields, action: budget.rule.action }, 'budget exhausted')
  else if ((crossed & warningBit) !== 0)
    log.warn({ ...fields, warnAt: budget.rule.warnAt }, 'budget warning level reached')
}
