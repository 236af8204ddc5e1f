import type { TCPRoute, TLSRoute } from '../../objects/gateway-api.ts'
import { keyOf, type ObjectKey } from '../../objects/meta.ts'
import type { GatewayPlan, TcpRouteConfig } from '../plan.ts'
import { attach } from './attachment/attachment.ts'
import { listenersByGateway } from './attachment/listeners.ts'
import { type ConnectionPlan, planConnections } from './connection-routes.ts'
import type { Collection } from './gateway-collector.ts'
import { createResolutions, type Resolutions } from './resolution.ts'
import { createOrder } from './route-order.ts'
import { isAccepted, routeStatus } from './route-status.ts'
import type { RoutesInput } from './routes-translation.ts'

type ConnectionRoute = TLSRoute | TCPRoute
type Cached = { readonly resolutions: Resolutions; readonly plan: ConnectionPlan }

/** Creates the translator of TLSRoutes and TCPRoutes. */
export function createConnectionTranslator(): (
  input: RoutesInput,
  plans: ReadonlyMap<ObjectKey, GatewayPlan>,
  collection: Collection,
) => void {
  const sort = createOrder<ConnectionRoute>()
  const cache = new WeakMap<ConnectionRoute, Cached>()

  function planOf(route: ConnectionRoute, { references }: RoutesInput): Cached {
    const known = cache.get(route)
    if (known?.resolutions.areCurrent(references)) return known
    const resolutions = createResolutions(route, references)
    const planned = { resolutions, plan: planConnections(route, resolutions.resolve) }
    cache.set(route, planned)
    return planned
  }

  return (input, plans, collection) => {
    const { objects } = input
    for (const route of sort([objects.TLSRoute, objects.TCPRoute])) {
      const attachments = attach(route, plans)
      if (attachments.length === 0) continue
      const key = keyOf(route)
      const { resolutions, plan } = planOf(route, input)
      const { mistakes, invalid } = plan
      const findings = { rules: route.spec.rules.length, invalid, mistakes }
      const accepted = attachments.filter((attachment) => isAccepted(attachment, findings))
      collection.addAttached(new Set(accepted.flatMap(({ listeners }) => listeners)))
      for (const [gateway, listeners] of listenersByGateway(attachments)) {
        const references = listeners.flatMap(({ reference }) => reference ?? [])
        const isReachable = plan.hostnames === undefined || plan.hostnames.length > 0
        if (references.length > 0 && isReachable) {
          collection.addTcpRoutes(gateway, [configOf(route, key, plan, references)], plan.names)
        }
      }
      const parents = attachments.map((attachment) => ({ attachment, findings }))
      collection.addStatus(routeStatus(route, key, parents, resolutions.unresolved))
    }
  }
}

function configOf(
  { kind }: ConnectionRoute,
  key: ObjectKey,
  { hostnames, backends }: ConnectionPlan,
  gateways: string[],
): TcpRouteConfig {
  return {
    name: `${kind}/${key}/0`,
    gateways,
    ...(hostnames && { hostnames: [...hostnames] }),
    backends,
  }
}
