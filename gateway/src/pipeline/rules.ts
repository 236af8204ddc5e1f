import { type CelProgram, evaluateBoolean } from '../cel/compile.ts'
import { CelEvaluationError } from '../cel/failure.ts'
import { isBeyondWork, shareWork, workDone } from '../cel/work.ts'
import type { Turns } from '../lib/scheduling/turns.ts'

export type RuleKind = 'allow' | 'deny' | 'require'

/** A rule as it is written: a text allows. */
type WrittenRule =
  | string
  | { allow: string; deny?: undefined; require?: undefined }
  | { deny: string; allow?: undefined; require?: undefined }
  | { require: string; allow?: undefined; deny?: undefined }

/** The expression of a rule, and where it stands below the rule. */
export function ruleSource(rule: WrittenRule): { kind: RuleKind; source: string; path: string[] } {
  if (typeof rule === 'string') return { kind: 'allow', source: rule, path: [] }
  if (rule.allow !== undefined) return { kind: 'allow', source: rule.allow, path: ['allow'] }
  if (rule.deny !== undefined) return { kind: 'deny', source: rule.deny, path: ['deny'] }
  return { kind: 'require', source: rule.require, path: ['require'] }
}

/** Whether a rule is true; `otherwise` where it cannot be evaluated. */
export type Holds<Rule, Scope> = (rule: Rule, scope: Scope, otherwise: boolean) => boolean

/** The ground for a refusal: a rule, or that no allow rule holds. */
export type Refusal<Ground> = {
  ground: Ground
  /** A rule ended at the bound on work, so the refusal may be no decision about the request. */
  beyondWork: boolean
}

/** Decides by rules; undefined permits. */
export type Decide<Ground, Scope> = (scope: Scope) => Refusal<Ground> | undefined

/**
 * Decides by rules: any deny that holds refuses, every require must hold, and of the allow rules, if there are any, one.
 * All rules together have the work of one evaluation.
 */
export function decideBy<Ground, Rule extends Ground & { kind: RuleKind }, Scope>(
  rules: readonly Rule[],
  noneAllows: Ground,
  holds: Holds<Rule, Scope>,
): Decide<Ground, Scope> {
  const ordered = orderOf(rules)
  const last = lastOf(rules, noneAllows)
  return (scope) =>
    shareWork(() => {
      for (const rule of ordered) {
        const verdict = judge(rule, scope, holds)
        if (verdict === 'permit') return undefined
        if (verdict === 'refuse') return { ground: rule, beyondWork: isBeyondWork() }
      }
      return last && { ground: last, beyondWork: isBeyondWork() }
    })
}

/** Work after which further rules wait for their turn. */
const maxInlineWork = 5_000_000

/** As `decideBy`, but each rule has the work of an evaluation: rules after much work run in turns with traffic. */
export function decideInTurns<Ground, Rule extends Ground & { kind: RuleKind }, Scope>(
  rules: readonly Rule[],
  noneAllows: Ground,
  { holds, turns }: { holds: Holds<Rule, Scope>; turns: Turns },
): (scope: Scope) => Refusal<Ground> | undefined | Promise<Refusal<Ground> | undefined> {
  const ordered = orderOf(rules)
  const last = lastOf(rules, noneAllows)

  function* decideFrom(start: number, scope: Scope, wasBeyond: boolean) {
    let beyondWork = wasBeyond
    for (const rule of ordered.slice(start)) {
      const verdict = judge(rule, scope, holds)
      beyondWork ||= isBeyondWork()
      if (verdict === 'permit') return undefined
      if (verdict === 'refuse') return { ground: rule, beyondWork: isBeyondWork() }
      yield
    }
    return last && { ground: last, beyondWork }
  }

  return (scope) => {
    let work = 0
    let beyondWork = false
    for (const [index, rule] of ordered.entries()) {
      if (work > maxInlineWork) return turns.run(decideFrom(index, scope, beyondWork))
      const verdict = judge(rule, scope, holds)
      beyondWork ||= isBeyondWork()
      if (verdict === 'permit') return undefined
      if (verdict === 'refuse') return { ground: rule, beyondWork: isBeyondWork() }
      work += workDone()
    }
    return last && { ground: last, beyondWork }
  }
}

function orderOf<Rule extends { kind: RuleKind }>(rules: readonly Rule[]): readonly Rule[] {
  const of = (kind: RuleKind) => rules.filter((rule) => rule.kind === kind)
  return [...of('deny'), ...of('require'), ...of('allow')]
}

/** The ground where no rule decides. */
function lastOf<Ground>(rules: readonly { kind: RuleKind }[], noneAllows: Ground): Ground | undefined {
  return rules.some(({ kind }) => kind === 'allow') ? noneAllows : undefined
}

function judge<Rule extends { kind: RuleKind }, Scope>(
  rule: Rule,
  scope: Scope,
  holds: Holds<Rule, Scope>,
): 'refuse' | 'permit' | undefined {
  // What a rule counts as when it cannot be evaluated is always what refuses.
  switch (rule.kind) {
    case 'deny':
      return holds(rule, scope, true) ? 'refuse' : undefined
    case 'require':
      return holds(rule, scope, false) ? undefined : 'refuse'
    case 'allow':
      return holds(rule, scope, false) ? 'permit' : undefined
  }
}

/** The suffix of a log entry about a refusal. */
export function reasonOf({ beyondWork }: Refusal<unknown>): string {
  return beyondWork ? ' (a rule takes too much work on this request)' : ''
}

/** The answer of an expression; `otherwise` where it cannot be evaluated or is no boolean. */
export function evaluateOr(program: CelProgram, variables: object, otherwise: boolean): boolean {
  try {
    return evaluateBoolean(program, variables)
  } catch (error) {
    if (error instanceof CelEvaluationError) return otherwise
    throw error
  }
}

/** Whether an expression can be evaluated only after the request's body is read. */
export function needsBody({ roots, readsBody }: CelProgram): boolean {
  return readsBody || roots.has('llmRequest') || roots.has('llm')
}
