import { RadioGroup } from 'radix-ui'
import type { Measures } from '../../../api/ledger/summary.ts'
import { Skeleton } from '../../../components/feedback/skeleton.tsx'
import { Delta } from './delta.tsx'
import { type Metric, mainMetrics, metrics } from './metrics.ts'

type MetricCardsProps = {
  readonly selected: Metric
  readonly totals: Measures | undefined
  /** Sums of the range before; undefined without a comparison. */
  readonly previous: Measures | undefined
  readonly isCompared: boolean
  onSelect(id: string): void
}

/** The main figures. The selected one is plotted. */
export function MetricCards({ selected, totals, previous, isCompared, onSelect }: MetricCardsProps) {
  return (
    <RadioGroup.Root
      aria-label="Plotted figure"
      value={selected.id}
      onValueChange={onSelect}
      className="grid grid-cols-2 gap-3 md:grid-cols-3 xl:grid-cols-6"
    >
      {metrics.slice(0, mainMetrics).map((metric) => {
        const value = totals === undefined ? undefined : metric.valueOf(totals)
        return (
          <RadioGroup.Item
            key={metric.id}
            value={metric.id}
            className="min-w-0 rounded-xl border border-line bg-surface px-4 py-3 text-left shadow-card hover:bg-hover data-[state=checked]:border-accent data-[state=checked]:ring-1 data-[state=checked]:ring-accent"
          >
            <span className="block text-xs text-ink-faint">{metric.label}</span>
            <span className="mt-0.5 block truncate text-2xl font-semibold tracking-tight tabular">
              {value === undefined ? (
                <Skeleton className="mt-1.5 h-7 w-20" />
              ) : value === null ? (
                '–'
              ) : (
                metric.format(value)
              )}
            </span>
            {isCompared && (
              <span className="mt-0.5 block text-xs">
                {totals && previous ? (
                  <Delta
                    current={metric.valueOf(totals)}
                    previous={metric.valueOf(previous)}
                    better={metric.better}
                  />
                ) : (
                  '\u00a0'
                )}
              </span>
            )}
          </RadioGroup.Item>
        )
      })}
    </RadioGroup.Root>
  )
}
