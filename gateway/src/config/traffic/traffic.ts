import { documentPaths } from '../../backends/mcp/endpoint/paths.ts'
import { createYieldPoint, type YieldPoint } from '../../lib/scheduling/yielding.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { RouteMatch } from '../../pipeline/routing/route-match.ts'
import type { Address, HttpListener, Listener, Route, TcpListener } from '../../pipeline/snapshot.ts'
import { loginPaths } from '../../policies/oidc/paths.ts'
import type { PolicyScope } from '../../policies/registry/scope.ts'
import {
  carriesHttp,
  type ListenerPlan,
  listenersAt,
  listenersOf,
  type References,
  referencesOf,
} from './attachments.ts'
import { type Attached, compileHttpGateway } from './compile-gateway.ts'
import type { RouteSurroundings } from './compile-route.ts'
import { routeMatchOf } from './compile-route-match.ts'
import { compileTcpGateway } from './compile-tcp-gateway.ts'
import { compileServerTls } from './compile-tls.ts'
import type { GatewayConfig } from './gateway-config.ts'
import type { RouteConfig } from './route-config.ts'
import { compileNode } from './route-groups/route-groups.ts'
import { kindOfRoute } from './route-kind.ts'
import type { TrafficSections } from './sections.ts'

/** The `llm`, `mcp` or `ui` section, attached to gateways. */
export type Section = {
  references: References
  /** Path prefixes of the section. */
  paths: readonly string[]
  routeBehind(scopes: readonly PolicyScope[]): Route
  stop?: Stop | undefined
}

type Stop = () => Promise<void>

export type Traffic = {
  listeners: Listener[]
  /** Functions by scope that close resources. */
  stops: Map<string, Stop>
}

export type TrafficOptions = RouteSurroundings & {
  /** Sections besides routes; routes take precedence if paths are equal. */
  attached: readonly Section[]
  address(port: number, gateway?: GatewayConfig): Address
  clients: HttpListener['clients']
}

/** Compiles the listeners of all gateways. */
export async function compileTraffic(options: TrafficOptions): Promise<Traffic> {
  const { sections, context, address, clients, maxBufferSize: maxBodyBytes } = options
  const yieldPoint = createYieldPoint(context.clock)
  const { attached, stops } = await attachHttp(options, yieldPoint)
  const attachedTcp = attachTcp(sections)
  const compiled: Listener[] = []
  for (const [name, gateway] of Object.entries(sections.gateways)) {
    const listeners = listenersOf(name, gateway)
    const first = listeners[0]
    const at = address(gateway.port, gateway)
    if (gateway.tunnelProtocol === 'connect') {
      compiled.push({ ...at, kind: 'connect', tls: compileServerTls(listeners, context, ['http/1.1']) })
      continue
    }
    if (first === undefined) continue
    if (!carriesHttp(first)) {
      const tcp: TcpListener = { ...at, ...compileTcpGateway(listeners, attachedTcp, sections, context) }
      compiled.push(tcp)
      continue
    }
    const http = await compileHttpGateway({ listeners, attached, maxBodyBytes }, context, yieldPoint)
    compiled.push({ ...at, ...http, clients })
  }
  return { listeners: compiled, stops }
}

type AttachedHttp = { attached: Map<string, Attached[]>; stops: Map<string, Stop> }

async function attachHttp(options: TrafficOptions, yieldPoint: YieldPoint): Promise<AttachedHttp> {
  const { sections, context } = options
  const surroundings = {
    ...options,
    yieldPoint,
    matchesOf: (route: RouteConfig) => matchesOf(route, sections, context),
  }
  const attached = new Map<string, Attached[]>()
  const stops = new Map<string, Stop>()
  for (const [index, route] of sections.routes.entries()) {
    const compiled = await compileNode(route, index, surroundings)
    const target: Attached = {
      hostnames: route.hostnames ?? [],
      matches: matchesOf(route, sections, context),
      routeBehind: compiled.behind,
    }
    attach(route.gateways, target)
    for (const [name, stop] of compiled.stops) stops.set(`route ${name}`, stop)
    const pause = yieldPoint()
    if (pause) await pause
  }
  for (const { references, paths, routeBehind } of options.attached) {
    attach(references, { hostnames: [], matches: paths.map(prefixMatch), routeBehind })
  }
  return { attached, stops }

  function attach(references: References, target: Attached): void {
    for (const { place } of listenersFor(references, sections)) listOf(attached, place).push(target)
  }
}

function attachTcp(sections: TrafficSections): Map<string, number[]> {
  const attached = new Map<string, number[]>()
  for (const [index, { gateways }] of sections.tcpRoutes.entries()) {
    for (const { place } of listenersFor(gateways, sections)) listOf(attached, place).push(index)
  }
  return attached
}

function listenersFor(references: References, { gateways }: TrafficSections): ListenerPlan[] {
  return (referencesOf(references, gateways) ?? []).flatMap(
    (reference) => listenersAt(reference, gateways) ?? [],
  )
}

function listOf<T>(lists: Map<string, T[]>, key: string): T[] {
  const known = lists.get(key)
  if (known !== undefined) return known
  const made: T[] = []
  lists.set(key, made)
  return made
}

/** Matches of a route, with the paths of its login and the metadata paths of an MCP endpoint. */
function matchesOf(
  route: RouteConfig,
  { backends }: TrafficSections,
  { cached }: CompileContext,
): RouteMatch[] {
  const matches = cached(route, 'matches', () => (route.matches ?? []).map(routeMatchOf))
  if (matches.length === 0) return matches
  const { oidc } = route.policies ?? {}
  const logins = oidc === undefined ? [] : Object.values(loginPaths(oidc)).map(exactMatch)
  if (route.policies?.mcpAuthentication === undefined || kindOfRoute(route, backends) !== 'mcp')
    return [...matches, ...logins]
  const paths = matches.flatMap(({ path }) =>
    path.kind === 'regex' || path.value.startsWith('/.well-known/') ? [] : [path.value],
  )
  return [...matches, ...logins, ...paths.flatMap((path) => documentPaths(path).map(prefixMatch))]
}

function exactMatch(value: string): RouteMatch {
  return { path: { kind: 'exact', value }, method: undefined, headers: [], query: [] }
}

function prefixMatch(value: string): RouteMatch {
  return { path: { kind: 'prefix', value }, method: undefined, headers: [], query: [] }
}
