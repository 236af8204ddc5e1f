import type { YieldPoint } from '../../lib/scheduling/yielding.ts'
import type { Connection } from '../../net/listener/connection.ts'
import { type ListenerTls, satisfies } from '../../net/tls/server-tls.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import { refuse } from '../../pipeline/errors.ts'
import type { MatchedRoute, RequestFacts } from '../../pipeline/exchange.ts'
import type { Backend } from '../../pipeline/policy.ts'
import { attachedHostnames } from '../../pipeline/routing/hostnames.ts'
import { compileListenerTable } from '../../pipeline/routing/listener-table.ts'
import type { RouteMatch } from '../../pipeline/routing/route-match.ts'
import {
  createRouteTableBuilder,
  type FindRoute,
  type RouteTable,
} from '../../pipeline/routing/route-table.ts'
import type { HttpListener, Route } from '../../pipeline/snapshot.ts'
import { compilePolicies } from '../../policies/registry/registry.ts'
import type { PolicyScope } from '../../policies/registry/scope.ts'
import type { ListenerPlan } from './attachments.ts'
import { compileListenerTls, compileServerTls } from './compile-tls.ts'
import { explainDelegated } from './route-groups/explain-delegated.ts'

/** A route, or the `llm`, `mcp` or `ui` section, attached to a listener. */
export type Attached = {
  hostnames: readonly string[]
  matches: readonly RouteMatch[]
  /** The route, with the policies of a listener before its own. */
  routeBehind(scopes: readonly PolicyScope[]): Route | Promise<Route>
}

export type HttpGateway = {
  listeners: readonly ListenerPlan[]
  /** By scope of the listener, in the order that breaks ties. */
  attached: ReadonlyMap<string, readonly Attached[]>
  /** Bound on a body that expressions name. */
  maxBodyBytes: number
}

/** Compiles the HTTP listeners of one port. */
export async function compileHttpGateway(
  { listeners, attached, maxBodyBytes }: HttpGateway,
  context: CompileContext,
  yieldPoint: YieldPoint,
): Promise<Pick<HttpListener, 'kind' | 'tls' | 'match' | 'explain'>> {
  const compiled: CompiledListener[] = []
  for (const plan of listeners) {
    const routes = await compileListener(plan, attached.get(plan.place) ?? [], {
      context,
      yieldPoint,
      maxBodyBytes,
    })
    compiled.push({ plan, ...routes, tls: compileListenerTls(plan, context) })
  }
  const tls = compileServerTls(listeners, context, ['h2', 'http/1.1'])
  return { kind: 'http', tls, match: matcher(compiled, context), explain: explainer(compiled) }
}

type Compiling = { context: CompileContext; yieldPoint: YieldPoint; maxBodyBytes: number }

async function compileListener(
  plan: ListenerPlan,
  attached: readonly Attached[],
  { context, yieldPoint, maxBodyBytes }: Compiling,
): Promise<ListenerRoutes> {
  const scopes: PolicyScope[] = [
    { name: `gateway ${plan.place}`, policies: plan.config, hostname: plan.hostname, listener: plan.place },
  ]
  const table = createRouteTableBuilder<Route>((match, compile) =>
    context.cached(match, 'route match', compile),
  )
  let delegates = false
  for (const { hostnames, matches, routeBehind } of attached) {
    const effective = attachedHostnames(plan.hostname, hostnames)
    if (effective !== undefined) {
      const made = routeBehind(scopes)
      const route = made instanceof Promise ? await made : made
      delegates ||= route.delegation !== undefined
      // The same object for an unchanged route.
      const target = context.cached(route, `route of ${plan.place}`, () => ({
        ...route,
        listener: plan.place,
      }))
      table.add({ hostnames: effective, matches, target })
    }
    const pause = yieldPoint()
    if (pause) await pause
  }
  const find = table.build()
  const missing = noRoute(scopes, maxBodyBytes, context)
  const ofTable: FindRoute<Route> = (request) => find(request) ?? missing
  return { find: delegates ? withDelegation(ofTable) : ofTable, table: table.table }
}

/** Selects the routes of route groups in place of the routes that refer to them. */
function withDelegation(find: FindRoute<Route>): FindRoute<Route> {
  return (request) => {
    const found = find(request)
    return found?.target.delegation?.find(request) ?? found
  }
}

/**
 * Unmatched requests pass the policies of the gateway, so that clients without access cannot probe for
 * routes.
 */
export function noRoute(
  scopes: readonly PolicyScope[],
  maxBodyBytes: number,
  context: CompileContext,
): MatchedRoute<Route> {
  const backend: Backend = (exchange) =>
    refuse(exchange, { status: 404, code: 'route_not_found', message: 'no route matches this request' })
  const { policies } = compilePolicies(scopes, context, { kind: 'http', maxBodyBytes, place: 'fallback' })
  return { target: plainRoute('', policies, backend, context), prefix: '/' }
}

export function plainRoute(
  name: string,
  policies: Route['policies'],
  backend: Backend,
  context: CompileContext,
): Route {
  return { name, policies, backend, meter: context.metrics.route(name), errorFormat: () => 'text' }
}

type ListenerRoutes = { find: FindRoute<Route>; table: RouteTable<Route> }
type CompiledListener = ListenerRoutes & { plan: ListenerPlan; tls: ListenerTls | undefined }

function explainer(compiled: readonly CompiledListener[]): NonNullable<HttpListener['explain']> {
  return (request, limits) => {
    const listenerOf = compileListenerTable(
      compiled.map((target) => ({ hostname: target.plan.hostname, target })),
    )
    const listener = listenerOf(request.host)
    if (listener === undefined) return { listener: undefined, candidates: [] }
    return { listener: listener.plan.place, candidates: explainDelegated(listener.table, request, limits) }
  }
}

/** Matches a request to the listener of its host. */
function matcher(compiled: readonly CompiledListener[], context: CompileContext): HttpListener['match'] {
  const [only] = compiled
  const makesDemands = compiled.some(({ tls }) => tls !== undefined && tls.demands !== '')
  const isForAll = compiled.length === 1 && only?.plan.hostname === undefined
  if (only !== undefined && isForAll && !makesDemands) return only.find
  const listenerOf = compileListenerTable(
    compiled.map((target) => ({ hostname: target.plan.hostname, target })),
  )
  const isSecure = compiled.some(({ tls }) => tls !== undefined)
  if (!isSecure) return (request) => listenerOf(request.host)?.find(request)
  const isOneOfSeveral = compiled.length > 1
  const misdirected = { target: misdirectedRoute(context), prefix: '/' }
  return (request: RequestFacts, connection: Connection) => {
    if (isOneOfSeveral && isMisdirected(request, connection)) return misdirected
    const listener = listenerOf(request.host)
    if (listener === undefined) return undefined
    return satisfiesDemands(listener, connection) ? listener.find(request) : misdirected
  }

  /**
   * Gateway API, `ListenerTLSConfig`, and RFC 6066 section 11.1: the host of a request must belong to the
   * listener that the server name of its connection selected. Requests to hosts without a listener are 404.
   * The host is the one sent on this connection, not the one that a trusted proxy reports.
   */
  function isMisdirected({ headers: { host } }: RequestFacts, { serverName }: Connection): boolean {
    if (serverName === undefined || typeof host !== 'string' || host === '') return false
    const listener = listenerOf(host)
    return listener !== undefined && listener !== listenerOf(serverName)
  }

  /**
   * RFC 9110 section 15.5.20: a connection that was opened for one host, or before a reload, must not reach a
   * listener that demands more of handshakes, such as a client certificate.
   */
  function satisfiesDemands(listener: CompiledListener, { identity, serverName }: Connection): boolean {
    if (listener.tls === undefined || listener.tls.demands === '') return true
    if (!satisfies(identity, listener.tls)) return false
    return !isOneOfSeveral || listenerOf(serverName ?? '') === listener
  }
}

/** Adds TLS to the listener of a section, which has one route. */
export function withOwnTls(
  listener: HttpListener,
  plan: Parameters<typeof compileListenerTls>[0],
  context: CompileContext,
): HttpListener {
  const own = compileListenerTls(plan, context)
  if (own === undefined) return listener
  const tls = compileServerTls([plan], context, ['h2', 'http/1.1'])
  const misdirected = { target: misdirectedRoute(context), prefix: '/' }
  return {
    ...listener,
    tls,
    match: (request, connection) =>
      satisfies(connection.identity, own) ? listener.match(request, connection) : misdirected,
  }
}

function misdirectedRoute(context: CompileContext): Route {
  const backend: Backend = (exchange) =>
    refuse(exchange, {
      status: 421,
      code: 'misdirected_request',
      message: 'this connection was opened for another host',
    })
  return plainRoute('', [], backend, context)
}
