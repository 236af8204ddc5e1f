import { type CelProgram, evaluateBoolean } from '../cel/compile.ts'
import { CelEvaluationError } from '../cel/failure.ts'

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

/**
 * Decides by rules: any deny that holds refuses, every require must hold, and of the allow rules, if there are any, one.
 * The result names the ground for refusing: a rule, or `noneAllows`; undefined permits.
 */
export function decideBy<Ground, Rule extends Ground & { kind: RuleKind }, Scope>(
  rules: readonly Rule[],
  noneAllows: Ground,
  holds: Holds<Rule, Scope>,
): (scope: Scope) => Ground | undefined {
  const denies = rules.filter((rule) => rule.kind === 'deny')
  const requires = rules.filter((rule) => rule.kind === 'require')
  const allows = rules.filter((rule) => rule.kind === 'allow')
  return (scope) => {
    // What a rule counts as when it cannot be evaluated is always what refuses.
    for (const rule of denies) if (holds(rule, scope, true)) return rule
    for (const rule of requires) if (!holds(rule, scope, false)) return rule
    for (const rule of allows) if (holds(rule, scope, false)) return undefined
    return allows.length === 0 ? undefined : noneAllows
  }
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
