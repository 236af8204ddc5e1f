import { checkCel } from '../../cel/checked.ts'
import { parseDuration } from '../../lib/duration.ts'
import type { WindowRule } from '../../lib/time-window.ts'
import {
  amountSchema,
  type BudgetRule,
  budgetName,
  checkAmount,
  checkBudgetNames,
  checkTimeZone,
  checkWindowLength,
  parseAmount,
  timeZoneSchema,
  warnAtSchema,
} from '../../schema/budget.ts'
import {
  cel,
  enumeration,
  exactlyOne,
  type Infer,
  integer,
  list,
  object,
  optional,
  string,
} from '../../schema/dsl.ts'
import type { ReportIssue } from '../../schema/report.ts'

/** CEL variables of budgets, which are evaluated after the request is read. */
export const budgetVariables: ReadonlySet<string> = new Set([
  'now',
  'request',
  'request.body',
  'source',
  'jwt',
  'basicAuth',
  'apiKey',
  'llmRequest',
  'llm',
])

const maxBudgets = 32

const budgetSchema = object(
  {
    name: budgetName,
    limit: exactlyOne(
      {
        usd: amountSchema,
        tokens: integer({ doc: 'LLM tokens, input and output together.', example: 1_000_000 }, { min: 1 }),
      },
      {},
      { doc: 'Limit in a window: US dollars at the prices of `config.modelCatalog`, or tokens.' },
    ),
    window: string(
      {
        doc: 'A length such as `1h`, `24h`, `7d` or `30d`, aligned to the Unix epoch, from `1m` to `366d`; or `day`, `week` (from Monday) or `month` of `timeZone`.',
        example: 'month',
      },
      { max: 64 },
    ),
    timeZone: optional(timeZoneSchema),
    key: optional(
      cel(
        {
          doc: 'Expression with a separate budget per value. Requests without a value share one.',
          default: 'one budget for all requests',
          example: 'apiKey.group',
        },
        [...budgetVariables],
      ),
    ),
    when: optional(
      cel(
        {
          doc: 'Condition of the requests that the budget is for. An evaluation error counts as true.',
          default: 'all requests',
          example: 'llm.requestModel.startsWith("gpt-5")',
        },
        [...budgetVariables],
      ),
    ),
    action: optional(
      enumeration(['block', 'audit'], {
        doc: '`block` refuses requests with 429 above the limit, `audit` counts and reports only.',
        default: 'block',
      }),
    ),
    warnAt: optional(warnAtSchema),
    failureMode: optional(
      enumeration(['failOpen', 'failClosed'], {
        doc: 'Behaviour without current totals of the database: `failOpen` counts in this process, `failClosed` refuses requests with 503.',
        default: 'failOpen',
        advanced: true,
      }),
    ),
  },
  { doc: 'Budget: an amount of money or tokens in a window of time.' },
)

export const budgetsSchema = list(
  budgetSchema,
  { doc: 'Budgets of LLM requests. A request must pass all of them.' },
  { max: maxBudgets },
)

export type BudgetsConfig = Infer<typeof budgetsSchema>
export type BudgetConfig = BudgetsConfig[number]

/** Normalises a valid budget (`checkBudgets`). */
export function budgetRule({ name, limit, window, timeZone, action, warnAt }: BudgetConfig): BudgetRule {
  const unit = limit.usd === undefined ? 'tokens' : 'usd'
  const amount = parseAmount(unit, limit.usd ?? limit.tokens) ?? 0
  return {
    name,
    unit,
    limit: amount,
    window: windowRule(window, timeZone),
    action: action ?? 'block',
    warnAt,
  }
}

function windowRule(window: string, timeZone = 'UTC'): WindowRule {
  if (isCalendarUnit(window)) return { kind: 'calendar', unit: window, timeZone }
  return { kind: 'fixed', lengthMs: parseDuration(window) ?? 1 }
}

function isCalendarUnit(window: string): window is 'day' | 'week' | 'month' {
  return window === 'day' || window === 'week' || window === 'month'
}

/** Whether budgets count money, which requires prices. */
export function countsMoney({ limit }: BudgetConfig): boolean {
  return limit.usd !== undefined
}

/** Reports errors beyond the schema: amounts, windows, names, expressions. */
export function checkBudgets(
  config: BudgetsConfig,
  variables: ReadonlySet<string>,
  report: ReportIssue,
): void {
  config.forEach(({ limit, window, timeZone, key, when }, index) => {
    if (limit.usd !== undefined)
      checkAmount('usd', limit.usd, (message) => report([index, 'limit', 'usd'], message))
    const reportWindow = (message: string) => report([index, 'window'], message)
    const rolling = isCalendarUnit(window) ? undefined : window
    if (rolling !== undefined) {
      if (parseDuration(rolling) === undefined)
        reportWindow('must be a duration such as 24h, or day, week or month')
      checkWindowLength(rolling, reportWindow)
    }
    checkTimeZone({ rolling, timeZone }, (message) => report([index, 'timeZone'], message))
    if (key !== undefined) checkCel(key, variables, (message) => report([index, 'key'], message))
    if (when !== undefined) checkCel(when, variables, (message) => report([index, 'when'], message))
  })
  checkBudgetNames(config, report)
}
