import type { TokenCounts } from '../../entry.ts'
import { costOf, countColumns, durationColumns } from '../../store/usage-columns.ts'
import { durationBounds } from '../../usage-sum.ts'

/** Sums over requests. */
export type Measures = {
  readonly requests: number
  /** Requests with a status of 400 or above. */
  readonly errors: number
  readonly tokens: TokenCounts
  readonly estimatedRequests: number
  readonly unpricedRequests: number
  readonly costPicodollars: bigint
  readonly durationMs: number
  readonly firstByteMs: number
  readonly firstBytes: number
  /** Counts by duration, as `UsageCounts.durations`. */
  readonly durations: readonly number[]
}

/** Measures of rows of `tollgate_usage_hours` and `tollgate_usage_days`: columns for `readMeasures`. */
export const measuresOfSums: string = [
  ...countColumns.map((column) => `sum(${column})`),
  'sum(case when status >= 400 then requests else 0 end)',
].join(', ')

/** Columns of the measures of rows of `tollgate_requests`, for `readMeasures`. */
export const measuresOfRequests: string = [
  'count(*)',
  ...[
    'input_tokens',
    'output_tokens',
    'total_tokens',
    'cached_input_tokens',
    'cache_creation_tokens',
    'reasoning_tokens',
  ].map((column) => `sum(coalesce(${column}, 0))`),
  "sum(case when tokens_estimated = 1 or cost_status = 'estimated' then 1 else 0 end)",
  "sum(case when cost_status in ('unpriced', 'missing') then 1 else 0 end)",
  // In two parts, as in the sums: a sum of picodollars may exceed 63 bits.
  'sum(coalesce(cost_picodollars, 0) / 1000000)',
  'sum(coalesce(cost_picodollars, 0) % 1000000)',
  'sum(duration_ms)',
  'sum(coalesce(first_byte_ms, 0))',
  'count(first_byte_ms)',
  ...durationColumns.map((_, index) => `sum(case when ${durationCondition(index)} then 1 else 0 end)`),
  'sum(case when status >= 400 then 1 else 0 end)',
].join(', ')

/** Columns of `tollgate_requests` that `measuresOfRequests` reads. */
export const measuredColumns: readonly string[] = [
  'input_tokens',
  'output_tokens',
  'total_tokens',
  'cached_input_tokens',
  'cache_creation_tokens',
  'reasoning_tokens',
  'tokens_estimated',
  'cost_status',
  'cost_picodollars',
  'duration_ms',
  'first_byte_ms',
  'status',
]

/** Measures of no requests. */
export const noMeasures: Measures = readMeasures([])

/** Reads the values of a row of measures. Sums without rows are null. */
export function readMeasures(row: readonly unknown[]): Measures {
  const at = (column: string): unknown => row[countColumns.indexOf(column)] ?? 0
  const numberAt = (column: string): number => Number(at(column))
  return {
    requests: numberAt('requests'),
    errors: Number(row[countColumns.length] ?? 0),
    tokens: {
      input: numberAt('input_tokens'),
      output: numberAt('output_tokens'),
      total: numberAt('total_tokens'),
      cachedInput: numberAt('cached_input_tokens'),
      cacheCreationInput: numberAt('cache_creation_tokens'),
      reasoning: numberAt('reasoning_tokens'),
    },
    estimatedRequests: numberAt('estimated_requests'),
    unpricedRequests: numberAt('unpriced_requests'),
    costPicodollars: costOf(at('cost_microdollars'), at('cost_picodollars')),
    durationMs: numberAt('duration_ms'),
    firstByteMs: numberAt('first_byte_ms'),
    firstBytes: numberAt('first_bytes'),
    durations: durationColumns.map(numberAt),
  }
}

/** The sum of two measures, or with a sign of -1 the first without the second. */
export function addMeasures(one: Measures, other: Measures, sign: 1 | -1 = 1): Measures {
  return {
    requests: one.requests + sign * other.requests,
    errors: one.errors + sign * other.errors,
    tokens: {
      input: one.tokens.input + sign * other.tokens.input,
      output: one.tokens.output + sign * other.tokens.output,
      total: one.tokens.total + sign * other.tokens.total,
      cachedInput: one.tokens.cachedInput + sign * other.tokens.cachedInput,
      cacheCreationInput: one.tokens.cacheCreationInput + sign * other.tokens.cacheCreationInput,
      reasoning: one.tokens.reasoning + sign * other.tokens.reasoning,
    },
    estimatedRequests: one.estimatedRequests + sign * other.estimatedRequests,
    unpricedRequests: one.unpricedRequests + sign * other.unpricedRequests,
    costPicodollars: one.costPicodollars + BigInt(sign) * other.costPicodollars,
    durationMs: one.durationMs + sign * other.durationMs,
    firstByteMs: one.firstByteMs + sign * other.firstByteMs,
    firstBytes: one.firstBytes + sign * other.firstBytes,
    durations: one.durations.map((count, index) => count + sign * (other.durations[index] ?? 0)),
  }
}

/**
 * Duration in milliseconds that a share of the requests does not exceed, by interpolation between the bounds
 * of the histogram; the highest bound for those above it. Undefined without requests.
 */
export function percentileOf(durations: readonly number[], share: number): number | undefined {
  const total = durations.reduce((sum, count) => sum + count, 0)
  if (total === 0) return undefined
  const wanted = share * total
  let below = 0
  for (const [index, count] of durations.entries()) {
    const upper = durationBounds[index]
    if (upper === undefined) break
    if (count > 0 && below + count >= wanted) {
      const lower = durationBounds[index - 1] ?? 0
      return lower + ((upper - lower) * (wanted - below)) / count
    }
    below += count
  }
  return durationBounds.at(-1)
}

function durationCondition(index: number): string {
  const lower = durationBounds[index - 1]
  const upper = durationBounds[index]
  return [
    ...(lower === undefined ? [] : [`duration_ms > ${lower}`]),
    ...(upper === undefined ? [] : [`duration_ms <= ${upper}`]),
  ].join(' and ')
}
