import { checkCel } from '../../../../cel/checked.ts'
import { ruleSource } from '../../../../pipeline/rules.ts'
import type { Path } from '../../../../schema/path.ts'
import { fileValue } from '../../../own-kinds/enumerations.ts'
import type { RoutePolicies } from '../../plan.ts'
import { type Field, type FieldKind, fieldOf, type Mistake } from './field.ts'

type Rules = NonNullable<RoutePolicies['authorization']>['rules']
type Rule = Rules[number]

/** `matchExpressions` with an action, or `rules`, as in the cluster. */
type Written = {
  readonly action?: 'Allow' | 'Deny' | 'Require' | undefined
  readonly matchExpressions?: readonly string[] | undefined
  readonly rules?: readonly Exclude<Rule, string>[] | undefined
}

/** `traffic.authorization`. */
export const authorizationField: FieldKind = {
  path: 'traffic.authorization',
  traffic: ['http', 'llm', 'mcp'],
  levels: 'all',
  translate({ traffic }) {
    const written = traffic?.authorization
    return written && rulesField('authorization', written, ['traffic', 'authorization'])
  },
}

/** `backend.mcp.mcpAuthorization`. */
export const mcpAuthorizationField: FieldKind = {
  path: 'backend.mcp.mcpAuthorization',
  traffic: ['mcp'],
  levels: 'all',
  translate({ backend }) {
    const written = backend?.mcp?.mcpAuthorization
    return written && rulesField('mcpAuthorization', written, ['backend', 'mcp', 'mcpAuthorization'])
  },
}

function rulesField(name: 'authorization' | 'mcpAuthorization', written: Written, path: Path): Field {
  const { rules, mistakes, rename } = translateRules(written, path)
  return { ...fieldOf({ [name]: { rules } }, { place: [name], path, rename }), mistakes }
}

/** Translates rules at a path below `spec`. `rename` returns the path of a mistake in the Config. */
export function translateRules({ action, matchExpressions, rules }: Written, path: Path) {
  const translated: Exclude<Rule, string>[] = matchExpressions?.map((source) =>
    ruleOf(action ?? 'Allow', source),
  ) ?? [...(rules ?? [])]
  const mistakes: Mistake[] = []
  if (rules !== undefined && action !== undefined)
    mistakes.push({ path: [...path, 'action'], message: 'is only valid with matchExpressions' })
  const allowed = sourcesOf(translated, 'allow')
  if (allowed.length > 1) {
    const combined = anyOf(allowed)
    checkLength(combined, (message) =>
      mistakes.push({ path, message: `the allow rules together are not usable: ${message}` }),
    )
  }
  const rename = (rest: Path): Path =>
    matchExpressions === undefined ? rest : ['matchExpressions', ...rest.slice(1, 2)]
  return { rules: translated, mistakes, rename }
}

function ruleOf(action: NonNullable<Written['action']>, source: string): Exclude<Rule, string> {
  switch (fileValue(action)) {
    case 'allow':
      return { allow: source }
    case 'deny':
      return { deny: source }
    case 'require':
      return { require: source }
  }
}

/** Reports expressions over the limits of CEL; unknown variables are reported elsewhere. */
function checkLength(source: string, report: (message: string) => void): void {
  checkCel(source, new Set(), (message) => {
    if (/^expression is /.test(message)) report(message)
  })
}

/**
 * Merges rules of levels so that all levels apply: the allow rules of each level become one require rule if
 * there are allow rules on several levels.
 */
export function mergeRules(levels: readonly Rules[]): Rules {
  const withAllow = levels.filter((rules) => sourcesOf(rules, 'allow').length > 0)
  if (withAllow.length < 2) return levels.flat()
  return levels.flatMap((rules): Rules => {
    const allowed = sourcesOf(rules, 'allow')
    const others = rules.filter((rule) => ruleSource(rule).kind !== 'allow')
    return allowed.length === 0 ? others : [{ require: anyOf(allowed) }, ...others]
  })
}

function sourcesOf(rules: Rules, kind: 'allow'): string[] {
  return rules.flatMap((rule) => {
    const { kind: found, source } = ruleSource(rule)
    return found === kind ? [source] : []
  })
}

/**
 * Combines valid expressions with `||`, as a balanced tree within the nesting limit of CEL. A comment at the
 * end of a valid expression ends with a line break.
 */
function anyOf(sources: readonly string[]): string {
  const [first = 'false', second] = sources
  if (second === undefined) return first
  const middle = Math.ceil(sources.length / 2)
  const sides = [sources.slice(0, middle), sources.slice(middle)].map(anyOf)
  return sides.map((side) => `(${side})`).join(' || ')
}
