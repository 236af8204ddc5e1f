import { validatePart } from '../../../../config/load/validate.ts'
import { formatPath } from '../../../../schema/path.ts'
import type { BackendTraffic } from '../../plan.ts'
import type { CheckPolicies, PolicyMistake, RoutePolicies } from './rule-plan.ts'

/** A validation takes about 0.25 ms, and most routes have the policies of others. */
const maxResults = 20_000

type Results = Map<BackendTraffic, { readonly mistake: PolicyMistake | undefined }>

/** Creates a check that stores its results by content. */
export function createPolicyCheck(): CheckPolicies {
  const byNode = new WeakMap<RoutePolicies, Results>()
  const byContent = new Map<string, PolicyMistake | undefined>()

  function checkContent(policies: RoutePolicies, traffic: BackendTraffic, names: readonly string[]) {
    const key = `${traffic} ${JSON.stringify(policies)}`
    if (byContent.has(key)) return byContent.get(key)
    const mistake = validate(policies, traffic, names)
    if (byContent.size >= maxResults) byContent.clear()
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

/** Policies that respond to every request are those of a route without backends. */
function validate(
  policies: RoutePolicies,
  traffic: BackendTraffic,
  names: readonly string[],
): PolicyMistake | undefined {
  const backends = names.map((name) => ({ name, host: 'localhost:80' }))
  const responds = (policies.requestRedirect ?? policies.directResponse) !== undefined
  const [issue] = responds
    ? validatePart(
        { kind: 'route', value: { gateways: 'g', policies } },
        { gateways: { g: { port: 80 } }, backends },
      ).map(({ path, message }) => ({ path: path.slice(1), message }))
    : validatePart({ kind: 'policies', of: traffic, value: policies }, { backends })
  return (
    issue && { policy: String(issue.path[0] ?? ''), message: `${formatPath(issue.path)}: ${issue.message}` }
  )
}
