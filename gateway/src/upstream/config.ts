import {
  boolean,
  duration,
  enumeration,
  exactlyOne,
  hostPort,
  type Infer,
  integer,
  list,
  name,
  object,
  optional,
  pemSource,
  type Schema,
  secretSource,
} from '../schema/dsl.ts'
import { headerModifierSchema } from './header-modifier.ts'

/** Names in certificates of backends. */
export const serverNameFields = {
  hostname: optional(
    name({
      doc: 'Server name in the TLS handshake; the certificate must contain it.',
      default: 'the host of the backend',
      example: 'api.internal.example.com',
    }),
  ),
  subjectAltNames: optional(
    list(
      name({ doc: 'A DNS name, an IP address or a URI.' }),
      {
        doc: 'Alternative names: the certificate must contain one, instead of the hostname.',
        advanced: true,
      },
      { min: 1, max: 64 },
    ),
  ),
}

/** TLS to a backend. */
export const backendTlsSchema = object(
  {
    cert: optional(pemSource({ doc: 'Client certificate of the gateway, PEM.', holds: 'certificates' })),
    key: optional(pemSource({ doc: 'Private key of `cert`, PEM.', holds: 'privateKey' })),
    root: optional(
      pemSource({
        doc: 'Trusted certificate authorities, PEM.',
        holds: 'certificates',
        default: 'the well-known authorities',
      }),
    ),
    ...serverNameFields,
    insecure: optional(
      boolean({ doc: 'Accepts every certificate. For tests only.', default: false, advanced: true }),
    ),
    insecureHost: optional(
      boolean({
        doc: 'Accepts certificates of trusted authorities for any name.',
        default: false,
        advanced: true,
      }),
    ),
  },
  { doc: 'TLS to the backend. `{}` trusts the well-known authorities.' },
)

export type BackendTlsConfig = Infer<typeof backendTlsSchema>

/** `location` of credentials for a backend. */
export const credentialLocation = object(
  {
    header: object(
      {
        name: name({ doc: 'Name of the header.', example: 'x-api-key' }),
        prefix: optional(name({ doc: 'Prefix of the credential.', example: 'Bearer ' })),
      },
      { doc: 'Sends the credential in a header and replaces the header of the client.' },
    ),
  },
  { doc: 'Location of the credential. The default is `authorization: Bearer`.' },
)

/** Credentials for a backend. */
export const backendAuthSchema = exactlyOne(
  {
    key: secretSource({ doc: "The gateway's own credential at the backend.", example: '$UPSTREAM_KEY' }),
    passthrough: object(
      {},
      { doc: 'Forwards the accepted credential of the client, which is otherwise withheld from backends.' },
    ),
  },
  { location: optional(credentialLocation) },
  { doc: 'How the gateway authenticates to the backend.' },
)

export type BackendAuthConfig = Infer<typeof backendAuthSchema>

const http = object(
  {
    requestTimeout: optional(
      duration({
        doc: 'Limit on the wait for the response head, including the connection; 504 on timeout.',
        example: '30s',
        default: '10m',
      }),
    ),
    version: optional(
      enumeration(['HTTP/1.1', 'HTTP/2'], {
        doc: 'Protocol version. `HTTP/2` is negotiated over TLS, and used with prior knowledge otherwise.',
        default: 'HTTP/1.1',
      }),
    ),
  },
  { doc: 'HTTP to the backend.' },
)

const tcp = object(
  {
    connectTimeout: optional(
      duration({ doc: 'Limit on establishing a connection, including TLS.', default: '10s' }),
    ),
  },
  { doc: 'Connections to the backend.' },
)

const health = object(
  {
    eviction: optional(
      object(
        {
          duration: optional(
            duration({
              doc: 'Ejection time of the backend; repeated ejections without a success extend it by this duration, up to 5 minutes.',
              default: '3s',
            }),
          ),
          consecutiveFailures: optional(
            integer(
              {
                doc: 'Consecutive failures before ejection: responses with 5xx, and missing responses.',
                default: 1,
              },
              { min: 1, max: 1_000_000 },
            ),
          ),
        },
        { doc: 'Ejects a failing backend temporarily while others remain.' },
      ),
    ),
  },
  { doc: 'Passive health checks of the backend.' },
)

/** Policies of a backend, independent of its place in the configuration. */
export const backendPolicyFields = {
  http: optional(http),
  backendTLS: optional(backendTlsSchema),
  backendAuth: optional(backendAuthSchema),
  tcp: optional(tcp),
  health: optional(health),
  requestHeaderModifier: optional(headerModifierSchema),
  responseHeaderModifier: optional(headerModifierSchema),
}

export const backendPoliciesSchema = object(backendPolicyFields, {
  doc: 'Policies of connections and requests to the backend.',
})

export type BackendPolicies = Infer<typeof backendPoliciesSchema>

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

/** Schema of the `backends` section; `mcp` and `ai` are schemas of those backends. */
export function namedBackendsSchema<M, A>(kinds: { mcp: Schema<M>; ai: Schema<A> }) {
  return list(
    exactlyOne(
      { host: backendHostSchema, endpoints: endpointsSchema, mcp: kinds.mcp, ai: kinds.ai },
      {
        name: name({ doc: 'Name of the backend, for references such as `/<name>`.', example: 'inventory' }),
        policies: optional(backendPoliciesSchema),
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
  readonly policies?: BackendPolicies | undefined
}

/** Whether a backend consists of HTTP servers. */
export function hasServers({ host, endpoints }: Pick<NamedBackend, 'host' | 'endpoints'>): boolean {
  return (host ?? endpoints) !== undefined
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
