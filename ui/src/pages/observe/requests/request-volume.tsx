import { useMemo } from 'react'
import type { Summary } from '../../../api/ledger/summary.ts'
import type { ChartSeries } from '../../../charts/series.ts'
import { TimeChart } from '../../../charts/time-chart.tsx'
import { Skeleton } from '../../../components/feedback/skeleton.tsx'
import { Card } from '../../../components/layout/card.tsx'
import { formatCompact } from '../../../format/number.ts'
import { bucketTimes, type Range } from '../range/time-range.ts'

type RequestVolumeProps = {
  readonly summary: Summary | undefined
  readonly error: unknown
  readonly range: Range
  onZoom(from: number, to: number): void
}

/** Number of the found requests over time by outcome. */
export function RequestVolume({ summary, error, range, onZoom }: RequestVolumeProps) {
  const plot = useMemo(() => summary && plotOf(summary, range), [summary, range])
  if (error) return null
  return (
    <Card className="px-1 pt-2">
      {plot === undefined ? (
        <Skeleton className="h-28 w-full rounded-lg" />
      ) : (
        <TimeChart
          label="Requests over time"
          {...plot}
          kind="bars"
          height={104}
          format={formatCompact}
          totalOf={({ values }) =>
            formatCompact(values.reduce<number>((sum, value) => sum + (value ?? 0), 0))
          }
          onZoom={onZoom}
        />
      )}
    </Card>
  )
}

const outcomes = [
  { key: 'ok', label: 'Succeeded', color: 1 },
  { key: 'refused', label: 'Refused or invalid (4xx)', color: 'warn' },
  { key: 'failed', label: 'Failed (5xx)', color: 'bad' },
] as const

function plotOf(summary: Summary, range: Range) {
  const bucketMs = summary.bucketSeconds * 1_000
  const times = bucketTimes(range, bucketMs)
  const indexOf = new Map(times.map((time, index) => [time, index]))
  const counts = outcomes.map(() => new Array<number>(times.length).fill(0))
  for (const { start, group, requests } of summary.buckets) {
    const index = indexOf.get(Date.parse(start))
    const status = Number(group['status'] ?? 0)
    const row = counts[status >= 500 ? 2 : status >= 400 ? 1 : 0]
    if (index !== undefined && row !== undefined) row[index] = (row[index] ?? 0) + requests
  }
  const series = outcomes.map((one, index): ChartSeries => ({ ...one, values: counts[index] ?? [] }))
  return { times, bucketMs, series }
}
