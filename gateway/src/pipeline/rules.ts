import { type CelProgram, evaluateBoolean } from '../cel/cel.ts'
import { CelEvaluationError, describeFailure } from '../cel/failure.ts'
import { isWorkBudgetExceeded, withSharedWorkBudget, workSpent } from '../cel/work-budget.ts'
import type { JsonObject } from '../lib/json/json.ts'
import type { WorkQueue } from '../lib/scheduling/work-queue.ts'

export type RuleKind = 'allow' | 'deny' | 'require'

/** A rule as configured; a plain string is an allow rule. */
type WrittenRule =
  | string
  | { allow: string; deny?: undefined; require?: undefined }
  | { deny: string; allow?: undefined; require?: undefined }
  | { require: string; allow?: undefined; deny?: undefined }

/** The expression of a rule and its path within the rule. */
export function ruleSource(rule: WrittenRule): { kind: RuleKind; source: string; path: string[] } {
  if (typeof rule === 'string') return { kind: 'allow', source: rule, path: [] }
  if (rule.allow !== undefined) return { kind: 'allow', source: rule.allow, path: ['allow'] }
  if (rule.deny !== undefined) return { kind: 'deny', source: rule.deny, path: ['deny'] }
  return { kind: 'require', source: rule.require, path: ['require'] }
}

/** Evaluates a rule; returns `fallback` if its expression fails. */
export type EvaluateRule<Rule, Scope> = (rule: Rule, scope: Scope, fallback: boolean) => boolean

/** A negative decision. `reason` is the rule, or a value for "no allow rule matched". */
export type Denial<Reason> = {
  reason: Reason
  /** A rule reached the work limit, so the denial may not reflect the content of the request. */
  exceedsWork: boolean
}

/** Decides a request by rules; undefined permits it. */
export type Decide<Reason, Scope> = (scope: Scope) => Denial<Reason> | undefined

/**
 * Compiles rules to one decision: a matching deny rule refuses, every require rule must match, and if allow
 * rules exist, one must match. All rules share the work limit of one evaluation.
 */
export function compileDecision<Reason, Rule extends Reason & { kind: RuleKind }, Scope>(
  rules: readonly Rule[],
  noAllowRule: Reason,
  evaluate: EvaluateRule<Rule, Scope>,
): Decide<Reason, Scope> {
  const ordered = sortRules(rules)
  const last = defaultReason(rules, noAllowRule)
  return (scope) =>
    withSharedWorkBudget(() => {
      for (const rule of ordered) {
        const verdict = applyRule(rule, scope, evaluate)
        if (verdict === 'permit') return undefined
        if (verdict === 'refuse') return { reason: rule, exceedsWork: isWorkBudgetExceeded() }
      }
      return last && { reason: last, exceedsWork: isWorkBudgetExceeded() }
    })
}

/** Work units evaluated inline; the remaining rules yield to other work of the event loop. */
const maxInlineWork = 5_000_000

/**
 * As `compileDecision`, but each rule has the work budget of an evaluation. After much work, the remaining
 * rules run as steps of the work queue.
 */
export function compileYieldingDecision<Reason, Rule extends Reason & { kind: RuleKind }, Scope>(
  rules: readonly Rule[],
  noAllowRule: Reason,
  { evaluate, workQueue }: { evaluate: EvaluateRule<Rule, Scope>; workQueue: WorkQueue },
): (scope: Scope) => Denial<Reason> | undefined | Promise<Denial<Reason> | undefined> {
  const ordered = sortRules(rules)
  const last = defaultReason(rules, noAllowRule)

  function* decideFrom(start: number, scope: Scope, exceededBefore: boolean) {
    let exceedsWork = exceededBefore
    for (const rule of ordered.slice(start)) {
      const verdict = applyRule(rule, scope, evaluate)
      exceedsWork ||= isWorkBudgetExceeded()
      if (verdict === 'permit') return undefined
      if (verdict === 'refuse') return { reason: rule, exceedsWork: isWorkBudgetExceeded() }
      yield
    }
    return last && { reason: last, exceedsWork }
  }

  return (scope) => {
    let work = 0
    let exceedsWork = false
    for (const [index, rule] of ordered.entries()) {
      if (work > maxInlineWork) return workQueue.run(decideFrom(index, scope, exceedsWork))
      const verdict = applyRule(rule, scope, evaluate)
      exceedsWork ||= isWorkBudgetExceeded()
      if (verdict === 'permit') return undefined
      if (verdict === 'refuse') return { reason: rule, exceedsWork: isWorkBudgetExceeded() }
      work += workSpent()
    }
    return last && { reason: last, exceedsWork: exceedsWork }
  }
}

function sortRules<Rule extends { kind: RuleKind }>(rules: readonly Rule[]): readonly Rule[] {
  const of = (kind: RuleKind) => rules.filter((rule) => rule.kind === kind)
  return [...of('deny'), ...of('require'), ...of('allow')]
}

/** The reason for a denial if no rule decides. */
function defaultReason<Reason>(
  rules: readonly { kind: RuleKind }[],
  noAllowRule: Reason,
): Reason | undefined {
  return rules.some(({ kind }) => kind === 'allow') ? noAllowRule : undefined
}

function applyRule<Rule extends { kind: RuleKind }, Scope>(
  rule: Rule,
  scope: Scope,
  evaluate: EvaluateRule<Rule, Scope>,
): 'refuse' | 'permit' | undefined {
  // Fail closed: the fallback of each kind is the value that refuses.
  switch (rule.kind) {
    case 'deny':
      return evaluate(rule, scope, true) ? 'refuse' : undefined
    case 'require':
      return evaluate(rule, scope, false) ? undefined : 'refuse'
    case 'allow':
      return evaluate(rule, scope, false) ? 'permit' : undefined
  }
}

/** The suffix of a log entry about a denial. */
export function denialSuffix({ exceedsWork }: Denial<unknown>): string {
  return exceedsWork ? ' (a rule takes too much work on this request)' : ''
}

/** Evaluates a boolean expression; returns `fallback` if it fails or its value is not a boolean. */
export function evaluateOrDefault(program: CelProgram, variables: object, fallback: boolean): boolean {
  try {
    return evaluateBoolean(program, variables)
  } catch (error) {
    if (error instanceof CelEvaluationError) return fallback
    throw error
  }
}

/** Whether an expression reads the request body. */
export function needsBody({ roots, readsBody }: CelProgram): boolean {
  return readsBody || roots.has('llmRequest') || roots.has('llm') || roots.has('a2a')
}

/** Limits of an explanation: rules, characters of an expression, work units over all rules (about 2 ms). */
const maxExplainedRules = 20
const maxExpressionText = 300
const maxExplanationWork = 2_000_000

/**
 * Evaluates rules again for an explanation: source, value or error of each, and whether it refuses on its
 * own. Errors contain names of the expression, never values.
 */
export function explainRules(
  rules: readonly { readonly name: string; readonly kind: RuleKind; readonly program: CelProgram }[],
  variables: object,
): JsonObject[] {
  return withSharedWorkBudget(
    () =>
      rules.slice(0, maxExplainedRules).map(({ name, kind, program }) => {
        const { source } = program
        const expression =
          source.length > maxExpressionText ? `${source.slice(0, maxExpressionText)}…` : source
        const result = resultOf(program, variables)
        const refuses = kind === 'deny' ? result.value !== false : kind === 'require' && result.value !== true
        return { rule: name, expression, ...result, refuses }
      }),
    maxExplanationWork,
  )
}

function resultOf(program: CelProgram, variables: object): { value?: boolean; error?: string } {
  try {
    return { value: evaluateBoolean(program, variables) }
  } catch (error) {
    if (!(error instanceof CelEvaluationError)) throw error
    return {
      error: isWorkBudgetExceeded() ? 'not evaluated: too much work' : describeFailure(error, program.source),
    }
  }
}
