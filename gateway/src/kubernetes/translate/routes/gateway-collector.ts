import { shareStructure } from '../../../config/live/structural-share.ts'
import type { ObjectKey } from '../../objects/meta.ts'

import {
  type GatewayPlan,
  type ListenerPlan,
  listenerKey,
  type RouteConfig,
  type TcpRouteConfig,
} from '../plan.ts'
import type { ObjectStatus } from '../status/object-status.ts'
import type { GatewayRoutes, RoutesTranslation } from './routes-translation.ts'

/** Results of the translation of routes, by Gateway. */
export type Collection = {
  addRoutes(gateway: ObjectKey, configs: readonly RouteConfig[], names: readonly string[]): void
  addTcpRoutes(gateway: ObjectKey, configs: readonly TcpRouteConfig[], names: readonly string[]): void
  addStatus(status: ObjectStatus): void
  /** Counts an accepted route. */
  addAttached(listeners: Iterable<ListenerPlan>): void
}

type Collected = { routes: RouteConfig[]; tcpRoutes: TcpRouteConfig[]; backends: Set<string> }

/**
 * Creates a collector. Equal routes of consecutive collections are the same nodes, and equal lists the same
 * lists.
 */
export function createGatewayCollector(): (
  plans: readonly GatewayPlan[],
  fill: (collection: Collection) => void,
) => RoutesTranslation {
  let previous: ReadonlyMap<ObjectKey, GatewayRoutes> = new Map()
  return (plans, fill) => {
    const collected = new Map<ObjectKey, Collected>(
      plans.map(({ key }) => [key, { routes: [], tcpRoutes: [], backends: new Set() }]),
    )
    const statuses: ObjectStatus[] = []
    const attachedRoutes = new Map<string, number>()
    fill({
      addRoutes(gateway, configs, names) {
        const into = collected.get(gateway)
        into?.routes.push(...configs)
        for (const name of names) into?.backends.add(name)
      },
      addTcpRoutes(gateway, configs, names) {
        const into = collected.get(gateway)
        into?.tcpRoutes.push(...configs)
        for (const name of names) into?.backends.add(name)
      },
      addStatus: (status) => statuses.push(status),
      addAttached(listeners) {
        for (const { gateway, name } of listeners) {
          const key = listenerKey(gateway, name)
          attachedRoutes.set(key, (attachedRoutes.get(key) ?? 0) + 1)
        }
      },
    })
    const gateways = new Map<ObjectKey, GatewayRoutes>()
    for (const [key, now] of collected) gateways.set(key, reuse(previous.get(key), now))
    previous = gateways
    return { gateways, statuses, attachedRoutes }
  }
}

function reuse(previous: GatewayRoutes | undefined, now: Collected): GatewayRoutes {
  if (previous === undefined) return now
  const next = {
    routes: reuseNodes(previous.routes, now.routes),
    tcpRoutes: reuseNodes(previous.tcpRoutes, now.tcpRoutes),
    backends: areEqualSets(previous.backends, now.backends) ? previous.backends : now.backends,
  }
  const isSame =
    next.routes === previous.routes &&
    next.tcpRoutes === previous.tcpRoutes &&
    next.backends === previous.backends
  return isSame ? previous : next
}

/** Replaces new nodes that equal the previous ones of their names, and an unchanged list. */
function reuseNodes<Node extends { readonly name?: string | undefined }>(
  previous: Node[],
  next: Node[],
): Node[] {
  if (next.length === previous.length && next.every((node, index) => node === previous[index]))
    return previous
  const known = new Set(previous)
  const changed = next.filter((node) => !known.has(node))
  if (changed.length === 0) return next
  const wanted = new Set(changed.map(({ name }) => name))
  const byName = new Map(previous.filter(({ name }) => wanted.has(name)).map((node) => [node.name, node]))
  const result = next.map((node) => (known.has(node) ? node : shareStructure(byName.get(node.name), node)))
  const isSame = result.length === previous.length && result.every((node, index) => node === previous[index])
  return isSame ? previous : result
}

function areEqualSets(some: ReadonlySet<string>, others: ReadonlySet<string>): boolean {
  return some.size === others.size && [...some].every((name) => others.has(name))
}
