import type { TCPRoute, TLSRoute } from '../../objects/gateway-api.ts'
import { keyOf, type ObjectKey } from '../../objects/meta.ts'
import type { References } from '../backends/references.ts'
import type { GatewayPlan, ListenerPlan, TcpRouteConfig } from '../plan.ts'
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
        if (plan.hostnames?.length === 0) continue
        for (const { used, plan: own, suffix } of partsOf(listeners, plan, input.references)) {
          const names = used.flatMap(({ reference }) => reference ?? [])
          if (names.length === 0) continue
          collection.addTcpRoutes(gateway, [configOf(route, `${key}/0${suffix}`, own, names)], own.names)
        }
      }
      const parents = attachments.map((attachment) => ({ attachment, findings }))
      collection.addStatus(routeStatus(route, key, parents, resolutions.unresolved))
    }
  }
}

type Part = {
  readonly used: readonly ListenerPlan[]
  readonly plan: ConnectionPlan
  /** Suffix of the name of the route. */
  readonly suffix: string
}

/** Splits the listeners where passthrough makes a difference: there, clients use TLS with the backends. */
function partsOf(listeners: readonly ListenerPlan[], plan: ConnectionPlan, references: References): Part[] {
  const direct = withoutTls(plan, references)
  if (direct === plan) return [{ used: listeners, plan, suffix: '' }]
  return [
    { used: listeners.filter(({ isPassthrough }) => !isPassthrough), plan, suffix: '' },
    {
      used: listeners.filter(({ isPassthrough }) => isPassthrough),
      plan: direct,
      suffix: '@passthrough',
    },
  ]
}

function withoutTls(plan: ConnectionPlan, { passthrough }: References): ConnectionPlan {
  const names = plan.names.map(passthrough)
  if (names.every((name, index) => name === plan.names[index])) return plan
  const backends = plan.backends.map((entry) =>
    entry.backend === undefined ? entry : { ...entry, backend: `/${passthrough(entry.backend.slice(1))}` },
  )
  return { ...plan, names, backends }
}

function configOf(
  { kind }: ConnectionRoute,
  place: string,
  { hostnames, backends }: ConnectionPlan,
  gateways: string[],
): TcpRouteConfig {
  return {
    name: `${kind}/${place}`,
    gateways,
    ...(hostnames && { hostnames: [...hostnames] }),
    backends,
  }
}
