import { useSearchParams } from 'wouter'
import { Segmented } from '../../../components/form/segmented.tsx'
import { filterField } from '../filters/fields.ts'
import { type Filter, withFilter, withoutFilter } from '../filters/url-filters.ts'

type Outcome = 'all' | 'ok' | 'failed' | 'other'

/** Choice of all, successful or failed requests. */
export function StatusFilter({ filters }: { filters: readonly Filter[] }) {
  const [, setParameters] = useSearchParams()
  const field = filterField('status')
  const choose = (outcome: Outcome) => {
    if (field === undefined) return
    setParameters((current) => {
      if (outcome === 'ok') return withFilter(current, { kind: 'range', field, max: 399 })
      if (outcome === 'failed') return withFilter(current, { kind: 'range', field, min: 400 })
      return withoutFilter(current, 'status')
    })
  }
  return (
    <Segmented<Outcome>
      label="Outcome"
      value={outcomeOf(filters)}
      onChange={choose}
      options={[
        { value: 'all', label: 'All' },
        { value: 'ok', label: 'Succeeded' },
        { value: 'failed', label: 'Failed' },
      ]}
    />
  )
}

function outcomeOf(filters: readonly Filter[]): Outcome {
  const filter = filters.find(({ field }) => field.name === 'status')
  if (filter === undefined) return 'all'
  if (filter.kind !== 'range') return 'other'
  if (filter.max === 399 && filter.min === undefined) return 'ok'
  return filter.min === 400 && filter.max === undefined ? 'failed' : 'other'
}
