import { checkCel } from '../../../cel/checked.ts'
import { parseDuration } from '../../../lib/duration.ts'
import { isToken } from '../../../lib/http-token.ts'
import {
  cel,
  duration,
  enumeration,
  type Infer,
  integer,
  list,
  name,
  object,
  optional,
} from '../../../schema/dsl.ts'
import type { ReportIssue } from '../../../schema/report.ts'

/** CEL variables of `key`: those of a parsed request. */
const keyRoots = [
  ...['now', 'request', 'request.body', 'source', 'jwt', 'basicAuth', 'apiKey', 'llmRequest', 'llm'],
] as const

export const keyVariables: ReadonlySet<string> = new Set(keyRoots)

const defaultLimits = { maxEntryBytes: 1_048_576, maxBytes: 67_108_864, maxEntries: 10_000 }

/** `cache` of a model, and of `policies.ai`. */
export const responseCacheSchema = object(
  {
    ttl: duration({ doc: 'Time for which a stored response is returned.', example: '1h' }),
    store: optional(
      enumeration(['memory', 'database'], {
        doc: '`memory` of each data plane, or in addition the database of `config.responseCache`, which threads and replicas share and which outlives a restart.',
        default: 'memory',
      }),
    ),
    key: optional(
      cel(
        {
          doc: 'Requests with the same value share responses. Without a value of the expression, a request does not use the cache. The same text for all requests, such as `"all"`, shares responses between all clients.',
          default: 'the identity of the client',
          example: 'apiKey.group',
        },
        keyRoots,
      ),
    ),
    headers: optional(
      list(name({ doc: 'Name of a request header.', example: 'x-tenant' }), {
        doc: 'Further request headers that responses depend on. Those of the providers (`anthropic-*`, `openai-*`, `x-goog-*`, `x-ms-*`) always count.',
      }),
    ),
    maxEntryBytes: optional(
      integer(
        { doc: 'Larger responses are not stored.', default: defaultLimits.maxEntryBytes },
        { min: 1024, max: 16_777_216 },
      ),
    ),
    maxBytes: optional(
      integer(
        {
          doc: 'Memory of stored responses, for each data plane. The least recently used response is removed first.',
          default: defaultLimits.maxBytes,
        },
        { min: 65_536, max: 4_294_967_296 },
      ),
    ),
    maxEntries: optional(
      integer(
        { doc: 'Number of stored responses, for each data plane.', default: defaultLimits.maxEntries },
        { min: 1, max: 1_000_000 },
      ),
    ),
  },
  {
    doc: 'Stores complete responses, and returns them for equal requests of the same client without a call of the provider.',
    example: { ttl: '1h' },
  },
)

export type ResponseCacheConfig = Infer<typeof responseCacheSchema>

/** Limits of memory with their defaults. */
export function cacheLimits({
  maxEntryBytes = defaultLimits.maxEntryBytes,
  maxBytes = defaultLimits.maxBytes,
  maxEntries = defaultLimits.maxEntries,
}: ResponseCacheConfig) {
  return { maxEntryBytes, maxBytes, maxEntries }
}

/** Reports issues beyond the schema. */
export function checkResponseCache(config: ResponseCacheConfig, report: ReportIssue): void {
  const { ttl, key, headers = [] } = config
  if (parseDuration(ttl) === 0) report(['ttl'], 'must be greater than 0')
  if (key !== undefined) checkCel(key, keyVariables, (message) => report(['key'], message))
  for (const [index, header] of headers.entries()) {
    if (!isToken(header)) report(['headers', index], 'must be the name of a header')
  }
  const { maxEntryBytes, maxBytes } = cacheLimits(config)
  if (maxEntryBytes > maxBytes) report(['maxEntryBytes'], 'must be at most maxBytes')
}

/** Reports a transformation whose values the key of a response does not contain. */
export function checkCachedBody(
  cache: ResponseCacheConfig | undefined,
  finalTransformation: object | undefined,
  report: ReportIssue,
): void {
  if (cache !== undefined && finalTransformation !== undefined)
    report(
      ['cache'],
      'is not valid with a final transformation: its values may differ between equal requests',
    )
}
