import { checkCel } from '../../cel/checked.ts'
import { isToken } from '../../lib/http-token.ts'
import {
  anyOfShapes,
  cel,
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
import type { Path } from '../../schema/path.ts'
import type { ReportIssue } from '../../schema/report.ts'
import { checkBackendHost, checkBackendPolicies, checkSessionAffinity } from '../../upstream/check.ts'
import {
  type BackendPolicies,
  backendHostSchema,
  findBackend,
  hasServers,
  type NamedBackend,
  type RoutedPolicies,
} from '../../upstream/config.ts'
import { missingBackend } from '../../upstream/destination.ts'
import {
  checkDynamic,
  type DynamicConfig,
  dynamicSchema,
  noDynamicTunnel,
  requestTargetVariables,
} from '../../upstream/dynamic.ts'

const reference = name({ doc: 'Name of an entry of `backends`, as `/<name>`.', example: '/inventory' })

const routeGroup = name({
  doc: 'Name of an entry of `routeGroups`, whose routes receive the requests. A route with groups has no other backends.',
  example: 'orders',
})

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

/**
 * Schema of `routes[].backends`; `mcp` and `ai` are schemas of those backends, `policies` that of their
 * policies.
 */
export function routeBackendsSchema<M, A, P extends BackendPolicies>(kinds: {
  mcp: Schema<M>
  ai: Schema<A>
  policies: Schema<P>
}) {
  return list(
    exactlyOne(
      {
        host: backendHostSchema,
        backend: reference,
        mcp: kinds.mcp,
        ai: kinds.ai,
        dynamic: dynamicSchema,
        error,
        routeGroup,
      },
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
        policies: optional(kinds.policies),
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
  readonly dynamic?: DynamicConfig | undefined
  readonly error?: ErrorConfig | undefined
  readonly routeGroup?: string | undefined
  readonly weight?: number | undefined
  readonly policies?: RoutedPolicies | undefined
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

const requestVariables = ['now', 'request', 'source', 'destination', 'jwt', 'basicAuth', 'apiKey', 'metadata']

/** CEL variables of the expressions of `retry`. */
export const retryVariables = {
  precondition: new Set(requestVariables),
  condition: new Set([...requestVariables, 'response']),
}

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
    precondition: optional(
      cel(
        {
          doc: 'Permits retries if true for the request; its body is then kept for repetition. A failed evaluation permits none.',
          example: 'request.method == "GET"',
        },
        [...retryVariables.precondition],
      ),
    ),
    condition: optional(
      cel(
        {
          doc: 'Responses for which it is true count as failures, beside those in `codes`. It reads the head of the response.',
          example: 'response.headers["x-retry"] == "true"',
        },
        [...retryVariables.condition],
      ),
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
    if (entry.dynamic !== undefined) {
      const under = (path: Path, message: string) => report([index, 'dynamic', ...path], message)
      checkDynamic(entry.dynamic, requestTargetVariables, under)
      if (entry.policies?.backendTunnel !== undefined)
        report([index, 'policies', 'backendTunnel'], noDynamicTunnel)
      if (entry.policies?.health !== undefined)
        report(
          [index, 'policies', 'health'],
          'is not supported on dynamic backends, which have any number of hosts',
        )
    }
    const affinity = entry.policies?.sessionAffinity
    if (affinity !== undefined)
      checkSessionAffinity(
        affinity,
        { endpoints: entry.backend === undefined ? undefined : findBackend(entry.backend, named)?.endpoints },
        (path, message) => report([index, 'policies', 'sessionAffinity', ...path], message),
      )
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
  for (const field of ['precondition', 'condition'] as const) {
    const source = retry?.[field]
    if (source !== undefined)
      checkCel(source, retryVariables[field], (message) => report(['retry', field], message))
  }
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
