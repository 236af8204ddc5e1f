import { describe, expect, it } from 'vitest'
import { type ChartSeries, colorAt, stack, withAlpha } from './series.ts'

function series(values: readonly (number | null)[], dashed = false): ChartSeries {
  return { key: 'a', label: 'a', color: 1, values, dashed }
}

describe('stack', () => {
  it('adds each series to those before, and counts absent values as 0', () => {
    expect(stack([series([1, 2, null]), series([10, null, 30])])).toEqual([
      [1, 2, 0],
      [11, 2, 30],
    ])
  })

  it('excludes dashed series', () => {
    expect(stack([series([1]), series([5], true), series([2])])).toEqual([[1], [5], [3]])
  })

  it('returns an empty list without series', () => {
    expect(stack([])).toEqual([])
  })
})

describe('withAlpha', () => {
  it.each([
    ['#087a82', '#087a821a'],
    [' oklch(0.55 0.1 200) ', 'oklch(0.55 0.1 200 / 0.1)'],
    ['lab(45% -30 -10)', 'lab(45% -30 -10 / 0.1)'],
    ['oklch(0.5 0.1 200 / 0.5)', 'oklch(0.5 0.1 200 / 0.5)'],
    ['teal', 'teal'],
  ])('maps %s to %s', (color, expected) => {
    expect(withAlpha(color, 0.1)).toBe(expected)
  })
})

it('colorAt never returns the colour of the rest', () => {
  expect(Array.from({ length: 20 }, (_, index) => colorAt(index))).not.toContain(8)
})
