import type { BackendTLSPolicy } from '../../objects/gateway-api.ts'
import { gatewayApiGroup } from '../../objects/kinds.ts'
import { keyOf, type ObjectKey } from '../../objects/meta.ts'
import type { InvalidObject, ObjectSet } from '../../objects/object-set.ts'
import { controllerName } from '../controller-name.ts'
import { conditionsOf, satisfied, violated } from '../status/conditions.ts'
import { mistakesText } from '../status/invalid-objects.ts'
import type { ConditionState, ObjectStatus } from '../status/object-status.ts'
import { invalidTlsPolicies, type Problem, type TlsPolicies, tlsTargetsOf } from './tls-policies.ts'

/** Names of the used ports by Service and Gateway; the empty name is an unnamed port. */
export type BackendUsage = Map<ObjectKey, Map<ObjectKey, Set<string>>>

/** Bound of `status.ancestors`. */
const maxAncestors = 16

type Target = BackendTLSPolicy['spec']['targetRefs'][number]

/**
 * Statuses of BackendTLSPolicies: an ancestor for each Gateway that uses a target. A policy without usable
 * target has its first target as ancestor.
 */
export function tlsPolicyStatuses(
  objects: ObjectSet,
  usage: BackendUsage,
  policies: TlsPolicies,
): readonly ObjectStatus[] {
  const valid = [...objects.BackendTLSPolicy.entries()].map(([key, policy]): ObjectStatus => {
    const missing = policy.spec.targetRefs.map((target) => targetProblem(policy, target, objects))
    const gateways = gatewaysOf(policy, usage)
    const ancestors =
      missing.every((problem) => problem !== undefined) && missing[0] !== undefined
        ? [
            {
              ref: refOfTarget(policy),
              conditions: findingsOf(policy, missing[0], policies.read(policy).references),
            },
          ]
        : gateways.slice(0, maxAncestors).map((gateway) => {
            const { accepted, references } = policies.read(policy)
            const problem = accepted ?? conflictOf(policy, policies)
            const notes = missing.flatMap((found) => found?.message ?? [])
            return {
              ref: refOfGateway(gateway),
              conditions: findingsOf(policy, problem, references, notes),
            }
          })
    return {
      kind: 'BackendTLSPolicy',
      key,
      of: 'policy',
      status: {
        ancestors: ancestors.map(({ ref, conditions }) => ({ ancestorRef: ref, controllerName, conditions })),
      },
    }
  })
  return [...valid, ...invalidTlsPolicies(objects).flatMap(statusOfInvalid)]
}

function statusOfInvalid(policy: InvalidObject): ObjectStatus[] {
  const [target] = tlsTargetsOf(policy)
  if (target === undefined) return []
  const { namespace } = policy.metadata
  const conditions = conditionsOf(policy, [violated('Accepted', 'Invalid', mistakesText(policy))])
  const ancestorRef = { group: target.group, kind: target.kind, namespace, name: target.name }
  return [
    {
      kind: 'BackendTLSPolicy',
      key: keyOf(policy),
      of: 'policy',
      status: { ancestors: [{ ancestorRef, controllerName, conditions }] },
    },
  ]
}

function targetProblem(
  { metadata: { namespace } }: BackendTLSPolicy,
  { group, kind, name, sectionName }: Target,
  objects: ObjectSet,
): Problem | undefined {
  if (group !== '' || kind !== 'Service') {
    return { reason: 'Invalid', message: `target ${kind} ${name} must be a Service` }
  }
  const place = `Service ${namespace}/${name}`
  const service = objects.Service.get(`${namespace}/${name}`)
  if (service === undefined) return { reason: 'TargetNotFound', message: `${place} does not exist` }
  if (!sectionName || service.spec.ports?.some((port) => port.name === sectionName)) return undefined
  return { reason: 'TargetNotFound', message: `${place} has no port named ${sectionName}` }
}

/** The Gateways that use a target, sorted. */
function gatewaysOf({ metadata: { namespace }, spec }: BackendTLSPolicy, usage: BackendUsage): ObjectKey[] {
  const gateways = new Set<ObjectKey>()
  for (const { group, kind, name, sectionName } of spec.targetRefs) {
    if (group !== '' || kind !== 'Service') continue
    for (const [gateway, ports] of usage.get(`${namespace}/${name}`) ?? []) {
      if (!sectionName || ports.has(sectionName)) gateways.add(gateway)
    }
  }
  return [...gateways].sort()
}

/** The conflict of a policy that applies to none of its targets. */
function conflictOf(policy: BackendTLSPolicy, policies: TlsPolicies): Problem | undefined {
  const winners = policy.spec.targetRefs.flatMap(({ group, kind, name, sectionName }) =>
    group === '' && kind === 'Service'
      ? (policies.winner(`${policy.metadata.namespace}/${name}`, sectionName) ?? [])
      : [],
  )
  const [winner] = winners
  if (winner === undefined || winners.includes(policy)) return undefined
  return {
    reason: 'Conflicted',
    message: `BackendTLSPolicy ${keyOf(winner)} has the same target and takes precedence`,
  }
}

function findingsOf(
  policy: BackendTLSPolicy,
  accepted: Problem | undefined,
  references: Problem | undefined,
  notes: readonly string[] = [],
): readonly ConditionState[] {
  const applied = notes.length === 0 ? '' : `The policy applies, except: ${notes.join('; ')}`
  // The reason of both conditions is their name.
  const finding = (type: string, problem: Problem | undefined, message = '') =>
    problem === undefined ? satisfied(type, type, message) : violated(type, problem.reason, problem.message)
  return conditionsOf(policy, [finding('Accepted', accepted, applied), finding('ResolvedRefs', references)])
}

function refOfGateway(key: ObjectKey) {
  const [namespace = '', name = ''] = key.split('/')
  return { group: gatewayApiGroup, kind: 'Gateway', namespace, name }
}

function refOfTarget({ metadata: { namespace }, spec }: BackendTLSPolicy) {
  const [target] = spec.targetRefs
  return { group: target?.group ?? '', kind: target?.kind ?? 'Service', namespace, name: target?.name ?? '' }
}
