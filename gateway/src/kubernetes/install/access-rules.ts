import { eventKind, leaseKind, tokenReviewKind } from '../client/requests/other-kinds.ts'
import { deployedKindNames, deployedKinds } from '../deployer/deployed-kinds.ts'
import { type ApiKind, type ReadKind, readKindNames, readKinds } from '../objects/kinds.ts'

/** Rule of a Role or ClusterRole. */
export type AccessRule = {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly verbs: readonly string[]
}

/** Kinds without status, or whose status this controller does not write. */
const withoutStatus: ReadonlySet<ReadKind> = new Set<ReadKind>([
  'ReferenceGrant',
  'Service',
  'EndpointSlice',
  'Secret',
  'ConfigMap',
  'Namespace',
])

const read = ['get', 'list', 'watch']
const isNamespaced = (kind: ReadKind) => readKinds[kind].isNamespaced

/** Rights on kinds without namespace. */
export function clusterRules(): AccessRule[] {
  const kinds = readKindNames.filter((kind) => !isNamespaced(kind))
  return [
    ...rulesOf(
      kinds.map((kind) => readKinds[kind]),
      read,
    ),
    ...rulesOf(kindsWithStatus(kinds), ['update'], '/status'),
    // Tokens of proxies.
    ...rulesOf([tokenReviewKind], ['create']),
  ]
}

/** Rights in the namespaces with Gateways, routes and backends. */
export function namespacedRules(): AccessRule[] {
  const kinds = readKindNames.filter(isNamespaced)
  const deployed = deployedKindNames.map((kind) => deployedKinds[kind])
  const known = kinds.map((kind) => readKinds[kind])
  const others = deployed.filter(({ plural }) => known.every((kind) => kind.plural !== plural))
  return [
    ...rulesOf([...known, ...others], read),
    ...rulesOf(kindsWithStatus(kinds), ['update'], '/status'),
    // The objects of proxies: server-side apply creates by PATCH, which needs both.
    ...rulesOf(deployed, ['create', 'patch', 'delete']),
    ...rulesOf([eventKind], ['create']),
  ]
}

/**
 * Rights in the namespace of the controller: election of the leader, reports about proxies, certificate
 * authority.
 */
export function ownRules(): AccessRule[] {
  return [
    ...rulesOf([leaseKind], ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete']),
    ...rulesOf([readKinds.Secret], ['get', 'create', 'update']),
  ]
}

function kindsWithStatus(kinds: readonly ReadKind[]): ApiKind[] {
  return kinds.filter((kind) => !withoutStatus.has(kind)).map((kind) => readKinds[kind])
}

/** One rule for each group. */
function rulesOf(kinds: readonly ApiKind[], verbs: readonly string[], subresource = ''): AccessRule[] {
  const groups = Map.groupBy(kinds, ({ group }) => group)
  return [...groups].map(([group, members]) => ({
    apiGroups: [group],
    resources: [...new Set(members.map(({ plural }) => `${plural}${subresource}`))],
    verbs,
  }))
}
