import type { Filter } from '../filters/url-filters.ts'
import type { Range } from '../range/time-range.ts'
import type { Dimension } from './dimensions.ts'

const hourMs = 3_600_000
const dayMs = 86_400_000

const exportedFilters = new Set([
  'kind',
  'keyId',
  'user',
  'group',
  'route',
  'provider',
  'servedModel',
  'mcpTarget',
])

export type CsvExport =
  | { readonly kind: 'file'; readonly address: string }
  /** The export does not have a part of the selection. */
  | { readonly kind: 'unsupported'; readonly reason: string }

export type CsvSelection = {
  readonly range: Range
  readonly bucketMs: number
  readonly dimensions: readonly Dimension[]
  readonly filters: readonly Filter[]
}

/** Address of the CSV file of a selection. The range is widened to whole hours or days in UTC. */
export function csvAddress({ range, bucketMs, dimensions, filters }: CsvSelection): CsvExport {
  const parameters = new URLSearchParams()
  const unitMs = bucketMs < dayMs ? hourMs : dayMs
  const unsupported = dimensions.find(({ inSums }) => !inSums)
  if (unsupported) return refused(`The file has no lines by ${unsupported.label.toLowerCase()}.`)
  parameters.set('from', new Date(Math.floor(range.from / unitMs) * unitMs).toISOString())
  parameters.set('to', new Date(Math.ceil(range.to / unitMs) * unitMs).toISOString())
  parameters.set('granularity', unitMs === hourMs ? 'hour' : 'day')
  if (dimensions.length > 0) parameters.set('groupBy', dimensions.map(({ field }) => field).join(','))
  for (const filter of filters) {
    const { name, label } = filter.field
    const [value] = filter.kind === 'values' ? filter.values : []
    const isSingle =
      filter.kind === 'values' && filter.values.length === 1 && value !== undefined && value !== ''
    if (!exportedFilters.has(name)) return refused(`The file cannot be filtered by ${label.toLowerCase()}.`)
    if (!isSingle) return refused(`The file can be filtered by one ${label.toLowerCase()} only.`)
    parameters.set(name, value)
  }
  return { kind: 'file', address: `/api/usage.csv?${parameters}` }
}

function refused(reason: string): CsvExport {
  return { kind: 'unsupported', reason }
}
