import { forwardingPolicyFields } from '../../backends/http/config.ts'
import { parseRequestTarget } from '../../lib/request-target.ts'
import type { Headers } from '../../net/http/headers.ts'
import { describeConnection, withoutTls } from '../../net/listener/connection.ts'
import type { RequestFacts } from '../../pipeline/exchange.ts'
import type { ExplanationLimits, RouteCandidate } from '../../pipeline/routing/explain-route.ts'
import { compileListenerTable } from '../../pipeline/routing/listener-table.ts'
import type { HttpListener, Listener, Route } from '../../pipeline/snapshot.ts'
import { type ListenerAddress, listenerAddresses } from '../listener-addresses.ts'
import type { Config } from '../schema.ts'
import { nameOfRoute } from '../traffic/route-kind.ts'
import { trafficSections } from '../traffic/sections.ts'

/** A request that a client could send. */
export type ExplainedRequest = {
  /** Gateway or listener, `llm` or `mcp`; undefined for the one with the port, or for the default one. */
  readonly gateway: string | undefined
  readonly port: number | undefined
  readonly method: string
  readonly host: string
  /** With the query. */
  readonly path: string
  readonly headers: Headers
}

export type RequestExplanation =
  | { readonly kind: 'refused'; readonly message: string }
  | {
      readonly kind: 'explained'
      readonly listener: Pick<ListenerAddress, 'gateway' | 'name' | 'port' | 'protocol' | 'tls'>
      /** Normalised path. */
      readonly path: string
      /** Undefined if no route matches: the reply is 404, after the policies of the gateway. */
      readonly route: SelectedRoute | undefined
      /** Policies in order. */
      readonly policies: readonly string[]
      readonly backend: RouteBackend | undefined
      readonly others: readonly OtherRoute[]
    }

export type SelectedRoute = { readonly name: string; readonly match: string; readonly hostname: string }

export type RouteBackend = {
  readonly kind: 'llm' | 'mcp' | 'ui' | 'http'
  readonly targets: readonly string[]
  /** Policies of the route that apply to the call of the backend, such as `timeout`. */
  readonly settings: readonly string[]
}

/** A route that does not receive the request, with the reason in one sentence. */
export type OtherRoute = {
  readonly route: string
  readonly hostname: string
  readonly match: string
  readonly reason: string
}

const limits: ExplanationLimits = { most: 50, paths: 2_000, hosts: 200 }

/** Explains the route of a request on the active listeners. */
export function explainRequest(
  request: ExplainedRequest,
  config: Config,
  find: (port: number) => Listener | undefined,
): RequestExplanation {
  const target = parseRequestTarget(request.path)
  if (target === undefined) return refused('path is not the path of a request: it must begin with /')
  const addresses = listenerAddresses(config)
  const chosen = chooseListener(request, addresses)
  if (chosen === undefined) return refused(unknownListener(request, addresses))
  const listener = find(chosen.port)
  if (listener === undefined) return refused(`the listener ${chosen.name} is not open`)
  const { gateway, name, port, protocol, tls } = chosen
  const facts: RequestFacts = {
    method: request.method,
    scheme: tls ? 'https' : 'http',
    host: request.host,
    path: target.path,
    trailingSlash: target.trailingSlash,
    query: target.query,
    version: 'HTTP/1.1',
    headers: request.headers,
  }
  const place = { gateway, name, port, protocol, tls }
  if (listener.kind !== 'http')
    return {
      kind: 'explained',
      listener: place,
      path: target.path,
      route: undefined,
      policies: [],
      backend: undefined,
      others: [],
    }
  return explainHttp({ listener, facts, config, place })
}

function refused(message: string): RequestExplanation {
  return { kind: 'refused', message }
}

/** The listener of a request: of its gateway, with the port, and for the host. */
function chooseListener(
  { gateway, port, host }: ExplainedRequest,
  addresses: readonly ListenerAddress[],
): ListenerAddress | undefined {
  const named = addresses.filter(
    (address) => gateway === undefined || [address.name, address.gateway].includes(gateway),
  )
  const found = named.filter((address) => port === undefined || address.port === port)
  const ofDefault = found.filter((address) => address.gateway === 'default')
  const own = gateway === undefined && port === undefined && ofDefault.length > 0 ? ofDefault : found
  const [first] = own
  if (first === undefined) return undefined
  const ofPort = own.filter((address) => address.port === first.port)
  return compileListenerTable(ofPort.map((target) => ({ hostname: target.hostname, target })))(host) ?? first
}

function unknownListener({ gateway, port }: ExplainedRequest, addresses: readonly ListenerAddress[]): string {
  const names = addresses.map((address) => `${address.name} (port ${address.port})`)
  const wanted = gateway === undefined ? `port ${port}` : `gateway ${gateway}`
  const known =
    names.length === 0 ? 'there are no listeners' : `listeners are ${names.slice(0, 20).join(', ')}`
  return `${gateway === undefined && port === undefined ? 'there is no listener' : `${wanted} has no listener`}: ${known}`
}

type HttpExplanation = {
  readonly listener: HttpListener
  readonly facts: RequestFacts
  readonly config: Config
  readonly place: Pick<ListenerAddress, 'gateway' | 'name' | 'port' | 'protocol' | 'tls'>
}

function explainHttp({ listener, facts, config, place }: HttpExplanation): RequestExplanation {
  const endpoints = {
    remoteAddress: '127.0.0.1',
    remotePort: 0,
    localAddress: '127.0.0.1',
    localPort: place.port,
  }
  const connection = describeConnection(endpoints, withoutTls)
  const { candidates, listener: name = place.name } = listener.explain?.(facts, limits) ?? { candidates: [] }
  const selected = candidates.find(({ result }) => result.kind === 'selected')
  const matched = selected?.target ?? listener.match(facts, connection)?.target
  const isRoute = matched !== undefined && matched.name !== ''
  return {
    kind: 'explained',
    listener: { ...place, name },
    path: facts.path,
    route: isRoute
      ? {
          name: matched.name,
          match: selected === undefined ? 'every path' : matchText(selected),
          hostname: selected?.hostname ?? '*',
        }
      : undefined,
    policies: (matched?.policies ?? []).map((policy) => policy.name),
    backend: isRoute ? backendOf(matched, config) : undefined,
    others: candidates.flatMap((candidate) => describeOther(candidate)),
  }
}

function matchText({ path }: RouteCandidate<Route>): string {
  return path.kind === 'prefix' && path.value === '/' ? 'every path' : `${path.kind} ${path.value}`
}

function describeOther(candidate: RouteCandidate<Route>): OtherRoute[] {
  const { target, hostname, result } = candidate
  if (result.kind === 'selected') return []
  return [{ route: target.name, hostname, match: matchText(candidate), reason: reasonOf(candidate) }]
}

function reasonOf({ result, hostname }: RouteCandidate<Route>): string {
  switch (result.kind) {
    case 'selected':
      return 'selected'
    case 'outranked':
      return outrankings[result.by]
    case 'failed':
      switch (result.condition) {
        case 'hostname':
          return `the host does not match ${hostname}`
        case 'path':
          return 'the path does not match'
        case 'method':
          return `the method must be ${result.name}`
        case 'header':
          return `the header ${result.name} is absent or has another value`
        case 'query':
          return `the query parameter ${result.name} is absent or has another value`
      }
  }
}

const outrankings = {
  hostname: 'the selected route has a more specific hostname',
  path: 'the selected route has a more specific path',
  conditions: 'the selected route has more conditions',
  order: 'the selected route precedes it in the configuration',
} as const

function backendOf({ name, traffic }: Route, config: Config): RouteBackend {
  const { routes } = trafficSections(config)
  const route = routes.find((each, index) => nameOfRoute(each, index) === name)
  if (route === undefined) {
    const kind = name === 'ui' ? 'ui' : (traffic ?? 'http')
    return { kind, targets: [], settings: [] }
  }
  const targets = (route.backends ?? []).map((entry) => {
    const { weight, policies: _, ...target } = entry
    const [kind = '', value] = Object.entries(target).find(([, member]) => member !== undefined) ?? []
    const text = typeof value === 'string' ? value : kind
    return weight === undefined || weight === 1 ? text : `${text} (weight ${weight})`
  })
  const settings = Object.keys(route.policies ?? {}).filter((name) =>
    Object.hasOwn(forwardingPolicyFields, name),
  )
  return { kind: traffic ?? 'http', targets, settings }
}
