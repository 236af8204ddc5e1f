import type { ChartSeries } from './series.ts'
import { bucketLabel } from './time-labels.ts'

type ChartTableProps = {
  readonly label: string
  readonly times: readonly number[]
  readonly bucketMs: number
  readonly series: readonly ChartSeries[]
  format(value: number): string
}

/** The values of a chart as a table, newest first. */
export function ChartTable({ label, times, bucketMs, series, format }: ChartTableProps) {
  const newestFirst = times.map((_, index) => times.length - 1 - index)
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable area must be reachable by keyboard
    <section tabIndex={0} aria-label={label} className="max-h-80 overflow-auto rounded-lg border border-line">
      <table className="w-full text-xs">
        <thead className="sticky top-0 bg-sunken text-left text-ink-soft">
          <tr>
            <th scope="col" className="px-3 py-2 font-medium">
              Time
            </th>
            {series.map(({ key, label: name }) => (
              <th key={key} scope="col" className="max-w-48 truncate px-3 py-2 text-right font-medium">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {newestFirst.map((index) => (
            <tr key={times[index]} className="border-t border-line">
              <th scope="row" className="px-3 py-1.5 text-left font-normal whitespace-nowrap">
                {bucketLabel(times[index] ?? 0, bucketMs)}
              </th>
              {series.map(({ key, values }) => {
                const value = values[index]
                return (
                  <td key={key} className="px-3 py-1.5 text-right tabular">
                    {value === null || value === undefined ? '–' : format(value)}
                  </td>
                )
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}
