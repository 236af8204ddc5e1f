import type { CompileContext } from '../pipeline/compile-context.ts'
import { compileChoice } from './choice.ts'
import { type BackendPolicies, type EndpointConfig, findBackend, type NamedBackend } from './config.ts'
import {
  compileDestination,
  compileNamedDestination,
  compileServers,
  type Destination,
  type DestinationSettings,
  type Servers,
} from './destination.ts'

/**
 * The active endpoints of a named backend. All users of the backend share the list, and a commit replaces its
 * content, so that a change of endpoints compiles nothing else.
 */
export type EndpointList = { current: readonly EndpointConfig[] }

/** The list of a backend, retained across reloads by the name of the backend. */
function endpointsOf({ name, endpoints = [] }: NamedBackend, context: CompileContext): EndpointList {
  return context.retained<EndpointList>(`backends/endpoints/${name}`, () => ({ current: endpoints }))
}

/** Activates the endpoints of a configuration. */
export function activateEndpoints(backends: readonly NamedBackend[], context: CompileContext): void {
  for (const backend of backends) {
    if (backend.endpoints !== undefined) endpointsOf(backend, context).current = backend.endpoints
  }
}

/** A server of a backend with its share of the backend's requests, a number up to 1. */
export type WeightedDestination = {
  readonly weight: number
  readonly health: Destination['health']
  readonly destination: Destination
}

/** Servers of a backend, by their current endpoints. */
export type EndpointServers = {
  readonly list: EndpointList
  /** Destinations with a weight above 0. Unchanged endpoints keep their destination. */
  destinations(): readonly WeightedDestination[]
}

/** Compiles the servers of a backend with endpoints. */
export function compileEndpoints(
  backend: NamedBackend,
  { at }: Pick<Servers, 'at'>,
  context: CompileContext,
): EndpointServers {
  const list = endpointsOf(backend, context)
  const known = new WeakMap<EndpointConfig, Destination>()

  function destinationOf(endpoint: EndpointConfig): Destination {
    const existing = known.get(endpoint)
    if (existing !== undefined) return existing
    const created = at(endpoint.host, `${backend.name} ${endpoint.host}`)
    known.set(endpoint, created)
    return created
  }

  return {
    list,
    destinations() {
      const enabled = list.current.filter(({ weight = 1 }) => weight > 0)
      const total = enabled.reduce((sum, { weight = 1 }) => sum + weight, 0)
      return enabled.map((endpoint) => {
        const destination = destinationOf(endpoint)
        return { weight: (endpoint.weight ?? 1) / total, health: destination.health, destination }
      })
    },
  }
}

/** Compiles a choice by weight and health over the current endpoints; it returns undefined without any. */
export function compileEndpointChoice(
  { list, destinations }: EndpointServers,
  random: () => number,
): () => Destination | undefined {
  const compile = () => ({ of: list.current, choose: compileChoice(destinations(), random) })
  let choice = compile()
  return () => {
    if (choice.of !== list.current) choice = compile()
    return choice.choose()?.destination
  }
}

/** The destination of single calls: one server, or a server of a backend with endpoints. */
export type CallServers = {
  readonly settings: DestinationSettings
  /** Identity of the destination: its origin, or the name of the backend. */
  readonly key: string
  /** A server by weight and health; undefined without endpoints. */
  choose(): Destination | undefined
}

/** The destination of calls to one server. */
export function singleServer(destination: Destination): CallServers {
  const { connection, origin, name } = destination
  const key = connection.socketPath === undefined ? origin : `${origin} ${name}`
  return { settings: destination, key, choose: () => destination }
}

/**
 * Compiles the servers of a named backend; undefined if it has no endpoints. Policies of `defaults` apply
 * where the backend has none.
 */
export function compileNamedEndpoints(
  reference: string,
  backends: readonly NamedBackend[],
  context: CompileContext,
  defaults?: BackendPolicies,
): EndpointServers | undefined {
  const backend = findBackend(reference, backends)
  if (backend?.endpoints === undefined) return undefined
  const compile = (policies: readonly (BackendPolicies | undefined)[]) =>
    compileEndpoints(backend, compileServers({ node: backend, policies }, context), context)
  if (defaults === undefined) return context.cached(backend, 'endpoints', () => compile([backend.policies]))
  const byDefaults = context.cached(
    backend,
    'endpoints by defaults',
    () => new WeakMap<BackendPolicies, EndpointServers>(),
  )
  const known = byDefaults.get(defaults)
  if (known !== undefined) return known
  const servers = compile([backend.policies, defaults])
  byDefaults.set(defaults, servers)
  return servers
}

/**
 * Compiles a named backend with a host or endpoints. Throws if there is none of that name. `overrides` apply
 * over its policies.
 */
export function compileNamedServers(
  reference: string,
  backends: readonly NamedBackend[],
  context: CompileContext,
  overrides?: BackendPolicies,
): CallServers {
  const backend = findBackend(reference, backends)
  if (backend?.endpoints === undefined) {
    if (overrides === undefined || backend?.host === undefined)
      return singleServer(compileNamedDestination(reference, backends, context))
    const { host, name } = backend
    const policies = [overrides, backend.policies]
    return singleServer(compileDestination({ host, node: backend, name, policies }, context))
  }
  const servers = compileServers({ node: backend, policies: [overrides, backend.policies] }, context)
  return {
    settings: servers.settings,
    key: `backend ${backend.name}`,
    choose: compileEndpointChoice(compileEndpoints(backend, servers, context), context.random),
  }
}
