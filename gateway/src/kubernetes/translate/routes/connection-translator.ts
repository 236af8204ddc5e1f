import { shareStructure } from '../../../config/live/structural-share.ts'
import type { TCPRoute, TLSRoute } from '../../objects/gateway-api.ts'
import { compareByAge, keyOf, type ObjectKey } from '../../objects/meta.ts'
import type { References } from '../backends/references.ts'
import type { GatewayPlan, ListenerPlan, TcpRouteConfig } from '../plan.ts'
import { type Attachment, attach, type Parent, parentsOf } from './attachment/attachment.ts'
import { listenersByGateway } from './attachment/listeners.ts'
import { type ConnectionPlan, planConnections } from './connection-routes.ts'
import { attachedKeys, type Contribution } from './gateway-collector.ts'
import type { ReferenceTable, Resolutions } from './reference-table.ts'
import { createStates } from './route-order.ts'
import { isAccepted, routeStatus } from './route-status.ts'
import type { RoutesInput } from './routes-translation.ts'

type ConnectionRoute = TLSRoute | TCPRoute

/** A route with its results in the last pass. */
type RouteState = {
  readonly route: ConnectionRoute
  readonly key: ObjectKey
  readonly parents: readonly Parent[]
  readonly pass: { last: number }
  planned: Planned | undefined
  contribution: Contribution | undefined
}

type Planned = { readonly resolutions: Resolutions; readonly plan: ConnectionPlan }

/** Creates the translator of TLSRoutes and TCPRoutes. */
export function createConnectionTranslator(
  table: ReferenceTable,
): (input: RoutesInput, plans: ReadonlyMap<ObjectKey, GatewayPlan>) => readonly Contribution[] {
  const statesOf = createStates<ConnectionRoute, RouteState>(createState, compareStates)

  function planOf(state: RouteState): Planned {
    if (state.planned !== undefined && table.areCurrent(state.planned.resolutions)) return state.planned
    const resolutions = table.resolutionsOf(state.route)
    const plan = planConnections(state.route, (reference, at) => table.resolve(resolutions, reference, at))
    state.planned = { resolutions, plan }
    return state.planned
  }

  return ({ objects: { TLSRoute, TCPRoute }, references }, plans) =>
    statesOf([TLSRoute, TCPRoute]).flatMap((state) => {
      const attachments = attach(state.route, state.parents, plans)
      if (attachments.length === 0) return []
      const contribution = translateRoute(state, planOf(state), attachments, references)
      state.contribution = shareStructure(state.contribution, contribution)
      return [state.contribution]
    })
}

function createState(route: ConnectionRoute): RouteState {
  const parents = parentsOf(route)
  return { route, key: keyOf(route), parents, pass: { last: 0 }, planned: undefined, contribution: undefined }
}

/** TLSRoutes precede TCPRoutes of the same age and name. */
function compareStates({ route: a }: RouteState, { route: b }: RouteState): number {
  return compareByAge(a, b) || (a.kind < b.kind ? 1 : a.kind > b.kind ? -1 : 0)
}

function translateRoute(
  { route, key }: RouteState,
  { plan, resolutions }: Planned,
  attachments: readonly Attachment[],
  references: References,
): Contribution {
  const findings = { rules: route.spec.rules.length, invalid: plan.invalid, mistakes: plan.mistakes }
  const accepted = attachments.filter((attachment) => isAccepted(attachment, findings))
  const parts: Contribution['parts'][number][] = []
  for (const [gateway, listeners] of listenersByGateway(attachments)) {
    if (plan.hostnames?.length === 0) continue
    const serving = listeners.filter(({ reference }) => reference !== undefined)
    for (const { used, plan: own, suffix } of partsOf(serving, plan, references)) {
      if (used.length === 0) continue
      const config = configOf(`${route.kind}/${key}/0${suffix}`, own, used)
      parts.push({ gateway, tcpConfigs: [config], names: own.names })
    }
  }
  const parents = attachments.map((attachment) => ({ attachment, findings }))
  const status = routeStatus(route, key, parents, resolutions.unresolved)
  return { parts, attached: attachedKeys(accepted), status }
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
    { used: listeners.filter(({ isPassthrough }) => isPassthrough), plan: direct, suffix: '@passthrough' },
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
  name: string,
  { hostnames, backends }: ConnectionPlan,
  listeners: readonly ListenerPlan[],
): TcpRouteConfig {
  return {
    name,
    gateways: listeners.flatMap(({ reference }) => reference ?? []),
    ...(hostnames && { hostnames: [...hostnames] }),
    backends,
  }
}
