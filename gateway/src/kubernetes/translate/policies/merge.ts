import { respondsAlways } from '../../../policies/registry/check.ts'
import type { ObjectMeta } from '../../objects/meta.ts'
import { keyOf } from '../../objects/meta.ts'
import type { BackendTraffic, RoutePolicies } from '../plan.ts'
import { mergeAi } from './fields/ai.ts'
import { mergeRules } from './fields/authorization.ts'
import { directResponseField } from './fields/direct-response.ts'
import { fieldKinds } from './fields/fields.ts'
import type { AppliedField, Level } from './levels.ts'

/** Merged policies with the fields they consist of. */
export type Merged = {
  readonly policies: RoutePolicies | undefined
  readonly backends: readonly string[]
  readonly denied?: string
  /** The kind of traffic that the fields are for: `http` with a fixed response. */
  readonly traffic: BackendTraffic
  readonly applied: readonly AppliedField[]
  /** Fields that contradict those of a more general level, with the reason. */
  readonly contradicting: readonly { readonly field: AppliedField; readonly message: string }[]
}

/** Shown to clients: the reason is in the status of the policy. */
const refusal = 'a policy of this route is not valid'

/** Merges the policies of levels, from general to specific, for one kind of traffic. */
export function mergeLevels(levels: readonly Level[], traffic: BackendTraffic): Merged {
  // A fixed response needs no backend, and a route without a backend is an HTTP route.
  if (traffic !== 'http' && respondsAt(levels)) return mergeLevels(levels, 'http')
  const applied = fieldKinds.flatMap(({ path, levels: mode }) => {
    const found = levels.flatMap(({ fields }) => fields.get(path) ?? [])
    const relevant = found.filter(({ field }) => field.policiesFor(traffic) !== undefined)
    return mode === 'all' ? relevant : relevant.slice(-1)
  })
  const { policies, contradicting } = combine(applied, traffic)
  const isInvalid =
    contradicting.length > 0 ||
    levels.some((level) => level.isInvalid) ||
    applied.some(({ field }) => field.mistakesFor(traffic).length > 0)
  return {
    policies: isInvalid || applied.length === 0 ? undefined : policies,
    backends: isInvalid ? [] : [...new Set(applied.flatMap(({ field }) => field.field.backends))],
    ...(isInvalid && { denied: refusal }),
    traffic,
    applied,
    contradicting,
  }
}

/** Whether the most specific response is one to every request. */
function respondsAt(levels: readonly Level[]): boolean {
  const response = levels.findLast(({ fields }) => fields.has(directResponseField.path))
  const applied = response?.fields.get(directResponseField.path)
  return applied !== undefined && respondsAlways(applied.field.field.policies)
}

type Combined = { policies: RoutePolicies; contradicting: Merged['contradicting'] }

function combine(applied: readonly AppliedField[], traffic: BackendTraffic): Combined {
  const parts = applied.map((source) => ({ source, policies: source.field.policiesFor(traffic) ?? {} }))
  const simple = parts.map(({ policies: { ai, ...others } }) => (ai === undefined ? others : {}))
  const present = <Name extends keyof RoutePolicies>(name: Name) =>
    parts.flatMap(({ policies }): NonNullable<RoutePolicies[Name]>[] => {
      const value = policies[name]
      return value === undefined || value === null ? [] : [value]
    })
  const rules = present('authorization').map((authorization) => authorization.rules)
  const itemRules = present('mcpAuthorization').map((authorization) => authorization.rules)
  const limits = parts.flatMap(({ source, policies: { localRateLimit = [] } }) =>
    localRateLimit.map((limit) => identified(limit, source)),
  )
  const ai = mergeAi(present('ai'))
  const { remoteRateLimit, contradicting } = mergeGlobalLimits(parts)
  const policies: RoutePolicies = {
    ...Object.assign({}, ...simple),
    ...(rules.length > 0 && { authorization: { rules: mergeRules(rules) } }),
    ...(itemRules.length > 0 && { mcpAuthorization: { rules: mergeRules(itemRules) } }),
    ...(limits.length > 0 && { localRateLimit: limits }),
    ...(remoteRateLimit && { remoteRateLimit }),
    ...(ai && { ai }),
  }
  return { policies, contradicting }
}

type Limit = NonNullable<RoutePolicies['localRateLimit']>[number]

/** Adds the identity of the bucket: one for each policy, target and entry. */
function identified(limit: Limit, { policy, target }: AppliedField): Limit {
  const { name, id } = limit
  const place = policy.targetRefs.length > 1 ? `${policy.key}, ${target}` : policy.key
  return {
    ...limit,
    id: `${identityOf(policy)}/${target}/${id}`,
    // Names are unique in a list of limits.
    ...(name !== undefined && { name: `${name} (${place})` }),
  }
}

function identityOf({ metadata }: { readonly metadata: ObjectMeta }): string {
  return metadata.uid ?? keyOf({ metadata })
}

type Part = { readonly source: AppliedField; readonly policies: RoutePolicies }

/** A route has one rate limit service: levels with the same service share it. */
function mergeGlobalLimits(parts: readonly Part[]) {
  const contradicting: { field: AppliedField; message: string }[] = []
  let remoteRateLimit: RoutePolicies['remoteRateLimit']
  let first: AppliedField | undefined
  for (const { source, policies } of parts) {
    const limit = policies.remoteRateLimit
    if (limit === undefined) continue
    if (remoteRateLimit === undefined || first === undefined) {
      remoteRateLimit = limit
      first = source
      continue
    }
    const contradiction = contradictionOf(remoteRateLimit, limit, first)
    if (contradiction === undefined) {
      const descriptors = [...remoteRateLimit.descriptors, ...limit.descriptors]
      remoteRateLimit = { ...remoteRateLimit, descriptors }
    } else {
      contradicting.push({ field: source, message: `spec.${source.field.kind.path}: ${contradiction}` })
    }
  }
  return { remoteRateLimit, contradicting }
}

type GlobalLimit = NonNullable<RoutePolicies['remoteRateLimit']>

/** Bound of `remoteRateLimit.descriptors`. */
const maxDescriptors = 16

function contradictionOf(one: GlobalLimit, other: GlobalLimit, { policy }: AppliedField): string | undefined {
  if (!isSameService(one, other))
    return `must have the service, domain and options of policy ${policy.key}, whose limits also apply`
  return one.descriptors.length + other.descriptors.length > maxDescriptors
    ? `must have at most ${maxDescriptors} descriptors together with policy ${policy.key}, whose limits also apply`
    : undefined
}

function isSameService(one: GlobalLimit, other: GlobalLimit): boolean {
  const serviceOf = ({ descriptors: _, ...service }: GlobalLimit) =>
    JSON.stringify(Object.entries(service).sort(([a], [b]) => (a < b ? -1 : 1)))
  return serviceOf(one) === serviceOf(other)
}
