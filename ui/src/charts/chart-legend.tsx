import type { ChartSeries } from './series.ts'
import { Swatch } from './swatch.tsx'

/** Names of the series with a figure of each. */
export function ChartLegend({
  series,
  totalOf,
}: {
  series: readonly ChartSeries[]
  totalOf: ((series: ChartSeries) => string) | undefined
}) {
  return (
    <ul className="flex min-w-0 flex-wrap gap-x-4 gap-y-1 pt-1.5 text-xs">
      {series.map((one) => (
        <li key={one.key} className="flex max-w-64 min-w-0 items-center gap-1.5">
          <Swatch color={one.color} dashed={one.dashed === true} />
          <span className="truncate text-ink-soft">{one.label}</span>
          {totalOf && <span className="font-medium tabular">{totalOf(one)}</span>}
        </li>
      ))}
    </ul>
  )
}
