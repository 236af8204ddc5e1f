import { classNames } from '../components/class-names.ts'
import type { ChartSeries } from './series.ts'
import { Swatch } from './swatch.tsx'
import { bucketLabel } from './time-labels.ts'

type PlotTooltipProps = {
  readonly time: number
  readonly index: number
  /** Position of the pointer, and width of the plot, in pixels. */
  readonly left: number
  readonly width: number
  readonly bucketMs: number
  readonly series: readonly ChartSeries[]
  format(value: number): string
}

const axisWidth = 56
const maxLines = 9

/** The values at the pointer, largest first. */
export function PlotTooltip({ time, index, left, width, bucketMs, series, format }: PlotTooltipProps) {
  const lines = series
    .flatMap((one) => {
      const value = one.values[index]
      return value === null || value === undefined || (value === 0 && series.length > 4)
        ? []
        : [{ one, value }]
    })
    .sort((a, b) => Number(a.one.dashed ?? false) - Number(b.one.dashed ?? false) || b.value - a.value)
    .slice(0, maxLines)
  const isRight = left > (width - axisWidth) / 2
  return (
    <div
      aria-hidden
      className={classNames(
        'pointer-events-none absolute top-2 z-10 max-w-72 min-w-40 rounded-lg border border-line bg-surface px-3 py-2 text-xs shadow-high',
        isRight && '-translate-x-full',
      )}
      style={{ left: left + axisWidth + (isRight ? -14 : 14) }}
    >
      <div className="mb-1 font-medium whitespace-nowrap">{bucketLabel(time, bucketMs)}</div>
      {lines.length === 0 && <div className="text-ink-soft">No data</div>}
      {lines.map(({ one, value }) => (
        <div key={one.key} className="flex items-center gap-2">
          <Swatch color={one.color} dashed={one.dashed === true} />
          <span className="min-w-0 flex-1 truncate text-ink-soft">{one.label}</span>
          <span className="font-medium tabular">{format(value)}</span>
        </div>
      ))}
    </div>
  )
}
