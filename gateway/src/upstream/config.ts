import {
  cel,
  duration,
  exactlyOne,
  hostPort,
  type Infer,
  integer,
  list,
  name,
  number,
  object,
  optional,
  type Schema,
} from '../schema/dsl.ts'
import type { SessionAffinityConfig } from './affinity/affinity.ts'
import { backendTlsSchema, httpSchema, tcpSchema } from './connection-config.ts'
import { backendAuthSchema } from './credentials/config.ts'
import { headerModifierSchema } from './header-modifier.ts'
import { healthRoots } from './health-roots.ts'
import { backendTunnelSchema } from './tunnel/config.ts'

const evictionSchema = object(
  {
    duration: optional(
      duration({
        doc: 'Ejection time of the backend; repeated ejections without a success extend it by this duration, up to 5 minutes.',
        default: 'the `retry-after` of the response, else `3s`',
      }),
    ),
    consecutiveFailures: optional(
      integer(
        {
          doc: 'Consecutive failures before ejection: unhealthy and missing responses.',
          default: 1,
        },
        { min: 1, max: 1_000_000 },
      ),
    ),
    healthThreshold: optional(
      number(
        {
          doc: 'Ejects after a failure if the health before it is below this value. Health is a moving average of outcomes, from 0 to 1, in which each outcome has 30 %. With `consecutiveFailures`, either condition ejects.',
          example: 0.5,
        },
        { min: 0, max: 1 },
      ),
    ),
    restoreHealth: optional(
      number(
        {
          doc: 'Health at the end of an ejection.',
          default: 'the health before it',
          example: 1,
        },
        { min: 0, max: 1 },
      ),
    ),
  },
  { doc: 'Ejects a failing backend temporarily while others remain.' },
)

/** `health` of a place whose expressions have these variables. */
export function healthSchemaOf(roots: readonly string[]) {
  return object(
    {
      unhealthyExpression: optional(
        cel(
          {
            doc: 'Whether a response counts as a failure. Without `eviction`, its defaults apply.',
            default: 'response.code >= 500',
            example: 'response.code >= 500 || response.code == 429',
          },
          [...roots],
        ),
      ),
      eviction: optional(evictionSchema),
    },
    { doc: 'Passive health checks of the backend.' },
  )
}

export const healthSchema = healthSchemaOf([...healthRoots])

/** Policies of a backend, independent of its place in the configuration. */
export const backendPolicyFields = {
  http: optional(httpSchema),
  backendTLS: optional(backendTlsSchema),
  backendAuth: optional(backendAuthSchema),
  tcp: optional(tcpSchema),
  backendTunnel: optional(backendTunnelSchema),
  health: optional(healthSchema),
  requestHeaderModifier: optional(headerModifierSchema),
  responseHeaderModifier: optional(headerModifierSchema),
}

export const backendPoliciesSchema = object(backendPolicyFields, {
  doc: 'Policies of connections and requests to the backend.',
})

export type BackendPolicies = Infer<typeof backendPoliciesSchema>

/** Policies of a backend that routes apply. */
export type RoutedPolicies = BackendPolicies & {
  readonly sessionAffinity?: SessionAffinityConfig | undefined
}

/** `host:port` of a backend. */
export const backendHostSchema = hostPort({
  doc: 'Host and port of an HTTP server.',
  example: 'localhost:8080',
})

/** `weight` of an endpoint. */
export const endpointWeightSchema = integer(
  {
    doc: 'Share of the requests relative to the other endpoints; 0 disables the endpoint.',
    default: 1,
  },
  { min: 0, max: 1_000_000 },
)

const endpoint = object(
  { host: backendHostSchema, weight: optional(endpointWeightSchema) },
  { doc: 'A server of the backend.' },
)

/** Bound of `backends[].endpoints`. */
export const maxEndpoints = 10_000

/** `backends[].endpoints`. */
const endpointsSchema = list(
  endpoint,
  {
    doc: 'Servers of a backend for routes, TCP routes, mirrors, guardrails and rate limit services, with the same policies. Requests are 503 if the list is empty. A reload that changes nothing else applies at once, without compiling routes.',
    advanced: true,
  },
  { max: maxEndpoints },
)

export type EndpointConfig = Infer<typeof endpoint>

/**
 * Schema of the `backends` section; `mcp` and `ai` are schemas of those backends, `policies` that of their
 * policies.
 */
export function namedBackendsSchema<M, A, P extends BackendPolicies>(kinds: {
  mcp: Schema<M>
  ai: Schema<A>
  policies: Schema<P>
}) {
  return list(
    exactlyOne(
      { host: backendHostSchema, endpoints: endpointsSchema, mcp: kinds.mcp, ai: kinds.ai },
      {
        name: name({ doc: 'Name of the backend, for references such as `/<name>`.', example: 'inventory' }),
        policies: optional(kinds.policies),
      },
      { doc: 'A destination of requests.' },
    ),
    { doc: 'Backends that routes, guardrails and MCP targets refer to by name.' },
  )
}

/** An entry of the `backends` section, reduced to the fields read here. */
export type NamedBackend = {
  readonly name: string
  readonly host?: string | undefined
  readonly endpoints?: readonly EndpointConfig[] | undefined
  readonly mcp?: unknown
  readonly ai?: unknown
  readonly policies?: RoutedPolicies | undefined
}

/** Policies of requests of a backend, which only routes apply; `policies/registry` has their schemas. */
export const requestPolicyNames = [
  'extAuthz',
  'authorization',
  'mcpAuthorization',
  'mcpGuardrails',
  'a2a',
  'transformations',
  'requestRedirect',
] as const

const requestPolicies: ReadonlySet<string> = new Set(requestPolicyNames)

/** The first policy of requests of a backend, which calls of the gateway itself cannot apply. */
export function requestPolicyOf({ policies = {} }: Pick<NamedBackend, 'policies'>): string | undefined {
  return Object.keys(policies).find((name) => requestPolicies.has(name))
}

/** Whether a backend consists of HTTP servers that the gateway itself can call. */
export function hasServers(backend: Pick<NamedBackend, 'host' | 'endpoints' | 'policies'>): boolean {
  return (backend.host ?? backend.endpoints) !== undefined && requestPolicyOf(backend) === undefined
}

/** Backends by name; the first of equal names. Lists of a configuration never change. */
const indexes = new WeakMap<readonly object[], ReadonlyMap<string, object>>()

/** Finds the backend that `/name` refers to; the slash is optional. */
export function findBackend<B extends { readonly name: string }>(
  reference: string,
  backends: readonly B[],
): B | undefined {
  const wanted = reference.startsWith('/') ? reference.slice(1) : reference
  return indexOf(backends).get(wanted)
}

function indexOf<B extends { readonly name: string }>(backends: readonly B[]): ReadonlyMap<string, B> {
  const known = indexes.get(backends)
  // Filled below from the same list.
  if (known !== undefined) return known as ReadonlyMap<string, B>
  const index = new Map<string, B>()
  for (const backend of backends) if (!index.has(backend.name)) index.set(backend.name, backend)
  indexes.set(backends, index)
  return index
}
