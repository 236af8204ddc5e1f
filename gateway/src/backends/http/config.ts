import { isToken } from '../../lib/http-token.ts'
import {
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
} from '../../schema/dsl.ts'
import type { ReportIssue } from '../../schema/report.ts'
import { checkBackendHost, checkBackendPolicies } from '../../upstream/check.ts'
import {
  type BackendPolicies,
  backendHostSchema,
  backendPolicyFields,
  findBackend,
  type NamedBackend,
} from '../../upstream/config.ts'
import { missingBackend } from '../../upstream/destination.ts'

const reference = name({ doc: 'Name of an entry of `backends`, as `/<name>`.', example: '/inventory' })

/** Schema of `routes[].backends`. What `mcp` and `ai` hold, and `policies.ai`, is the business of those backends. */
export function routeBackendsSchema<M, A, P>(kinds: { mcp: Schema<M>; ai: Schema<A>; llmPolicy: Schema<P> }) {
  const policies = object(
    { ...backendPolicyFields, ai: optional(kinds.llmPolicy) },
    { doc: 'How the backend is reached and asked.' },
  )
  return list(
    exactlyOne(
      { host: backendHostSchema, backend: reference, mcp: kinds.mcp, ai: kinds.ai },
      {
        weight: optional(
          integer(
            { doc: 'Share of the requests, in relation to the other weights; 0 for none.', default: 1 },
            { min: 0, max: 1_000_000 },
          ),
        ),
        policies: optional(policies),
      },
      { doc: 'A place that requests of the route go to.' },
    ),
    { doc: 'Where requests go; several share them by weight.' },
  )
}

/** An entry of `routes[].backends`, as far as it matters here. */
export type RouteBackend = {
  readonly host?: string | undefined
  readonly backend?: string | undefined
  readonly mcp?: unknown
  readonly ai?: unknown
  readonly weight?: number | undefined
  readonly policies?: BackendPolicies | undefined
}

const timeout = object(
  {
    requestTimeout: optional(
      duration({
        doc: 'Longest time from the arrival of a request to the head of its answer, retries included; 504 after it. An answer that has begun may take longer. `0s` is no limit.',
        example: '30s',
      }),
    ),
    backendRequestTimeout: optional(
      duration({ doc: 'The same for each time a backend is asked.', example: '10s' }),
    ),
  },
  { doc: 'Time limits of requests.' },
)

const retry = object(
  {
    attempts: optional(
      integer({ doc: 'How often a request is sent again, at most.', default: 1 }, { min: 0, max: 20 }),
    ),
    backoff: optional(
      duration({
        doc: 'Wait before the first retry, doubled for each further one up to 10 seconds.',
        default: '25ms',
      }),
    ),
    codes: optional(
      list(integer({ doc: 'A status.' }, { min: 400, max: 599 }), {
        doc: 'Statuses that count as failures, beside connections that fail and time limits.',
        default: [502, 503, 504],
      }),
    ),
    methods: optional(
      list(name({ doc: 'A method.', example: 'POST' }), {
        doc: 'Methods that may be sent again. A request that never reached a backend may be in any case.',
        default: ['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'TRACE'],
        advanced: true,
      }),
    ),
  },
  {
    doc: 'Sends requests that failed again, to another backend where there is one, with the header `x-retry-attempt`. A body of more than 64 KiB is sent once.',
  },
)

const mirrorTarget = exactlyOne(
  { host: backendHostSchema, backend: reference },
  {},
  { doc: 'Where copies go.' },
)

const requestMirror = object(
  {
    backend: mirrorTarget,
    percentage: optional(
      number({ doc: 'Share of the requests that are copied, from 0 to 1.', default: 1 }, { min: 0, max: 1 }),
    ),
  },
  {
    doc: 'Sends copies of requests to another backend and ignores its answers. Requests never wait for it: bodies of more than 64 KiB are not copied, nor is what 100 copies under way leave no room for.',
  },
)

/** Policies of a route that belong to forwarding. */
export const forwardingPolicyFields = {
  timeout: optional(timeout),
  retry: optional(retry),
  requestMirror: optional(requestMirror),
}

const forwardingPolicies = object(forwardingPolicyFields, { doc: 'How requests are forwarded.' })

export type ForwardingPolicies = Infer<typeof forwardingPolicies>
export type RetryConfig = NonNullable<ForwardingPolicies['retry']>
export type MirrorConfig = NonNullable<ForwardingPolicies['requestMirror']>

/** Reports what the schema cannot say about `routes[].backends`; `mcp` and `ai` entries check their own. */
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

/** Reports what the schema cannot say about the policies of a route that belong to forwarding. */
export function checkForwardingPolicies(
  { requestMirror, retry }: ForwardingPolicies,
  named: readonly NamedBackend[],
  report: ReportIssue,
): void {
  retry?.methods?.forEach((method, index) => {
    if (!isToken(method)) report(['retry', 'methods', index], `not a method: "${method}"`)
  })
  if (requestMirror === undefined) return
  const { host, backend } = requestMirror.backend
  const path = ['requestMirror', 'backend']
  if (host !== undefined) checkBackendHost(host, (message) => report([...path, 'host'], message))
  if (backend === undefined) return
  const found = findBackend(backend, named)
  if (found?.host === undefined) report([...path, 'backend'], missingBackend(backend, found))
}
