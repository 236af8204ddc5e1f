import { hash } from 'node:crypto'
import type { CelProgram } from '../../cel/cel.ts'
import { compileCheckedCel, compileCheckedKey } from '../../cel/checked.ts'
import { CelEvaluationError } from '../../cel/failure.ts'
import {
  createWindowSource,
  type FindWindow,
  type TimeWindow,
  type WindowSource,
} from '../../lib/time-window.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import { hashedValue, mayBeCredential } from '../../pipeline/recording/credential-values.ts'
import { evaluateOrDefault } from '../../pipeline/rules.ts'
import type { BudgetRule } from '../../schema/budget.ts'
import type { BudgetMeter } from '../../telemetry/metrics/limits.ts'
import { accountPrefix } from './accounts.ts'
import { type BudgetConfig, budgetRule, budgetVariables } from './config.ts'

/** A compiled budget. */
export type Budget = {
  /** Identity in the ledger: scope or key, name and unit. */
  readonly identity: string
  /** Scope and name in metrics and logs. */
  readonly label: string
  readonly rule: BudgetRule
  readonly failsClosed: boolean
  /** Amounts that are reported on first use in a window: warning, limit. */
  readonly levels: readonly [warning: number, limit: number]
  readonly meter: BudgetMeter
  /** Whether the budget is for a request. */
  appliesTo(exchange: Exchange): boolean
  valueOf(exchange: Exchange): string
  windowAt: FindWindow
  /** Key of the account of a value in a window. */
  accountOf(window: TimeWindow, value: string): string
}

/** Values of the ledger are shorter. */
const longestValue = 256

/** Compiles a budget of a scope. */
export function compileBudget(
  config: BudgetConfig,
  scope: string,
  context: Pick<CompileContext, 'metrics' | 'retained'>,
): Budget {
  const rule = budgetRule(config)
  const label = `${scope}: ${rule.name}`
  const when = config.when === undefined ? undefined : compileCheckedCel(config.when, budgetVariables)
  const key = config.key === undefined ? undefined : compileCheckedKey(config.key, budgetVariables)
  const isSecret = key !== undefined && mayBeCredential(key)
  return {
    ...createBudget(rule, identityOf(scope, rule), windowSource(context)),
    label,
    failsClosed: config.failureMode === 'failClosed',
    meter: context.metrics.budget(label),
    // A failed check denies: the budget applies.
    appliesTo: when === undefined ? always : ({ facts }) => evaluateOrDefault(when, facts, true),
    valueOf: key === undefined ? noValue : (exchange) => keyValue(key, exchange, isSecret),
  }
}

/** Compiles a budget of a virtual key, which has one value. */
export function compileKeyBudget(
  rule: BudgetRule,
  keyId: string,
  context: Pick<CompileContext, 'metrics' | 'retained'>,
): Budget {
  const label = `key: ${rule.name}`
  return {
    ...createBudget(rule, identityOf(`key/${keyId}`, rule), windowSource(context)),
    label,
    failsClosed: false,
    meter: context.metrics.budget(label),
    appliesTo: always,
    valueOf: noValue,
  }
}

/** Identity of a budget in the ledger. A budget in another unit has another count. */
export function identityOf(scope: string, { name, unit }: Pick<BudgetRule, 'name' | 'unit'>): string {
  return `${scope}/${name}/${unit}`
}

/** Unit of a budget by its identity. */
export function unitOf(identity: string): BudgetRule['unit'] {
  return identity.endsWith('/tokens') ? 'tokens' : 'usd'
}

function windowSource({ retained }: Pick<CompileContext, 'retained'>): WindowSource {
  return retained('windows of budgets', createWindowSource)
}

function createBudget(
  rule: BudgetRule,
  identity: string,
  windowsOf: WindowSource,
): Pick<Budget, 'identity' | 'rule' | 'levels' | 'windowAt' | 'accountOf'> {
  const windowAt = windowsOf(rule.window)
  let prefix = ''
  let prefixStart = Number.NaN
  return {
    identity,
    rule,
    levels: [rule.warnAt === undefined ? Number.POSITIVE_INFINITY : rule.limit * rule.warnAt, rule.limit],
    windowAt,
    accountOf({ start }, value) {
      if (start !== prefixStart) {
        prefix = accountPrefix(identity, start)
        prefixStart = start
      }
      return prefix + value
    },
  }
}

function always(): boolean {
  return true
}

function noValue(): string {
  return ''
}

/**
 * Value of the key expression. Requests without a usable value share one budget, so that a provoked
 * evaluation error neither bypasses the budget nor ends the request.
 */
function keyValue(key: CelProgram, { facts }: Exchange, isSecret: boolean): string {
  const text = textOf(key, facts)
  if (text === '' || (!isSecret && text.length <= longestValue && text.isWellFormed())) return text
  return hashedValue(text)
}

function textOf(key: CelProgram, facts: object): string {
  try {
    const value = key.evaluate(facts)
    if (typeof value === 'string') return value
    if (value instanceof Uint8Array) return hash('sha256', value, 'hex')
    return value === null || value === undefined || typeof value === 'object' ? '' : String(value)
  } catch (error) {
    if (error instanceof CelEvaluationError) return ''
    throw error
  }
}
