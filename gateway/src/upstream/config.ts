import {
  boolean,
  duration,
  enumeration,
  exactlyOne,
  filePath,
  hostPort,
  type Infer,
  integer,
  list,
  name,
  object,
  optional,
  type Schema,
  secretSource,
} from '../schema/dsl.ts'
import { headerModifierSchema } from './header-modifier.ts'

/** TLS towards a backend. */
export const backendTlsSchema = object(
  {
    cert: optional(
      filePath({ doc: 'File with the certificate the gateway shows, PEM.', holds: 'certificates' }),
    ),
    key: optional(filePath({ doc: 'File with the private key of `cert`, PEM.', holds: 'privateKey' })),
    root: optional(
      filePath({
        doc: 'File with the authorities that are trusted, PEM.',
        holds: 'certificates',
        default: 'the well-known authorities',
      }),
    ),
    hostname: optional(
      name({
        doc: 'Name that is asked for in the TLS handshake, and that the certificate must bear.',
        default: 'the host of the backend',
        example: 'api.internal.example.com',
      }),
    ),
    subjectAltNames: optional(
      list(
        name({ doc: 'A DNS name, an IP address or a URI.' }),
        { doc: 'Names of which the certificate must bear one, instead of the hostname.', advanced: true },
        { min: 1, max: 64 },
      ),
    ),
    insecure: optional(
      boolean({ doc: 'Accepts every certificate. For trials only.', default: false, advanced: true }),
    ),
    insecureHost: optional(
      boolean({
        doc: 'Accepts certificates of trusted authorities for any other name.',
        default: false,
        advanced: true,
      }),
    ),
  },
  { doc: 'The backend is reached over TLS. `{}` trusts the well-known authorities.' },
)

export type BackendTlsConfig = Infer<typeof backendTlsSchema>

const credentialLocation = object(
  {
    header: object(
      {
        name: name({ doc: 'Name of the header.', example: 'x-api-key' }),
        prefix: optional(name({ doc: 'What comes before the credential.', example: 'Bearer ' })),
      },
      { doc: 'In a header, which replaces what the client sent there.' },
    ),
  },
  { doc: 'Where the backend expects the credential. Without it, `authorization: Bearer`.' },
)

/** The credential a backend is asked with. */
export const backendAuthSchema = exactlyOne(
  {
    key: secretSource({ doc: "The gateway's own credential at the backend.", example: '$UPSTREAM_KEY' }),
    passthrough: object(
      {},
      { doc: 'The credential the client was authenticated with, which is otherwise kept from backends.' },
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
        doc: 'Longest wait for the head of an answer, connecting included; 504 after it.',
        example: '30s',
        default: '10m',
      }),
    ),
    version: optional(
      enumeration(['HTTP/1.1', 'HTTP/2'], {
        doc: '`HTTP/2` is negotiated with TLS, and taken for granted without.',
        default: 'HTTP/1.1',
      }),
    ),
  },
  { doc: 'HTTP towards the backend.' },
)

const tcp = object(
  {
    connectTimeout: optional(
      duration({ doc: 'Longest wait for a connection, TLS included.', default: '10s' }),
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
              doc: 'How long the backend is left out; each time it fails again right after, once more as long, up to 5 minutes.',
              default: '3s',
            }),
          ),
          consecutiveFailures: optional(
            integer(
              { doc: 'Failures in a row that lead to it: answers with 5xx, and none.', default: 1 },
              { min: 1, max: 1_000_000 },
            ),
          ),
        },
        { doc: 'Leaves a failing backend out for a while, as long as another one is left.' },
      ),
    ),
  },
  { doc: 'What failures of the backend lead to.' },
)

/** Policies of a backend wherever backends are configured. */
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
  doc: 'How the backend is reached and asked.',
})

export type BackendPolicies = Infer<typeof backendPoliciesSchema>

/** `host:port` of a backend. */
export const backendHostSchema = hostPort({
  doc: 'Host and port of an HTTP server.',
  example: 'localhost:8080',
})

/** Schema of the `backends` section. What `mcp` and `ai` hold is the business of those backends. */
export function namedBackendsSchema<M, A>(kinds: { mcp: Schema<M>; ai: Schema<A> }) {
  return list(
    exactlyOne(
      { host: backendHostSchema, mcp: kinds.mcp, ai: kinds.ai },
      {
        name: name({ doc: 'Name of the backend. Others refer to it as `/<name>`.', example: 'inventory' }),
        policies: optional(backendPoliciesSchema),
      },
      { doc: 'A place that requests can go to.' },
    ),
    { doc: 'Backends that routes, guardrails and MCP targets refer to by name.' },
  )
}

/** An entry of the `backends` section, as far as it matters here. */
export type NamedBackend = {
  readonly name: string
  readonly host?: string | undefined
  readonly mcp?: unknown
  readonly ai?: unknown
  readonly policies?: BackendPolicies | undefined
}

/** The backend that `/name` stands for; the slash may be left out. */
export function findBackend<B extends { readonly name: string }>(
  reference: string,
  backends: readonly B[],
): B | undefined {
  const wanted = reference.startsWith('/') ? reference.slice(1) : reference
  return backends.find(({ name }) => name === wanted)
}
