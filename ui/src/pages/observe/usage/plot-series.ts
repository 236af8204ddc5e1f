import type { Summary, SummaryBucket } from '../../../api/ledger/summary.ts'
import { type ChartSeries, colorAt } from '../../../charts/series.ts'
import { bucketTimes } from '../range/time-range.ts'
import { groupKey, groupLabel } from './dimensions.ts'
import type { Metric } from './metrics.ts'

export type UsagePlot = {
  readonly times: readonly number[]
  readonly bucketMs: number
  readonly series: readonly ChartSeries[]
}

type PlotInputs = {
  readonly summary: Summary
  readonly metric: Metric
  /** Grouped fields; none for the sum of all requests. */
  readonly fields: readonly string[]
  /** Sums of the range before, of the same length. */
  readonly previous: Summary | undefined
}

const shownGroups = 7

/**
 * Series of a metric over time: the largest groups and the rest of them; for percentiles and averages the groups
 * with the most requests, because those of few requests are noise.
 */
export function plotOf({ summary, metric, fields, previous }: PlotInputs): UsagePlot {
  const bucketMs = summary.bucketSeconds * 1_000
  const times = bucketTimes(rangeOf(summary), bucketMs)
  const rows = rowsByTime(summary, times)
  const series =
    fields.length === 0 ? totalSeries(rows, metric) : groupSeries({ summary, metric, fields, rows })
  if (previous === undefined) return { times, bucketMs, series }
  const before = rowsByTime(previous, bucketTimes(rangeOf(previous), bucketMs))
  const values = times.map((_, index) => valueAt(before[index] ?? [], metric))
  return {
    times,
    bucketMs,
    series: [...series, { key: 'previous', label: 'Previous range', values, color: 'faint', dashed: true }],
  }
}

type Rows = readonly (readonly SummaryBucket[])[]

function totalSeries(rows: Rows, metric: Metric): ChartSeries[] {
  const of = (part: Metric['valueOf']) =>
    rows.map(([bucket]) => (bucket ? part(bucket) : metric.isSum ? 0 : null))
  if (metric.id === 'requests')
    return [
      { key: 'ok', label: 'Succeeded', color: 1, values: of((sums) => sums.requests - sums.errors) },
      { key: 'errors', label: 'Failed or refused', color: 'bad', values: of((sums) => sums.errors) },
    ]
  if (metric.id === 'tokens')
    return [
      { key: 'input', label: 'Input', color: 1, values: of((sums) => sums.inputTokens) },
      { key: 'output', label: 'Output', color: 2, values: of((sums) => sums.outputTokens) },
    ]
  return [{ key: metric.id, label: metric.label, color: 1, values: of(metric.valueOf) }]
}

function groupSeries({
  summary,
  metric,
  fields,
  rows,
}: Omit<PlotInputs, 'previous'> & { rows: Rows }): ChartSeries[] {
  const ranked = summary.groups
    .filter(({ other }) => !other)
    .map((group) => ({ group, value: metric.isSum ? (metric.valueOf(group) ?? 0) : group.requests }))
    .sort((one, other) => other.value - one.value)
    .slice(0, shownGroups)
  const shown = new Set(ranked.map(({ group }) => groupKey(group, fields)))
  const byKey = rows.map((buckets) => new Map(buckets.map((bucket) => [groupKey(bucket, fields), bucket])))
  const empty = metric.isSum ? 0 : null
  const series = ranked.map(({ group }, index): ChartSeries => {
    const key = groupKey(group, fields)
    return {
      key,
      label: groupLabel(group, fields),
      color: colorAt(index),
      values: byKey.map((buckets) => {
        const bucket = buckets.get(key)
        return bucket ? metric.valueOf(bucket) : empty
      }),
    }
  })
  const hasMore = summary.groups.some((group) => !shown.has(groupKey(group, fields)))
  if (!metric.isSum || !hasMore) return series
  const rest = rows.map((buckets) =>
    buckets
      .filter((bucket) => !shown.has(groupKey(bucket, fields)))
      .reduce((sum, bucket) => sum + (metric.valueOf(bucket) ?? 0), 0),
  )
  return [...series, { key: 'rest', label: 'All others', color: 8, values: rest }]
}

/** Value of all groups of a bucket: of sums, or of the only row. */
function valueAt(buckets: readonly SummaryBucket[], metric: Metric): number | null {
  if (!metric.isSum) return buckets[0] ? metric.valueOf(buckets[0]) : null
  return buckets.reduce((sum, bucket) => sum + (metric.valueOf(bucket) ?? 0), 0)
}

function rowsByTime({ buckets }: Summary, times: readonly number[]): Rows {
  const byStart = Map.groupBy(buckets, ({ start }) => Date.parse(start))
  return times.map((time) => byStart.get(time) ?? [])
}

function rangeOf({ timeRange }: Summary): { from: number; to: number } {
  return { from: Date.parse(timeRange.from), to: Date.parse(timeRange.to) }
}
