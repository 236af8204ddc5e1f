import { describe, expect, it } from 'vitest'
import { readFilters } from '../filters/url-filters.ts'
import { type CsvSelection, csvAddress } from './csv-address.ts'
import { dimensionOf } from './dimensions.ts'

const hour = 3_600_000

function exported(filters: string, fields: readonly string[], changes: Partial<CsvSelection> = {}) {
  return csvAddress({
    range: { from: Date.UTC(2026, 10, 1, 10, 30), to: Date.UTC(2026, 10, 2, 10, 30) },
    bucketMs: hour,
    dimensions: fields.map(dimensionOf).filter((one) => one !== undefined),
    filters: readFilters(new URLSearchParams(filters)),
    ...changes,
  })
}

describe('csvAddress', () => {
  it('widens the range to whole hours', () => {
    expect(exported('user=ada', ['group', 'servedModel'])).toEqual({
      kind: 'file',
      address:
        '/api/usage.csv?from=2026-11-01T10%3A00%3A00.000Z&to=2026-11-02T11%3A00%3A00.000Z&granularity=hour&groupBy=group%2CservedModel&user=ada',
    })
  })

  it('widens the range to whole days for plots by day', () => {
    expect(exported('', [], { bucketMs: 24 * hour })).toEqual({
      kind: 'file',
      address:
        '/api/usage.csv?from=2026-11-01T00%3A00%3A00.000Z&to=2026-11-03T00%3A00%3A00.000Z&granularity=day',
    })
  })

  it.each([
    ['', ['requestModel'], 'The file has no lines by requested model.'],
    ['status=429', [], 'The file cannot be filtered by status.'],
    ['user=ada&user=ben', [], 'The file can be filtered by one user only.'],
    ['user=', [], 'The file can be filtered by one user only.'],
    ['user~=a', [], 'The file can be filtered by one user only.'],
  ])('refuses "%s" by %j', (filters, fields, reason) => {
    expect(exported(filters, fields)).toEqual({ kind: 'unsupported', reason })
  })
})
