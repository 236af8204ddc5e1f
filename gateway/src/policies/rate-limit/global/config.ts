import { checkCel } from '../../../cel/checked.ts'
import { parseDuration } from '../../../lib/duration.ts'
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
import { checkBackendHost } from '../../../upstream/check.ts'
import { backendHostSchema, findBackend, type NamedBackend } from '../../../upstream/config.ts'
import { missingBackend } from '../../../upstream/destination.ts'
import { keyVariables } from '../local-config.ts'

const variables = [...keyVariables]

/** Members of `llm` that exist once an answer has ended, for the cost of tokens. */
const responseMembers = [
  ...['configuredModel', 'provider', 'responseModel', 'cost', 'inputTokens', 'outputTokens', 'totalTokens'],
  ...['cachedInputTokens', 'cacheCreationInputTokens', 'reasoningTokens'],
  ...['inputAudioTokens', 'outputAudioTokens'],
].map((name) => `llm.${name}`)

/** Variables of the cost of tokens. */
export const costVariables: ReadonlySet<string> = new Set([...variables, ...responseMembers])

const entry = object(
  {
    key: name({ doc: 'Name that the service knows the value by.', example: 'team' }),
    value: cel(
      { doc: 'The value. A fixed text needs quotes of its own: `\'"gold"\'`.', example: 'apiKey.group' },
      variables,
    ),
  },
  { doc: 'A key and its value.' },
)

const descriptor = object(
  {
    entries: list(
      entry,
      {
        doc: 'What the request counts as. A request for which one of the values is missing or empty does not count here.',
      },
      { min: 1, max: 64 },
    ),
    type: optional(
      enumeration(['requests', 'tokens'], {
        doc: 'What is counted: requests as they come, or tokens once an answer has ended.',
        default: 'requests',
      }),
    ),
    cost: optional(
      cel(
        {
          doc: 'How much a request counts for, rounded up to a whole number. For tokens it is evaluated after the answer and may name `llm.inputTokens`, `llm.outputTokens` and the other counts, and `llm.cost` in US dollars where `config.modelCatalog` is set.',
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
          doc: "A limit in place of the service's own: a map of `unit` (second, minute, hour, day, month, year) and `requestsPerUnit`.",
          example: '{"unit": "minute", "requestsPerUnit": 10}',
          advanced: true,
        },
        variables,
      ),
    ),
  },
  { doc: 'One thing the service counts.' },
)

/** `remoteRateLimit`, also known as `rateLimit.global`. */
export const globalRateLimitSchema = exactlyOne(
  {
    host: backendHostSchema,
    backend: name({
      doc: 'Name of an entry of `backends`, whose `backendTLS` holds for the service.',
      example: '/limiter',
    }),
  },
  {
    domain: name({ doc: 'The domain of the limits, as the service knows it.', example: 'tollgate' }),
    descriptors: list(descriptor, { doc: 'What is counted.' }, { min: 1, max: 16 }),
    failureMode: optional(
      enumeration(['failClosed', 'failOpen', 'FailClosed', 'FailOpen'], {
        doc: 'What happens while the service does not answer: requests are refused with 500, or let through.',
        default: 'failClosed',
      }),
    ),
    protocol: optional(
      enumeration(['envoy', 'kuadrant'], {
        doc: "How tokens are checked and reported: with Envoy's method, or with Limitador's own (`kuadrant.service.ratelimit.v1`), because Limitador does not count a report to Envoy's method that exceeds the rest of a budget.",
        default: 'envoy',
      }),
    ),
    timeout: optional(
      duration({
        doc: 'Longest wait for the service, for all checks of a request together.',
        default: '500ms',
      }),
    ),
    name: optional(
      name({ doc: 'Name in metrics and logs.', default: 'global and the domain', advanced: true }),
    ),
  },
  {
    doc: 'Limits counted by a service that speaks the rate limit protocol of Envoy, and shared by all who ask it.',
  },
)

export type GlobalRateLimitConfig = Infer<typeof globalRateLimitSchema>
export type DescriptorConfig = GlobalRateLimitConfig['descriptors'][number]

const longestTimeoutMs = 60_000

/** Milliseconds to wait for an answer. */
export function timeoutOf({ timeout }: GlobalRateLimitConfig): number {
  return parseDuration(timeout ?? '500ms') ?? 500
}

/** Whether a descriptor counts tokens. */
export function countsTokens({ type }: DescriptorConfig): boolean {
  return type === 'tokens'
}

/** Reports what the schema cannot say. `allowedRoots` are the variables that exist where the limits stand. */
export function checkGlobalRateLimit(
  config: GlobalRateLimitConfig,
  allowedRoots: ReadonlySet<string>,
  report: ReportIssue,
): void {
  if (config.host !== undefined) checkBackendHost(config.host, (message) => report(['host'], message))
  const timeoutMs = timeoutOf(config)
  if (timeoutMs === 0) report(['timeout'], 'must be greater than 0')
  if (timeoutMs > longestTimeoutMs) report(['timeout'], 'must be at most 60s: every request waits for it')
  config.descriptors.forEach((item, index) => {
    const check = (source: string | undefined, variables: ReadonlySet<string>, path: (string | number)[]) => {
      if (source !== undefined)
        checkCel(source, variables, (message) => report(['descriptors', index, ...path], message))
    }
    item.entries.forEach((pair, at) => {
      check(pair.value, allowedRoots, ['entries', at, 'value'])
    })
    check(item.cost, countsTokens(item) ? new Set([...allowedRoots, ...responseMembers]) : allowedRoots, [
      'cost',
    ])
    check(item.limitOverride, allowedRoots, ['limitOverride'])
  })
}

/** Reports a reference to a backend that is none, or leads to no host. */
export function checkGlobalBackend(
  { backend: reference }: GlobalRateLimitConfig,
  backends: readonly NamedBackend[],
  report: ReportIssue,
): void {
  if (reference === undefined) return
  const found = findBackend(reference, backends)
  if (found?.host === undefined) report(['backend'], missingBackend(reference, found))
}
