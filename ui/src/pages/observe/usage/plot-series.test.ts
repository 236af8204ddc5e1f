import { describe, expect, it } from 'vitest'
import type { Summary, SummaryGroup } from '../../../api/ledger/summary.ts'
import { metricOf } from './metrics.ts'
import { plotOf } from './plot-series.ts'

const hour = 3_600_000
const start = Date.UTC(2026, 10, 1)

function sums(user: string | null, requests: number, p50: number | null = null): SummaryGroup {
  const measures = { requests, errors: 1, cost: requests, durationMs: { p50 } }
  return { group: { user }, ...measures } as unknown as SummaryGroup
}

function summary(
  rows: readonly (readonly [hour: number, group: SummaryGroup])[],
  groups: SummaryGroup[],
): Summary {
  return {
    timeRange: { from: new Date(start).toISOString(), to: new Date(start + 3 * hour).toISOString() },
    bucketSeconds: 3_600,
    source: 'hours',
    complete: true,
    buckets: rows.map(([index, group]) => ({
      start: new Date(start + index * hour).toISOString(),
      ...group,
    })),
    groups,
    filterOptions: {},
  }
}

describe('plotOf', () => {
  it('fills periods without requests', () => {
    const data = summary([[1, sums(null, 5)]], [sums(null, 5)])
    const plot = plotOf({ summary: data, metric: metricOf('requests'), fields: [], previous: undefined })
    expect(plot.times).toEqual([start, start + hour, start + 2 * hour])
    expect(plot.series.map(({ key, values }) => [key, values])).toEqual([
      ['ok', [0, 4, 0]],
      ['errors', [0, 1, 0]],
    ])
    const latency = plotOf({ summary: data, metric: metricOf('p50'), fields: [], previous: undefined })
    expect(latency.series[0]?.values).toEqual([null, null, null])
  })

  it('shows the largest groups of the figure, and adds up the others', () => {
    const groups = Array.from({ length: 12 }, (_, index) => sums(`user-${index}`, index + 1))
    const data = summary(
      groups.map((group) => [0, group] as const),
      groups,
    )
    const { series } = plotOf({
      summary: data,
      metric: metricOf('cost'),
      fields: ['user'],
      previous: undefined,
    })
    expect(series.map(({ label, values }) => [label, values[0]])).toEqual([
      ...Array.from({ length: 7 }, (_, index) => [`user-${11 - index}`, 12 - index]),
      ['All others', 15],
    ])
  })

  it('adds the previous range as one dashed line', () => {
    const data = summary([[0, sums('a', 5)]], [sums('a', 5)])
    const previous: Summary = {
      ...summary([], [sums(null, 7)]),
      timeRange: { from: new Date(start - 3 * hour).toISOString(), to: new Date(start).toISOString() },
      buckets: [{ start: new Date(start - hour).toISOString(), ...sums(null, 7) }],
    }
    const { series } = plotOf({ summary: data, metric: metricOf('requests'), fields: ['user'], previous })
    expect(series.at(-1)).toMatchObject({ key: 'previous', dashed: true, values: [0, 0, 7] })
  })
})
