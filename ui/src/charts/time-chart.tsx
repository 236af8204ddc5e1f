import { Table2 } from 'lucide-react'
import { lazy, Suspense, useState } from 'react'
import { IconButton } from '../components/action/icon-button.tsx'
import { Skeleton } from '../components/feedback/skeleton.tsx'
import { ChartLegend } from './chart-legend.tsx'
import { ChartTable } from './chart-table.tsx'
import type { ChartSeries } from './series.ts'

const Plot = lazy(() => import('./plot.tsx'))

type TimeChartProps = {
  /** Accessible name. */
  readonly label: string
  /** Starts of the buckets: milliseconds since the epoch. */
  readonly times: readonly number[]
  readonly bucketMs: number
  readonly series: readonly ChartSeries[]
  /** `bars` are stacked. */
  readonly kind: 'bars' | 'lines'
  readonly height?: number
  format(value: number): string
  /** Figure of a series in the legend; none if absent. */
  totalOf?(series: ChartSeries): string
  readonly onZoom?: (from: number, to: number) => void
  readonly legend?: boolean
}

/** Values over time as a plot, with a legend, and as a table for keyboards and screen readers. */
export function TimeChart({
  label,
  times,
  bucketMs,
  series,
  kind,
  height = 240,
  format,
  totalOf,
  onZoom,
  legend = true,
}: TimeChartProps) {
  const [isTable, setIsTable] = useState(false)
  const hasData = series.some(({ values }) => values.some((value) => value !== null && value !== 0))
  return (
    <figure aria-label={label} className="min-w-0">
      {isTable ? (
        <ChartTable label={label} times={times} bucketMs={bucketMs} series={series} format={format} />
      ) : (
        <div className="relative" style={{ minHeight: height }}>
          <Suspense fallback={<Skeleton className="h-full min-h-[inherit] w-full rounded-lg" />}>
            <Plot {...{ times, bucketMs, series, kind, height, format, onZoom }} />
          </Suspense>
          {!hasData && (
            <div className="pointer-events-none absolute inset-0 grid place-items-center text-sm text-ink-faint">
              No data in this range
            </div>
          )}
        </div>
      )}
      <figcaption className="mt-2 flex items-start gap-3">
        {legend && <ChartLegend series={series} totalOf={totalOf} />}
        <span className="ml-auto">
          <IconButton
            icon={Table2}
            label={isTable ? `${label}: show as a plot` : `${label}: show as a table`}
            aria-pressed={isTable}
            onClick={() => setIsTable(!isTable)}
          />
        </span>
      </figcaption>
    </figure>
  )
}
