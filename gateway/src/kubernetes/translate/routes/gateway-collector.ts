import { shareStructure } from '../../../config/live/structural-share.ts'
import type { ObjectKey } from '../../objects/meta.ts'
import { type GatewayPlan, listenerKey, type RouteConfig, type TcpRouteConfig } from '../plan.ts'
import { compareStatuses, type ObjectStatus } from '../status/object-status.ts'
import { equalEnds, updateOrder } from './route-order.ts'
import type { GatewayRoutes, RoutesTranslation } from './routes-translation.ts'

/** The results of one route. */
export type Contribution = {
  /** Routes of Gateways, with the names of their backends. */
  readonly parts: readonly {
    readonly gateway: ObjectKey
    readonly configs?: readonly RouteConfig[]
    readonly tcpConfigs?: readonly TcpRouteConfig[]
    readonly names: readonly string[]
  }[]
  /** Keys of listeners that accept the route. */
  readonly attached: readonly string[]
  readonly status: ObjectStatus
}

/** Keys of listeners for `attached`, without repetitions. */
export function attachedKeys(
  accepted: Iterable<{
    readonly listeners: readonly { readonly gateway: ObjectKey; readonly name: string }[]
  }>,
): readonly string[] {
  const keys = new Set<string>()
  for (const { listeners } of accepted)
    for (const { gateway, name } of listeners) keys.add(listenerKey(gateway, name))
  return [...keys]
}

/** Uses of names, which may be added and removed. */
type Counts = Map<string, number>

type State = {
  readonly contributions: readonly Contribution[]
  readonly plans: readonly GatewayPlan[]
  readonly result: RoutesTranslation
}

/**
 * Creates the function that joins the results of routes, in order. Equal routes of consecutive calls are the
 * same nodes, and equal lists the same lists. The time depends on the changed contributions, apart from
 * copies of lists.
 */
export function createGatewayCollector(): (
  plans: readonly GatewayPlan[],
  contributions: readonly Contribution[],
) => RoutesTranslation {
  const used = new Map<ObjectKey, Counts>()
  const attachedRoutes: Counts = new Map()
  let state: State | undefined

  function count(changed: readonly Contribution[], by: 1 | -1): void {
    for (const { parts, attached } of changed) {
      for (const { gateway, names } of parts) {
        const counts: Counts = used.get(gateway) ?? new Map()
        used.set(gateway, counts)
        for (const name of names) addTo(counts, name, by)
      }
      for (const key of attached) addTo(attachedRoutes, key, by)
    }
  }

  return (plans, contributions) => {
    const before = state?.contributions ?? []
    const [start, end] = equalEnds(before, contributions)
    const isSame = start === contributions.length && before.length === contributions.length
    const arePlansSame = state !== undefined && haveSameKeys(state.plans, plans)
    if (state !== undefined && isSame && arePlansSame) return state.result
    const removed = before.slice(start, before.length - end)
    const added = contributions.slice(start, contributions.length - end)
    count(added, 1)
    count(removed, -1)
    const previous = state?.result
    const change = { contributions, start, removed, added }
    const result: RoutesTranslation = {
      gateways: gatewaysOf(plans, change, used, previous?.gateways),
      statuses: updateStatuses(previous?.statuses ?? [], removed, added),
      attachedRoutes: new Map(attachedRoutes),
    }
    state = { contributions, plans, result }
    return result
  }
}

function addTo(counts: Counts, name: string, by: 1 | -1): void {
  const count = (counts.get(name) ?? 0) + by
  if (count === 0) counts.delete(name)
  else counts.set(name, count)
}

function haveSameKeys(some: readonly GatewayPlan[], others: readonly GatewayPlan[]): boolean {
  return some.length === others.length && some.every(({ key }, index) => key === others[index]?.key)
}

function updateStatuses(
  sorted: readonly ObjectStatus[],
  removed: readonly Contribution[],
  added: readonly Contribution[],
): readonly ObjectStatus[] {
  const old = new Set(removed.map(({ status }) => status))
  const change = {
    isKept: (status: ObjectStatus) => !old.has(status),
    added: added.map(({ status }) => status),
  }
  return updateOrder(sorted, change, compareStatuses)
}

/** Contributions that replace others at an index. */
type Change = {
  readonly contributions: readonly Contribution[]
  readonly start: number
  readonly removed: readonly Contribution[]
  readonly added: readonly Contribution[]
}

function gatewaysOf(
  plans: readonly GatewayPlan[],
  change: Change,
  used: ReadonlyMap<ObjectKey, Counts>,
  previous: RoutesTranslation['gateways'] | undefined,
): RoutesTranslation['gateways'] {
  const changed = new Set<ObjectKey>()
  for (const { parts } of change.removed) for (const { gateway } of parts) changed.add(gateway)
  for (const { parts } of change.added) for (const { gateway } of parts) changed.add(gateway)
  const gateways = new Map<ObjectKey, GatewayRoutes>()
  for (const { key } of plans) {
    const known = previous?.get(key) ?? noRoutes
    gateways.set(key, changed.has(key) ? updateGateway(key, known, change, used.get(key) ?? noNames) : known)
  }
  return gateways
}

const noNames: Counts = new Map()
const noRoutes: GatewayRoutes = { routes: [], tcpRoutes: [], backends: new Set() }

function updateGateway(
  gateway: ObjectKey,
  previous: GatewayRoutes,
  change: Change,
  names: Counts,
): GatewayRoutes {
  const { backends } = previous
  const hasSameNames = backends.size === names.size && [...names.keys()].every((name) => backends.has(name))
  const next = {
    routes: replaceNodes(previous.routes, change, (part) =>
      part.gateway === gateway ? part.configs : noNodes,
    ),
    tcpRoutes: replaceNodes(previous.tcpRoutes, change, (part) =>
      part.gateway === gateway ? part.tcpConfigs : noNodes,
    ),
    backends: hasSameNames ? backends : new Set(names.keys()),
  }
  const isSame = next.routes === previous.routes && next.tcpRoutes === previous.tcpRoutes && hasSameNames
  return isSame ? previous : next
}

const noNodes: readonly never[] = []

/** Replaces the nodes of changed contributions in a list, with equal ones of the same name retained. */
function replaceNodes<N extends { readonly name?: string | undefined }>(
  previous: N[],
  { contributions, start, removed, added }: Change,
  nodesOf: (part: Contribution['parts'][number]) => readonly N[] | undefined,
): N[] {
  const nodesIn = ({ parts }: Contribution) => parts.flatMap((part) => nodesOf(part) ?? noNodes)
  let first = 0
  for (let index = 0; index < start; index += 1)
    for (const part of contributions[index]?.parts ?? noNodes) first += nodesOf(part)?.length ?? 0
  const before = previous.slice(first, first + removed.flatMap(nodesIn).length)
  const known = new Set(before)
  const byName = new Map(before.map((node) => [node.name, node]))
  const after = added
    .flatMap(nodesIn)
    .map((node) => (known.has(node) ? node : shareStructure(byName.get(node.name), node)))
  const isSame = after.length === before.length && after.every((node, index) => node === before[index])
  return isSame ? previous : previous.slice(0, first).concat(after, previous.slice(first + before.length))
}
