import type { Clock } from '../../lib/clock.ts'
import type { KeyedAccounts } from '../../lib/planes/keyed-accounts.ts'
import type { Reply } from '../../net/http-client/send.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { CallEstimate, Exchange, KeyBudgets } from '../../pipeline/exchange.ts'
import type { BudgetStatus } from '../../pipeline/limits/limits.ts'
import type { Policy } from '../../pipeline/policy.ts'
import { keyBudgetRule } from '../../schema/budget.ts'
import type { Log } from '../../telemetry/log.ts'
import { accountPrefix, budgetAccounts } from './accounts.ts'
import { type Budget, compileBudget, compileKeyBudget, unitOf } from './budget.ts'
import type { BudgetsConfig } from './config.ts'
import { type Held, holdOf, type Place, refusedStatus, reportLevels } from './hold.ts'
import {
  formatWarnings,
  refuseLargeCharge,
  refuseOverBudget,
  refuseUnavailable,
  warningHeader,
} from './reply.ts'

/** Budgets of one scope. */
export type ScopedBudgets = { readonly scope: string; readonly budgets: BudgetsConfig }

/** Age of the latest report of the database from which totals are unknown. */
const staleAfterMs = 5_000

type Step = {
  readonly accounts: KeyedAccounts
  readonly clock: Clock
  readonly log: Log
  /** Budgets of the configuration. */
  readonly budgets: readonly Budget[]
  budgetsOf(key: KeyBudgets): readonly Budget[]
  warnUnpriced(model: string): void
}

/**
 * Compiles the budgets of all scopes of a route, from general to specific, and those of virtual keys. They
 * are one step: a refused request has reservations in none of them.
 */
export function compileBudgets(scopes: readonly ScopedBudgets[], context: CompileContext): Policy {
  const { clock, log } = context
  const ofKeys = new WeakMap<KeyBudgets, readonly Budget[]>()
  const step: Step = {
    accounts: budgetAccounts(context),
    clock,
    log,
    budgets: scopes.flatMap(({ scope, budgets }) =>
      budgets.map((config) => compileBudget(config, scope, context)),
    ),
    budgetsOf(key) {
      let compiled = ofKeys.get(key)
      if (compiled === undefined) {
        compiled = key.budgets.map((budget) => compileKeyBudget(keyBudgetRule(budget), key.keyId, context))
        ofKeys.set(key, compiled)
      }
      return compiled
    },
    warnUnpriced: createUnpricedWarning(log),
  }
  return {
    name: 'budgets',
    onRequest: (exchange) => (isCharged(exchange) ? admit(exchange, step) : undefined),
    onReply(exchange, reply) {
      const warnings = exchange.budgets && formatWarnings(exchange.budgets, clock)
      if (warnings !== undefined) reply.headers[warningHeader] = warnings
      return reply
    },
    onEnd(exchange) {
      settle(exchange, step)
      correct(exchange, step)
    },
  }
}

/** Model lists, token counts and calls about files are free. */
function isCharged({ facts, llm }: Exchange): boolean {
  const operation = llm?.operation.operation
  if (llm?.isFree === true) return false
  return facts.llm !== undefined && operation !== 'list_models' && operation !== 'count_tokens'
}

type Request = {
  readonly exchange: Exchange
  readonly step: Step
  readonly now: number
  readonly estimate: CallEstimate
  readonly statuses: BudgetStatus[]
}

/** Reserves the estimated amounts in all budgets, or in none. */
function admit(exchange: Exchange, step: Step): Reply | undefined {
  const { budgets: keys } = exchange.auth
  if (step.budgets.length === 0 && keys === undefined) return undefined
  const statuses: BudgetStatus[] = []
  exchange.budgets = statuses
  const estimate = exchange.llm?.estimate?.(exchange) ?? nothing
  const request: Request = { exchange, step, now: step.clock.now(), estimate, statuses }
  const refusal = admitTo(step.budgets, request) ?? admitToKeys(keys, request)
  if (refusal !== undefined) for (const status of statuses) status.settle(nothing)
  return refusal
}

const nothing = { tokens: 0, picodollars: 0, isPriced: true } as const

function admitToKeys(keys: readonly KeyBudgets[] | undefined, request: Request): Reply | undefined {
  if (keys === undefined) return undefined
  for (const key of keys) {
    const refusal = admitTo(request.step.budgetsOf(key), request)
    if (refusal !== undefined) return refusal
  }
  return undefined
}

function admitTo(budgets: readonly Budget[], request: Request): Reply | undefined {
  for (const budget of budgets) {
    const refusal = budget.appliesTo(request.exchange) ? reserve(budget, request) : undefined
    if (refusal !== undefined) return refusal
  }
  return undefined
}

/** Reserves the estimated amount in one budget. Returns the reply of a refusal. */
function reserve(budget: Budget, request: Request): Reply | undefined {
  const { exchange, step, now, estimate, statuses } = request
  const { rule, levels } = budget
  const { accounts, log } = step
  const window = budget.windowAt(now)
  const value = budget.valueOf(exchange)
  const place: Place = { budget, value, window }
  const isUnlimited = rule.action === 'audit' || exchange.llm?.isCommitted === true
  const mustKnow = budget.failsClosed && !isUnlimited
  if (mustKnow && isStale(step)) return refuseUnknown(place, request)
  const amount = rule.unit === 'tokens' ? estimate.tokens : (estimate.picodollars ?? 0)
  const reservation = accounts.reserve(budget.accountOf(window, value), {
    limit: rule.limit,
    amount,
    isUnlimited,
    mustFit: estimate.isCharge,
    levels,
    endsAt: window.end,
    now,
  })
  if (reservation.kind === 'full') {
    if (mustKnow) return refuseUnknown(place, request)
    budget.meter.count('uncounted')
    statuses.push(holdOf(place, unknownAmounts, step))
    return undefined
  }
  const { used, reserved, reference, crossed } = reservation
  reportLevels(place, crossed, log)
  const held: Held = { used, reserved, reference, estimate: amount }
  if (reservation.kind === 'reserved') {
    statuses.push(holdOf(place, held, step))
    return undefined
  }
  const status = refusedStatus(place, { ...held, estimate: 0 }, 'refused')
  statuses.push(status)
  exchange.log.refusedBy = `budget: ${budget.label}`
  return used < rule.limit && estimate.isCharge
    ? refuseLargeCharge(exchange, status, amount)
    : refuseOverBudget(exchange, status, now)
}

const unknownAmounts: Held = { used: 0, reserved: 0, estimate: 0, reference: undefined }

function refuseUnknown(place: Place, { exchange, statuses }: Request): Reply {
  const { label, rule } = place.budget
  statuses.push(refusedStatus(place, unknownAmounts, 'unavailable'))
  exchange.log.refusedBy = `budget: ${label} unavailable`
  return refuseUnavailable(exchange, rule.name)
}

/** Whether the database has not reported for a time, or not yet. Without a database totals are known. */
function isStale({ accounts, clock }: Step): boolean {
  const reports = accounts.reports()
  if (reports.kind === 'unexpected') return false
  return reports.kind === 'expected' || clock.monotonic() - reports.at > staleAfterMs
}

/** Replaces the reservations by the amounts of the call, which are 0 if no provider was called. */
function settle(exchange: Exchange, step: Step): void {
  const { budgets, facts } = exchange
  if (budgets === undefined) return
  const tokens = Math.max(0, Math.ceil(facts.usage?.totalTokens ?? 0))
  const { costPicodollars: picodollars = 0, costStatus } = facts.llm ?? {}
  const isPriced = tokens === 0 || costStatus === 'exact' || costStatus === 'estimated'
  const call = { tokens, picodollars, isPriced }
  for (const status of budgets) {
    const charge = status.settle(call)
    if (status.unit === 'usd' && !isPriced) step.warnUnpriced(facts.llm?.configuredModel ?? '')
    if (charge === undefined) continue
    exchange.charges ??= []
    exchange.charges.push(charge)
  }
}

/** Corrects the charges of an earlier call, in the windows of that call. */
function correct(exchange: Exchange, { accounts, clock }: Step): void {
  const settlement = exchange.llm?.settlement
  if (settlement === undefined) return
  // Without a database, the accounts of this process have the charges of its own calls only.
  if (!settlement.isOwn && accounts.reports().kind === 'unexpected') return
  const now = clock.now()
  for (const place of settlement.budgets) {
    const { budget, value, windowStart, windowEnd } = place
    const amount = unitOf(budget) === 'tokens' ? settlement.tokens : settlement.picodollars
    if (amount === 0) continue
    if (windowEnd > now)
      accounts.add(accountPrefix(budget, windowStart) + value, amount, { endsAt: windowEnd, now })
    exchange.charges ??= []
    exchange.charges.push({ ...place, amount })
  }
}

const maxWarnedModels = 1_000

/** Logs once for each model without a price. */
function createUnpricedWarning(log: Log): (model: string) => void {
  const warned = new Set<string>()
  return (model) => {
    if (warned.has(model) || warned.size >= maxWarnedModels) return
    warned.add(model)
    log.warn({ model }, 'call without a price not charged to budgets in US dollars')
  }
}
