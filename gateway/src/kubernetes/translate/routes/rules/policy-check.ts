import { validatePart } from '../../../../config/load/validate.ts'
import { formatPath } from '../../../../schema/path.ts'
import type { BackendTraffic } from '../../plan.ts'
import type { RoutePolicies } from './rule-plan.ts'

/**
 * Checks policies of routes of a kind of traffic; returns the first mistake with its path. `names` are those
 * of the backends that the policies refer to.
 */
export type CheckPolicies = (
  policies: RoutePolicies,
  traffic: BackendTraffic,
  names: readonly string[],
) => string | undefined

/** A validation takes about 0.25 ms, and most routes have the policies of others. */
const maxResults = 20_000

/** Creates a check that remembers its results by content. */
export function createPolicyCheck(): CheckPolicies {
  const byNode = new WeakMap<RoutePolicies, Map<BackendTraffic, { mistake: string | undefined }>>()
  const byContent = new Map<string, string | undefined>()

  function checkContent(policies: RoutePolicies, traffic: BackendTraffic, names: readonly string[]) {
    const key = `${traffic} ${JSON.stringify(policies)}`
    if (byContent.has(key)) return byContent.get(key)
    const backends = names.map((name) => ({ name, host: 'localhost:80' }))
    const [issue] = validatePart({ kind: 'policies', of: traffic, value: policies }, { backends })
    const mistake = issue && `${formatPath(issue.path)}: ${issue.message}`
    if (byContent.size >= maxResults) byContent.clear()
    byContent.set(key, mistake)
    return mistake
  }

  return (policies, traffic, names) => {
    const results = byNode.get(policies) ?? new Map<BackendTraffic, { mistake: string | undefined }>()
    const known = results.get(traffic)
    if (known !== undefined) return known.mistake
    const mistake = checkContent(policies, traffic, names)
    byNode.set(policies, results.set(traffic, { mistake }))
    return mistake
  }
}
