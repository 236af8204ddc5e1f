import { validatePart } from '../../../../config/load/validate.ts'
import { checkRoutePolicies, respondsAlways } from '../../../../policies/registry/check.ts'
import { formatPath, type Path } from '../../../../schema/path.ts'
import { printable } from '../../../../schema/printable.ts'
import type { BackendTraffic } from '../../plan.ts'
import type { CheckPolicies, PolicyMistake, RoutePolicies } from './rule-plan.ts'

/**
 * Bound of the keys of results. A validation takes about 0.25 ms, and most routes have the policies of
 * others. Policies with key sets or API keys are long.
 */
const maxCharacters = 16_000_000

type Results = Map<BackendTraffic, { readonly mistake: PolicyMistake | undefined }>

/** Creates a check that stores its results by content. */
export function createPolicyCheck(): CheckPolicies {
  const byNode = new WeakMap<RoutePolicies, Results>()
  const byContent = new Map<string, PolicyMistake | undefined>()
  let characters = 0

  function checkContent(policies: RoutePolicies, traffic: BackendTraffic, names: readonly string[]) {
    const key = `${traffic} ${JSON.stringify(policies)}`
    if (byContent.has(key)) return byContent.get(key)
    const mistake = validate(policies, traffic, names)
    characters += key.length
    if (characters > maxCharacters) {
      byContent.clear()
      characters = key.length
    }
    byContent.set(key, mistake)
    return mistake
  }

  return (policies, traffic, names) => {
    const results: Results = byNode.get(policies) ?? new Map()
    const known = results.get(traffic)
    if (known !== undefined) return known.mistake
    const mistake = checkContent(policies, traffic, names)
    byNode.set(policies, results.set(traffic, { mistake }))
    return mistake
  }
}

type Issue = { readonly path: Path; readonly message: string }

/** Policies that are translated from strings alone: every mistake in them is one beyond the schema. */
const ofStrings: ReadonlySet<string> = new Set<keyof RoutePolicies>([
  ...(['requestHeaderModifier', 'responseHeaderModifier', 'urlRewrite'] as const),
])

function validate(
  policies: RoutePolicies,
  traffic: BackendTraffic,
  names: readonly string[],
): PolicyMistake | undefined {
  const hasStringsOnly = Object.keys(policies).every((key) => ofStrings.has(key))
  const [issue] = hasStringsOnly ? issuesBeyondSchema(policies, traffic) : allIssues(policies, traffic, names)
  return (
    issue && { policy: String(issue.path[0] ?? ''), message: `${formatPath(issue.path)}: ${issue.message}` }
  )
}

/** For 10,000 routes with different header modifiers, this saves 2.5 s of CPU at the first translation. */
function issuesBeyondSchema(policies: RoutePolicies, traffic: BackendTraffic): readonly Issue[] {
  const issues: Issue[] = []
  checkRoutePolicies(policies, traffic, (path, message) => issues.push({ path, message: printable(message) }))
  return issues
}

/** Policies that respond to every request are those of a route without backends. */
function allIssues(
  policies: RoutePolicies,
  traffic: BackendTraffic,
  names: readonly string[],
): readonly Issue[] {
  const backends = names.map((name) => ({ name, host: 'localhost:80' }))
  if (!respondsAlways(policies))
    return validatePart({ kind: 'policies', of: traffic, value: policies }, { backends })
  const route = { gateways: 'g', policies }
  return validatePart({ kind: 'route', value: route }, { gateways: { g: { port: 80 } }, backends }).map(
    ({ path, message }) => ({ path: path.slice(1), message }),
  )
}
