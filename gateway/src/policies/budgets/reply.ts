import type { Clock } from '../../lib/clock.ts'
import { decimalDollars } from '../../lib/picodollars.ts'
import type { Reply } from '../../net/http-client/send.ts'
import { refuse } from '../../pipeline/errors.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import type { BudgetStatus } from '../../pipeline/limits/limits.ts'

/** Formats picodollars as dollars, or tokens, as a decimal number without exponent. */
export function formatAmount(unit: BudgetStatus['unit'], amount: number): string {
  const whole = BigInt(Math.round(amount))
  return unit === 'tokens' ? whole.toString() : decimalDollars(whole)
}

/**
 * Seconds of `retry-after` that clients may wait. With a longer one the SDK of OpenAI retries after less than
 * a second, and the SDK of Anthropic sleeps for up to 24 days; both obey `x-should-retry: false`.
 */
const longestRetryWait = 60

/** Refuses a request over a budget. */
export function refuseOverBudget(exchange: Exchange, status: BudgetStatus, now: number): Reply {
  const { name, unit, limit, used, window } = status
  const amount = unit === 'usd' ? `${formatAmount(unit, limit)} USD` : `${limit} tokens`
  const isExhausted = used >= limit
  const seconds = isExhausted ? Math.max(1, Math.ceil((window.end - now) / 1_000)) : 1
  const reset = new Date(window.end).toISOString()
  return refuse(exchange, {
    status: 429,
    code: 'budget_exceeded',
    message: isExhausted
      ? `budget "${name}" of ${amount} is exhausted: it resets at ${reset}`
      : `budget "${name}" of ${amount} is reserved by requests in progress: retry after their end`,
    headers: {
      'retry-after': String(seconds),
      ...(seconds > longestRetryWait ? { 'x-should-retry': 'false' } : {}),
    },
  })
}

/** Refuses a batch that is charged with more than a budget has left. */
export function refuseLargeCharge(exchange: Exchange, status: BudgetStatus, charge: number): Reply {
  const { name, unit, limit, used, reserved, window } = status
  const left = formatAmount(unit, Math.max(0, limit - used - reserved))
  const reset = new Date(window.end).toISOString()
  return refuse(exchange, {
    status: 429,
    code: 'budget_exceeded',
    message: `budget "${name}" has ${left} ${unit} left, and the batch is charged with ${formatAmount(unit, charge)}: send a smaller one, limit the output of its requests, or wait until ${reset}`,
    headers: { 'x-should-retry': 'false' },
  })
}

/** Refuses a request of a budget whose totals are unknown. */
export function refuseUnavailable(exchange: Exchange, name: string): Reply {
  return refuse(exchange, {
    status: 503,
    code: 'budget_unavailable',
    message: `budget "${name}" cannot be checked: its totals are unavailable`,
    headers: { 'retry-after': '1' },
  })
}

/** Response header with the budgets above their warning level (a list of RFC 9651). */
export const warningHeader = 'x-budget-warning'

/** Formats the warning header; undefined without a warning. */
export function formatWarnings(statuses: readonly BudgetStatus[], clock: Clock): string | undefined {
  let text: string | undefined
  for (const { name, outcome, used, limit, window } of statuses) {
    if (outcome !== 'warned' && outcome !== 'audited') continue
    const share = Math.floor((used / limit) * 1_000) / 1_000
    const warning = `"${name}";used=${share};reset=${Math.max(0, Math.ceil((window.end - clock.now()) / 1_000))}`
    text = text === undefined ? warning : `${text}, ${warning}`
  }
  return text
}
