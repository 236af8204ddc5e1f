import type { Measures } from '../../../api/ledger/summary.ts'
import { formatMoney } from '../../../format/money.ts'
import { formatCompact, formatPercent } from '../../../format/number.ts'
import { formatDuration } from '../../../format/time.ts'

/** A figure over requests. Sums can be stacked; other figures are lines. */
export type Metric = {
  readonly id: string
  readonly label: string
  readonly isSum: boolean
  /** Direction of an improvement. */
  readonly better: 'less' | 'neither'
  /** Null without a value, for example a percentile of no requests. */
  valueOf(measures: Measures): number | null
  format(value: number): string
  /** Order of groups at the server. */
  readonly orderBy: 'requests' | 'errors' | 'totalTokens' | 'cost'
}

const requests = { isSum: true, better: 'neither', format: formatCompact, orderBy: 'requests' } as const
const tokens = { isSum: true, better: 'neither', format: formatCompact, orderBy: 'totalTokens' } as const
const time = { isSum: false, better: 'less', format: formatDuration, orderBy: 'requests' } as const

export const metrics: readonly Metric[] = [
  { id: 'requests', label: 'Requests', ...requests, valueOf: (sums) => sums.requests },
  {
    id: 'errorRate',
    label: 'Error rate',
    isSum: false,
    better: 'less',
    format: formatPercent,
    orderBy: 'errors',
    valueOf: (sums) => (sums.requests === 0 ? null : sums.errors / sums.requests),
  },
  { id: 'tokens', label: 'Tokens', ...tokens, valueOf: (sums) => sums.totalTokens },
  {
    id: 'cost',
    label: 'Cost',
    isSum: true,
    better: 'neither',
    format: formatMoney,
    orderBy: 'cost',
    valueOf: (sums) => sums.cost,
  },
  { id: 'p50', label: 'Latency p50', ...time, valueOf: (sums) => sums.durationMs.p50 },
  { id: 'p99', label: 'Latency p99', ...time, valueOf: (sums) => sums.durationMs.p99 },
  {
    id: 'errors',
    label: 'Errors',
    ...requests,
    better: 'less',
    orderBy: 'errors',
    valueOf: (sums) => sums.errors,
  },
  { id: 'inputTokens', label: 'Input tokens', ...tokens, valueOf: (sums) => sums.inputTokens },
  { id: 'outputTokens', label: 'Output tokens', ...tokens, valueOf: (sums) => sums.outputTokens },
  {
    id: 'cachedInputTokens',
    label: 'Cached input tokens',
    ...tokens,
    valueOf: (sums) => sums.cachedInputTokens,
  },
  { id: 'p95', label: 'Latency p95', ...time, valueOf: (sums) => sums.durationMs.p95 },
  { id: 'average', label: 'Average latency', ...time, valueOf: (sums) => sums.durationMs.average },
  {
    id: 'firstByte',
    label: 'Average time to first byte',
    ...time,
    valueOf: (sums) => sums.firstByteMs.average,
  },
]

/** Number of metrics that have a card. */
export const mainMetrics = 6

export function metricOf(id: string | null): Metric {
  const found = metrics.find((metric) => metric.id === id) ?? metrics[0]
  if (found === undefined) throw new Error('there are no metrics')
  return found
}
