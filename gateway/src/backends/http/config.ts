import { isToken } from '../../lib/http-token.ts'
import {
  anyOfShapes,
  duration,
  exactlyOne,
  type Infer,
  integer,
  list,
  name,
  number,
  object,
  optional,
  type Schema,
  string,
} from '../../schema/dsl.ts'
import type { ReportIssue } from '../../schema/report.ts'
import { checkBackendHost, checkBackendPolicies } from '../../upstream/check.ts'
import {
  type BackendPolicies,
  backendHostSchema,
  backendPolicyFields,
  findBackend,
  hasServers,
  type NamedBackend,
} from '../../upstream/config.ts'
import { missingBackend } from '../../upstream/destination.ts'

const reference = name({ doc: 'Name of an entry of `backends`, as `/<name>`.', example: '/inventory' })

const error = object(
  {
    status: optional(integer({ doc: 'Response status.', default: 500 }, { min: 400, max: 599 })),
    message: optional(string({ doc: 'Response body, text.', default: 'this backend is not available' })),
  },
  {
    doc: 'Answers with an error, for example in place of a backend that does not exist. Authentication, rules and limits of the route apply before.',
    advanced: true,
  },
)

export type ErrorConfig = Infer<typeof error>

/** Schema of `routes[].backends`; `mcp`, `ai` and `policies.ai` are schemas of those backends. */
export function routeBackendsSchema<M, A, P>(kinds: { mcp: Schema<M>; ai: Schema<A>; llmPolicy: Schema<P> }) {
  const policies = object(
    { ...backendPolicyFields, ai: optional(kinds.llmPolicy) },
    { doc: 'Policies of connections and requests to the backend.' },
  )
  return list(
    exactlyOne(
      { host: backendHostSchema, backend: reference, mcp: kinds.mcp, ai: kinds.ai, error },
      {
        weight: optional(
          integer(
            {
              doc: 'Share of the requests relative to the other weights; 0 disables the backend.',
              default: 1,
            },
            { min: 0, max: 1_000_000 },
          ),
        ),
        policies: optional(policies),
      },
      { doc: 'A destination of requests of the route.' },
    ),
    { doc: 'Destinations of requests; several share them by weight.' },
  )
}

/** An entry of `routes[].backends`, reduced to the fields read here. */
export type RouteBackend = {
  readonly host?: string | undefined
  readonly backend?: string | undefined
  readonly mcp?: unknown
  readonly ai?: unknown
  readonly error?: ErrorConfig | undefined
  readonly weight?: number | undefined
  readonly policies?: BackendPolicies | undefined
}

/** Fields of `timeout`. */
export const timeoutFields = {
  requestTimeout: optional(
    duration({
      doc: 'Limit on the time from the arrival of a request to its response head, including retries; 504 on timeout. The response body may take longer. `0s` disables the limit.',
      example: '30s',
    }),
  ),
  backendRequestTimeout: optional(duration({ doc: 'The same limit for each attempt.', example: '10s' })),
}

const timeout = object(timeoutFields, { doc: 'Time limits of requests.' })

const retry = object(
  {
    attempts: optional(integer({ doc: 'Maximum number of retries.', default: 1 }, { min: 0, max: 20 })),
    backoff: optional(
      duration({
        doc: 'Wait before the first retry, doubled for each further one up to 10 seconds.',
        default: '25ms',
      }),
    ),
    codes: optional(
      list(integer({ doc: 'A status.' }, { min: 400, max: 599 }), {
        doc: 'Statuses that count as failures, in addition to failed connections and timeouts.',
        default: [502, 503, 504],
      }),
    ),
    methods: optional(
      list(name({ doc: 'A method.', example: 'POST' }), {
        doc: 'Methods that permit retries. A request that did not reach a backend is always retried.',
        default: ['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'TRACE'],
        advanced: true,
      }),
    ),
  },
  {
    doc: 'Retries failed requests, on another backend if there is one, with the header `x-retry-attempt`. A request with a body of more than 64 KiB is not retried.',
  },
)

const mirrorTarget = exactlyOne(
  { host: backendHostSchema, backend: reference },
  {},
  { doc: 'Destination of the copies.' },
)

const requestMirror = object(
  {
    backend: mirrorTarget,
    percentage: optional(
      number({ doc: 'Share of the requests to copy, from 0 to 1.', default: 1 }, { min: 0, max: 1 }),
    ),
  },
  {
    doc: 'Sends copies of requests to another backend and ignores its responses. Requests never wait for copies: requests with bodies of more than 64 KiB, and requests during 100 active copies, are not copied.',
  },
)

const maxMirrors = 16

/** Forwarding policies of a route. */
export const forwardingPolicyFields = {
  timeout: optional(timeout),
  retry: optional(retry),
  requestMirror: optional(
    anyOfShapes([requestMirror, list(requestMirror, { doc: 'Several mirrors.' }, { max: maxMirrors })], {
      doc: 'Sends copies of requests to another backend, or a list of such mirrors.',
    }),
  ),
}

const forwardingPolicies = object(forwardingPolicyFields, { doc: 'Policies of forwarding.' })

export type ForwardingPolicies = Infer<typeof forwardingPolicies>
export type RetryConfig = NonNullable<ForwardingPolicies['retry']>
export type MirrorConfig = Infer<typeof requestMirror>

/** The mirrors of a route, configured as one or as a list. */
export function mirrorsOf(configured: ForwardingPolicies['requestMirror']): readonly MirrorConfig[] {
  if (configured === undefined) return []
  return Array.isArray(configured) ? configured : [configured]
}

/** Checks `routes[].backends` beyond the schema; `mcp` and `ai` entries have their own checks. */
export function checkRouteBackends(
  entries: readonly RouteBackend[],
  named: readonly NamedBackend[],
  report: ReportIssue,
): void {
  entries.forEach((entry, index) => {
    if (entry.host !== undefined) checkBackendHost(entry.host, (message) => report([index, 'host'], message))
    if (entry.backend !== undefined && findBackend(entry.backend, named) === undefined) {
      report([index, 'backend'], missingBackend(entry.backend, undefined))
    }
    if (entry.policies) {
      checkBackendPolicies(entry.policies, (path, message) => report([index, 'policies', ...path], message))
    }
  })
}

/** Checks the forwarding policies of a route beyond the schema. */
export function checkForwardingPolicies(
  { requestMirror, retry }: ForwardingPolicies,
  named: readonly NamedBackend[],
  report: ReportIssue,
): void {
  retry?.methods?.forEach((method, index) => {
    if (!isToken(method)) report(['retry', 'methods', index], `not a method: "${method}"`)
  })
  mirrorsOf(requestMirror).forEach(({ backend: { host, backend } }, index) => {
    const item = Array.isArray(requestMirror) ? [index] : []
    const path = ['requestMirror', ...item, 'backend']
    if (host !== undefined) checkBackendHost(host, (message) => report([...path, 'host'], message))
    if (backend === undefined) return
    const found = findBackend(backend, named)
    if (found === undefined || !hasServers(found))
      report([...path, 'backend'], missingBackend(backend, found))
  })
}
