import { parseDuration } from '../lib/duration.ts'
import { isTimeZone, type WindowRule } from '../lib/time-window.ts'
import {
  anyOfShapes,
  duration,
  enumeration,
  exactlyOne,
  type Infer,
  list,
  name,
  number,
  object,
  optional,
  string,
} from './dsl.ts'
import type { ReportIssue } from './report.ts'

/** A budget in one form for all places of the configuration. */
export type BudgetRule = {
  readonly name: string
  readonly unit: 'usd' | 'tokens'
  /** Picodollars (10^-12 US dollars) or tokens. */
  readonly limit: number
  readonly window: WindowRule
  readonly action: 'block' | 'audit'
  /** Fraction of the limit. */
  readonly warnAt: number | undefined
}

const maxDollars = 1_000_000_000
const maxTokens = Number.MAX_SAFE_INTEGER
const picodollarsPerNanodollar = 1_000
const shortestWindowMs = 60_000
const longestWindowMs = 366 * 86_400_000
const maxNameLength = 64
/** Values of a response header (RFC 9110 section 5.5), as a quoted string. */
const nameForm = /^[ !#-[\]-~]+$/
const decimal = /^\d{1,16}(?:\.\d{1,9})?$/

export const budgetName = name(
  { doc: 'Name in responses, metrics and reports, unique in its list: printable ASCII.', example: 'team' },
  { max: maxNameLength },
)

export const amountSchema = anyOfShapes(
  [number({ doc: 'Amount.' }, { min: 0 }), string({ doc: 'Amount as decimal text.' }, { max: 32 })],
  { doc: 'Amount: US dollars with at most nine decimals, or tokens.', example: 25.5 },
)

export const warnAtSchema = number(
  { doc: 'Fraction of the limit from which responses have a warning header.', example: 0.8 },
  { min: 0, max: 1 },
)

export const timeZoneSchema = string(
  {
    doc: 'Time zone of calendar windows, a name of the IANA database.',
    default: 'UTC',
    example: 'Europe/Berlin',
  },
  { max: 64 },
)

/** A budget of a virtual key. */
export const keyBudgetSchema = object(
  {
    name: budgetName,
    limit: object(
      {
        unit: enumeration(['USD', 'Tokens'], { doc: 'Unit of the amount.' }),
        amount: amountSchema,
      },
      { doc: 'Limit in a window.' },
    ),
    window: exactlyOne(
      {
        rolling: duration({
          doc: 'Length of windows that are aligned to the Unix epoch: from `1m` to `366d`.',
          example: '24h',
        }),
        calendar: enumeration(['day', 'week', 'month'], { doc: 'Calendar window. Weeks begin on Monday.' }),
      },
      { timeZone: optional(timeZoneSchema) },
      { doc: 'Window, after which the budget is available again.' },
    ),
    onBudgetExceeded: optional(
      enumeration(['Block', 'Audit'], { doc: '`Audit` counts and reports only.', default: 'Block' }),
    ),
    warnAt: optional(warnAtSchema),
  },
  { doc: 'Budget of the key.' },
)

/** `budgets` of a virtual key. */
export const keyBudgetsSchema = list(
  keyBudgetSchema,
  { doc: 'Budgets of the key, in addition to those of `llm.policies.budgets`.' },
  { max: 16 },
)

export type KeyBudget = Infer<typeof keyBudgetSchema>

/** Reports errors beyond the schema in the budgets of a virtual key. */
export function checkKeyBudgets(budgets: readonly KeyBudget[], report: ReportIssue): void {
  budgets.forEach((budget, index) => {
    const at: ReportIssue = (path, message) => report([index, ...path], message)
    const { limit, window } = budget
    checkAmount(limit.unit === 'USD' ? 'usd' : 'tokens', limit.amount, (message) =>
      at(['limit', 'amount'], message),
    )
    if (window.rolling !== undefined) {
      checkWindowLength(window.rolling, (message) => at(['window', 'rolling'], message))
    }
    checkTimeZone(window, (message) => at(['window', 'timeZone'], message))
  })
  checkBudgetNames(budgets, report)
}

/** Normalises a valid budget of a virtual key. */
export function keyBudgetRule(budget: KeyBudget): BudgetRule {
  const { name: budgetOf, limit, window, onBudgetExceeded, warnAt } = budget
  const unit = limit.unit === 'USD' ? 'usd' : 'tokens'
  return {
    name: budgetOf,
    unit,
    limit: parseAmount(unit, limit.amount) ?? 0,
    window:
      window.rolling === undefined
        ? { kind: 'calendar', unit: window.calendar, timeZone: window.timeZone ?? 'UTC' }
        : { kind: 'fixed', lengthMs: parseDuration(window.rolling) ?? shortestWindowMs },
    action: onBudgetExceeded === 'Audit' ? 'audit' : 'block',
    warnAt,
  }
}

/** Picodollars of an amount in US dollars, or tokens; undefined if the amount is not valid. */
export function parseAmount(unit: BudgetRule['unit'], amount: number | string): number | undefined {
  const text = typeof amount === 'number' ? textOf(amount) : amount
  if (text === undefined || !decimal.test(text)) return undefined
  if (unit === 'tokens') {
    const tokens = Number(text)
    return Number.isInteger(tokens) && tokens >= 1 && tokens <= maxTokens ? tokens : undefined
  }
  const [whole = '0', fraction = ''] = text.split('.')
  if (Number(whole) > maxDollars) return undefined
  const nanodollars = Number(BigInt(whole + fraction.padEnd(9, '0')))
  return nanodollars > 0 ? nanodollars * picodollarsPerNanodollar : undefined
}

/** Decimal text without exponent; undefined with more than nine decimals. */
function textOf(amount: number): string | undefined {
  const text = String(amount)
  if (!text.includes('e')) return text
  const fixed = amount.toFixed(9)
  return Number(fixed) === amount ? fixed : undefined
}

/** Reports an invalid amount. */
export function checkAmount(
  unit: BudgetRule['unit'],
  amount: number | string,
  report: (message: string) => void,
): void {
  if (parseAmount(unit, amount) !== undefined) return
  report(
    unit === 'usd'
      ? `must be US dollars greater than 0, at most ${maxDollars}, with at most nine decimals`
      : 'must be a whole number of tokens, at least 1',
  )
}

/** Reports a window that is too short or too long. */
export function checkWindowLength(text: string, report: (message: string) => void): void {
  const lengthMs = parseDuration(text)
  if (lengthMs === undefined) return
  if (lengthMs < shortestWindowMs || lengthMs > longestWindowMs) report('must be from 1m to 366d')
}

/** Reports an unknown time zone, or one of a window that is aligned to the Unix epoch. */
export function checkTimeZone(
  { rolling, timeZone }: { rolling?: string | undefined; timeZone?: string | undefined },
  report: (message: string) => void,
): void {
  if (timeZone === undefined) return
  if (rolling !== undefined) report('is for calendar windows: day, week or month')
  else if (!isTimeZone(timeZone)) report('must be a time zone of the IANA database, such as Europe/Berlin')
}

/** Reports names that headers cannot contain, and duplicates. */
export function checkBudgetNames(budgets: readonly { name: string }[], report: ReportIssue): void {
  const names = new Map<string, number>()
  budgets.forEach(({ name: budget }, index) => {
    if (!nameForm.test(budget))
      report([index, 'name'], 'must be printable ASCII without quotes and backslashes')
    const first = names.get(budget)
    if (first !== undefined) report([index, 'name'], `budget ${first + 1} of this list has the same name`)
    names.set(budget, first ?? index)
  })
}
