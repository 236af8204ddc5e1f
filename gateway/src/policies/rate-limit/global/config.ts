import { checkCel } from '../../../cel/checked.ts'
import { parseDuration } from '../../../lib/duration.ts'
import { llmResponseMembers } from '../../../pipeline/facts/llm-facts.ts'
import {
  cel,
  duration,
  enumeration,
  exactlyOne,
  type Infer,
  list,
  name,
  object,
  optional,
} from '../../../schema/dsl.ts'
import type { ReportIssue } from '../../../schema/report.ts'
import { findBackend, hasServers, type NamedBackend } from '../../../upstream/config.ts'
import { missingBackend } from '../../../upstream/destination.ts'
import { checkServiceHost, serviceHostSchema } from '../../../upstream/grpc-service/service-address.ts'
import { appliesToSchema, keyVariables } from '../local-config.ts'

const variables = [...keyVariables]

/** CEL variables of token costs. */
export const costVariables: ReadonlySet<string> = new Set([...variables, ...llmResponseMembers])

/** `key` of a descriptor entry. */
export const descriptorKeySchema = name({ doc: 'Descriptor key that the service expects.', example: 'team' })

/** `value` of a descriptor entry. */
export const descriptorValueSchema = cel(
  { doc: 'Descriptor value. A constant is a quoted CEL string: `\'"gold"\'`.', example: 'apiKey.group' },
  variables,
)

const entry = object({ key: descriptorKeySchema, value: descriptorValueSchema }, { doc: 'Descriptor entry.' })

/** Expressions of a descriptor. */
export const descriptorFields = {
  cost: optional(
    cel(
      {
        doc: 'Cost of a request, rounded up to an integer. For tokens it is evaluated after the response and may use `llm.inputTokens`, `llm.outputTokens` and the other counts, and `llm.cost` in US dollars if `config.modelCatalog` is set.',
        default: '1, or the tokens used',
        example: 'llm.inputTokens + 4 * llm.outputTokens',
        advanced: true,
      },
      [...costVariables],
    ),
  ),
  limitOverride: optional(
    cel(
      {
        doc: 'Overrides the limit of the service: a map of `unit` (second, minute, hour, day, month, year) and `requestsPerUnit`.',
        example: '{"unit": "minute", "requestsPerUnit": 10}',
        advanced: true,
      },
      variables,
    ),
  ),
}

const descriptor = object(
  {
    entries: list(
      entry,
      {
        doc: 'Descriptor entries. A request with a missing or empty value is not counted.',
      },
      { min: 1, max: 64 },
    ),
    type: optional(
      enumeration(['requests', 'tokens'], {
        doc: 'Counted unit: requests on arrival, or tokens after the response ends.',
        default: 'requests',
      }),
    ),
    ...descriptorFields,
  },
  { doc: 'Rate limit descriptor.' },
)

/** Fields of the service, independent of its address. */
export const limiterFields = {
  domain: name({ doc: 'Rate limit domain configured in the service.', example: 'tollgate' }),
  timeout: optional(
    duration({
      doc: 'Total timeout of all checks of a request.',
      default: '500ms',
    }),
  ),
}

/** `remoteRateLimit`, also known as `rateLimit.global`. */
export const globalRateLimitSchema = exactlyOne(
  {
    host: serviceHostSchema,
    backend: name({
      doc: 'Name of an entry of `backends`. Its `backendTLS` applies to the service.',
      example: '/limiter',
    }),
  },
  {
    domain: limiterFields.domain,
    descriptors: list(descriptor, { doc: 'Descriptors to count.' }, { min: 1, max: 16 }),
    failureMode: optional(
      enumeration(['failClosed', 'failOpen', 'FailClosed', 'FailOpen'], {
        doc: 'Behaviour if the service is unavailable: `failClosed` refuses requests with 500, `failOpen` allows them.',
        default: 'failClosed',
      }),
    ),
    protocol: optional(
      enumeration(['envoy', 'kuadrant'], {
        doc: "Methods for token checks and reports: Envoy's, or Limitador's (`kuadrant.service.ratelimit.v1`). Limitador ignores a report to Envoy's method that exceeds the remaining budget.",
        default: 'envoy',
      }),
    ),
    appliesTo: optional(appliesToSchema),
    timeout: limiterFields.timeout,
    name: optional(
      name({ doc: 'Name in metrics and logs.', default: 'global and the domain', advanced: true }),
    ),
  },
  {
    doc: "Limits counted by a service with Envoy's rate limit protocol and shared by all gateways that use it.",
  },
)

export type GlobalRateLimitConfig = Infer<typeof globalRateLimitSchema>
export type DescriptorConfig = GlobalRateLimitConfig['descriptors'][number]

const longestTimeoutMs = 60_000

/** Timeout in milliseconds. */
export function timeoutOf({ timeout }: GlobalRateLimitConfig): number {
  return parseDuration(timeout ?? '500ms') ?? 500
}

/** Whether a descriptor counts tokens. */
export function countsTokens({ type }: DescriptorConfig): boolean {
  return type === 'tokens'
}

/** Reports errors beyond the schema. `allowedVariables` are the CEL variables of the scope. */
export function checkGlobalRateLimit(
  config: GlobalRateLimitConfig,
  allowedVariables: ReadonlySet<string>,
  report: ReportIssue,
): void {
  checkServiceHost(config, report)
  const timeoutMs = timeoutOf(config)
  if (timeoutMs === 0) report(['timeout'], 'must be greater than 0')
  if (timeoutMs > longestTimeoutMs) report(['timeout'], 'must be at most 60s')
  config.descriptors.forEach((item, index) => {
    const check = (source: string | undefined, variables: ReadonlySet<string>, path: (string | number)[]) => {
      if (source !== undefined)
        checkCel(source, variables, (message) => report(['descriptors', index, ...path], message))
    }
    item.entries.forEach((pair, at) => {
      check(pair.value, allowedVariables, ['entries', at, 'value'])
    })
    check(
      item.cost,
      countsTokens(item) ? new Set([...allowedVariables, ...llmResponseMembers]) : allowedVariables,
      ['cost'],
    )
    check(item.limitOverride, allowedVariables, ['limitOverride'])
  })
}

/** Reports a reference to an unknown backend or a backend without servers. */
export function checkGlobalBackend(
  { backend: reference }: GlobalRateLimitConfig,
  backends: readonly NamedBackend[],
  report: ReportIssue,
): void {
  if (reference === undefined) return
  const found = findBackend(reference, backends)
  if (found === undefined || !hasServers(found)) report(['backend'], missingBackend(reference, found))
}
