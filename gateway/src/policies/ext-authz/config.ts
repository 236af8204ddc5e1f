import { checkCel } from '../../cel/checked.ts'
import { parseDuration } from '../../lib/duration.ts'
import { isToken } from '../../lib/http-token.ts'
import { isEditableHeader } from '../../net/http/header-edits.ts'
import {
  anyOfShapes,
  boolean,
  cel,
  enumeration,
  exactlyOne,
  type Infer,
  integer,
  list,
  map,
  name,
  object,
  optional,
  string,
} from '../../schema/dsl.ts'
import type { Path } from '../../schema/path.ts'
import type { ReportIssue } from '../../schema/report.ts'
import { checkBackendPolicies } from '../../upstream/check.ts'
import { backendPoliciesSchema, findBackend, hasServers, type NamedBackend } from '../../upstream/config.ts'
import { missingBackend } from '../../upstream/destination.ts'
import { checkServiceHost, serviceHostSchema } from '../../upstream/grpc-service/service-address.ts'

/** Settings of checks over gRPC. */
export const grpcFields = {
  context: optional(
    map(string({ doc: 'The value.' }), {
      doc: 'Constants of the check: `context_extensions`.',
      example: { tenant: 'search' },
    }),
  ),
  metadata: optional(
    map(cel({ doc: 'A map. Without a value it is omitted.', reveals: true }), {
      doc: 'Values of the check by name: `metadata_context.filter_metadata`.',
      default: '`envoy.filters.http.jwt_authn` with `jwt_payload`, the claims of the token',
      example: { 'dev.tollgate.key': '{"id": apiKey.id}' },
    }),
  ),
}

const grpcSchema = object(grpcFields, {
  doc: 'Protocol `envoy.service.auth.v3.Authorization/Check` of Envoy.',
})

/** Variables of expressions over a response, for the editor; `checkExtAuthz` checks those of the place. */
const replyRoots = [
  ...['now', 'request', 'source', 'jwt', 'basicAuth', 'apiKey', 'metadata', 'extAuthz', 'extauthz'],
  ...['response', 'response.body'],
]

/** Settings of checks over HTTP. */
export const httpFields = {
  path: optional(
    cel({
      doc: 'Path and query of the check.',
      default: 'path and query of the request',
      example: '"/auth" + request.path',
    }),
  ),
  redirect: optional(
    cel({
      doc: 'Address to which clients are redirected (302) instead of a response with 401 or 403.',
      example: '"/oauth2/start?rd=" + request.path',
    }),
  ),
  body: optional(
    cel({
      doc: 'Body of the check: text or bytes; other values are sent as JSON.',
      reveals: true,
      default: 'none, or that of `includeRequestBody`',
      advanced: true,
    }),
  ),
  includeResponseHeaders: optional(
    list(name({ doc: 'Name of a header, in any case.', example: 'x-auth-request-user' }), {
      doc: 'Headers of a permitting response that replace those of the forwarded request. A header that the response does not have is removed from the request.',
    }),
  ),
  addRequestHeaders: optional(
    map(cel({ doc: 'The value. Without one the header is omitted.', reveals: true }), {
      doc: 'Headers of the check, or `:method` and `:authority`.',
      example: { 'x-source': 'source.address' },
    }),
  ),
  metadata: optional(
    map(cel({ doc: 'The value. Without one the name is omitted.' }, replyRoots), {
      doc: 'Values of `extAuthz` in later expressions, computed from a permitting response: `response.headers`, `response.code`, `response.body`.',
      example: { user: 'response.headers["x-auth-request-user"]' },
    }),
  ),
}

const httpSchema = object(httpFields, { doc: 'An HTTP request. A response with 2xx permits.' })

/** `cache`: cached decisions. */
export const cacheSchema = object(
  {
    key: list(
      cel({ doc: 'Text, number, boolean, bytes or null.' }),
      {
        doc: 'Expressions that identify a decision. They must cover everything that the service decides on. A request without a value of one of them is not cached.',
        example: ['request.headers["authorization"]', 'request.path'],
      },
      { min: 1, max: 16 },
    ),
    ttl: name({
      doc: 'Time a decision is cached: a duration, or an expression over the request and `extAuthz` with a duration, a timestamp or seconds since the epoch.',
      example: '5m',
    }),
    maxEntries: optional(
      integer(
        {
          doc: 'Cached decisions of each worker thread; the least recently used is dropped.',
          default: 10_000,
        },
        { min: 1, max: 1_000_000 },
      ),
    ),
  },
  { doc: 'Caches decisions, but never errors.' },
)

/** `extAuthz`. */
export const extAuthzSchema = exactlyOne(
  {
    host: serviceHostSchema,
    backend: name({ doc: 'Name of an entry of `backends`.', example: '/authorizer' }),
  },
  {
    policies: optional(backendPoliciesSchema),
    protocol: optional(
      exactlyOne(
        { grpc: grpcSchema, http: httpSchema },
        {},
        { doc: 'Protocol of the service.', default: '`grpc: {}`' },
      ),
    ),
    failureMode: optional(
      anyOfShapes(
        [
          enumeration(['deny', 'allow'], { doc: '`deny` refuses with 403, `allow` forwards.' }),
          object(
            { denyWithStatus: integer({ doc: 'Status of the refusal.' }, { min: 400, max: 599 }) },
            { doc: 'Refuses with another status.' },
          ),
        ],
        { doc: 'Behaviour without a decision: the service is unavailable or fails.', default: 'deny' },
      ),
    ),
    includeRequestHeaders: optional(
      list(name({ doc: 'Name of a header, in any case, or pseudo-header.', example: 'cookie' }), {
        doc: 'Headers of the client that the service receives.',
        default: 'all with gRPC, `authorization` with HTTP',
      }),
    ),
    includeRequestBody: optional(
      object(
        {
          maxRequestBytes: optional(
            integer(
              { doc: 'Part of the body that the service receives, in bytes.', default: 8192 },
              { min: 1, max: 16 * 1024 * 1024 },
            ),
          ),
          allowPartialMessage: optional(
            boolean({
              doc: 'Sends the beginning of a larger body, which is otherwise refused with 413.',
              default: false,
            }),
          ),
          packAsBytes: optional(
            boolean({ doc: 'Sends `raw_body` instead of `body` with gRPC.', default: false }),
          ),
        },
        { doc: 'Includes the body in the check.' },
      ),
    ),
    cache: optional(cacheSchema),
  },
  { doc: 'A service that permits or refuses requests, with the protocol of Envoy or HTTP.' },
)

export type ExtAuthzConfig = Infer<typeof extAuthzSchema>
export type HttpConfig = Infer<typeof httpSchema>
export type CacheConfig = Infer<typeof cacheSchema>

export const defaultTimeoutMs = 2_000
export const defaultBodyBytes = 8192

/** CEL variables of expressions over the response of the service. */
export function responseVariables(head: ReadonlySet<string>): ReadonlySet<string> {
  return new Set([...head, 'response', 'response.body'])
}

const checkPseudoHeaders: ReadonlySet<string> = new Set([':method', ':path', ':authority', ':scheme'])
const settablePseudoHeaders: ReadonlySet<string> = new Set([':method', ':authority'])

/** Reports errors beyond the schema. `variables` are the CEL variables of request heads. */
export function checkExtAuthz(
  config: ExtAuthzConfig,
  variables: ReadonlySet<string>,
  report: ReportIssue,
): void {
  const check = (source: string, path: (string | number)[], known = variables) =>
    checkCel(source, known, (message) => report(path, message))
  checkServiceHost(config, report)
  if (config.policies)
    checkBackendPolicies(config.policies, (path, message) => report(['policies', ...path], message))
  config.includeRequestHeaders?.forEach((field, index) => {
    if (checkPseudoHeaders.has(field) || isToken(field)) return
    report(['includeRequestHeaders', index], `"${field}" is not a header name`)
  })
  const { protocol, cache } = config
  for (const [field, source] of Object.entries(protocol?.grpc?.metadata ?? {}))
    check(source, ['protocol', 'grpc', 'metadata', field])
  if (protocol?.http !== undefined)
    checkHttp(protocol.http, variables, (path, message) => report(['protocol', 'http', ...path], message))
  if (protocol?.http !== undefined && config.includeRequestBody?.packAsBytes !== undefined)
    report(['includeRequestBody', 'packAsBytes'], 'applies to protocol.grpc only')
  cache?.key.forEach((source, index) => {
    check(source, ['cache', 'key', index])
  })
  if (cache !== undefined && parseDuration(cache.ttl) === undefined) check(cache.ttl, ['cache', 'ttl'])
}

function checkHttp(http: HttpConfig, variables: ReadonlySet<string>, report: ReportIssue): void {
  for (const key of ['path', 'redirect', 'body'] as const) {
    const source = http[key]
    if (source !== undefined) checkCel(source, variables, (message) => report([key], message))
  }
  for (const [field, source] of Object.entries(http.addRequestHeaders ?? {})) {
    const lower = field.toLowerCase()
    const at = ['addRequestHeaders', field]
    if (lower.startsWith(':') && !settablePseudoHeaders.has(lower))
      report(at, 'must be :method, :authority or the name of a header')
    else if (!lower.startsWith(':') && lower !== 'host' && !isEditableHeader(lower))
      report(at, `${field} is not a header name, or is set by the gateway`)
    checkCel(source, variables, (message) => report(at, message))
  }
  http.includeResponseHeaders?.forEach((field, index) => {
    if (isEditableHeader(field.toLowerCase())) return
    report(['includeResponseHeaders', index], `${field} is not a header name, or is set by the gateway`)
  })
  const known = responseVariables(variables)
  for (const [field, source] of Object.entries(http.metadata ?? {}))
    checkCel(source, known, (message) => report(['metadata', field], message))
}

/** The expressions over requests with their paths; those over responses are not included. */
export function expressionsOfExtAuthz({ protocol, cache }: ExtAuthzConfig): { source: string; path: Path }[] {
  const { path, redirect, body, addRequestHeaders = {} } = protocol?.http ?? {}
  const single = { path, redirect, body }
  const at = (prefix: Path, sources: Readonly<Record<string, string | undefined>>) =>
    Object.entries(sources).flatMap(([name, source]) =>
      source === undefined ? [] : [{ source, path: [...prefix, name] }],
    )
  return [
    ...at(['protocol', 'grpc', 'metadata'], protocol?.grpc?.metadata ?? {}),
    ...at(['protocol', 'http'], single),
    ...at(['protocol', 'http', 'addRequestHeaders'], addRequestHeaders),
    ...(cache?.key ?? []).map((source, index) => ({ source, path: ['cache', 'key', index] })),
  ]
}

/** Reports a reference to an unknown backend or a backend without servers. */
export function checkExtAuthzBackend(
  { backend: reference }: ExtAuthzConfig,
  backends: readonly NamedBackend[],
  report: ReportIssue,
): void {
  if (reference === undefined) return
  const found = findBackend(reference, backends)
  if (found === undefined || !hasServers(found)) report(['backend'], missingBackend(reference, found))
}
