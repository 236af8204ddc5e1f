import { durationBounds, type UsageCounts, type UsageDimensions } from '../usage-sum.ts'
import type { SqlValue } from './columns.ts'

/**
 * Columns of dimensions in `tollgate_usage_hours` and `tollgate_usage_days`, after `start` (milliseconds
 * since the epoch, UTC hour or day) and `id` (digest of the dimensions; the primary key is `(start, id)`).
 */
export const dimensionColumns = [
  'kind',
  'key_id',
  'user_name',
  'group_name',
  'route',
  'provider',
  'model',
  'mcp_target',
  'status',
] as const

/** Columns of numbers of requests by duration, in the order of `durationBounds`. */
export const durationColumns: readonly string[] = Array.from(
  { length: durationBounds.length + 1 },
  // Columns 10 to 16 were added later: five bounds below those of column 0, and two above those of column 8.
  (_, index) => `durations_${index < 5 ? index + 10 : index < 15 ? index - 5 : index}`,
)

/**
 * Columns of sums. The cost is `cost_microdollars` (10^-6 US dollars) and, below one of them,
 * `cost_picodollars`: sums over any number of rows fit into 63 bits.
 */
export const countColumns: readonly string[] = [
  'requests',
  'input_tokens',
  'output_tokens',
  'total_tokens',
  'cached_input_tokens',
  'cache_creation_tokens',
  'reasoning_tokens',
  'estimated_requests',
  'unpriced_requests',
  'cost_microdollars',
  'cost_picodollars',
  'duration_ms',
  'first_byte_ms',
  'first_bytes',
  ...durationColumns,
]

/** Columns of `countColumns` that are not integers. */
export const realColumns: ReadonlySet<string> = new Set(['duration_ms', 'first_byte_ms'])

/** All columns, in the order of `valuesOfUsage`. */
export const usageColumns: readonly string[] = ['start', 'id', ...dimensionColumns, ...countColumns]

const picodollarsPerMicrodollar = 1_000_000n

/** The cost in picodollars of sums of both cost columns. Postgres returns them as texts. */
export function costOf(microdollars: unknown, picodollars: unknown): bigint {
  return BigInt(String(microdollars)) * picodollarsPerMicrodollar + BigInt(String(picodollars))
}

export function valuesOfDimensions(dimensions: UsageDimensions): readonly SqlValue[] {
  const { kind, keyId, user, group, route, provider, model, mcpTarget, status } = dimensions
  return [kind, keyId, user, group, route, provider, model, mcpTarget, status]
}

export function valuesOfCounts(counts: UsageCounts): readonly SqlValue[] {
  const { tokens, costPicodollars } = counts
  return [
    counts.requests,
    tokens.input,
    tokens.output,
    tokens.total,
    tokens.cachedInput,
    tokens.cacheCreationInput,
    tokens.reasoning,
    counts.estimatedRequests,
    counts.unpricedRequests,
    Number(costPicodollars / picodollarsPerMicrodollar),
    Number(costPicodollars % picodollarsPerMicrodollar),
    counts.durationMs,
    counts.firstByteMs,
    counts.firstBytes,
    ...counts.durations,
  ]
}
