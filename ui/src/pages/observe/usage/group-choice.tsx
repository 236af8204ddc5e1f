import { Select } from '../../../components/form/select.tsx'
import { type Dimension, dimensions } from './dimensions.ts'
import { type Metric, metrics } from './metrics.ts'

/** Choice of the plotted figure, of all figures. */
export function MetricChoice({ metric, onChoose }: { metric: Metric; onChoose(id: string): void }) {
  return (
    <span>
      <Select
        aria-label="Figure"
        value={metric.id}
        onChange={onChoose}
        options={metrics.map(({ id, label }) => ({ value: id, label }))}
      />
    </span>
  )
}

/** Choice of a field to group by. */
export function GroupChoice({
  label,
  value,
  without,
  onChoose,
}: {
  label: string
  value: Dimension | undefined
  /** A field that is grouped by already. */
  without?: Dimension | undefined
  onChoose(field: string): void
}) {
  const others = dimensions.filter(({ field }) => field !== without?.field)
  return (
    <span className="flex items-center gap-1.5 text-xs text-ink-soft">
      <span aria-hidden>{label}</span>
      <Select
        aria-label={label === 'By' ? 'Group by' : 'Second group'}
        value={value?.field ?? 'nothing'}
        onChange={onChoose}
        options={[
          { value: 'nothing', label: label === 'By' ? 'nothing' : 'nothing else' },
          ...others.map((one) => ({ value: one.field, label: one.label })),
        ]}
      />
    </span>
  )
}
