import { describe, expect, it } from 'vitest'
import { bucketTimes, previousRange, readRange, resolveRange, writeRange } from './time-range.ts'

const day = 86_400_000

describe('readRange', () => {
  it('reads a preset', () => {
    expect(readRange(new URLSearchParams('range=7d'), '24h')).toMatchObject({ preset: { id: '7d' } })
  })

  it.each(['', 'range=nothing', 'from=x&to=y', 'from=2026-11-02T00:00:00Z&to=2026-11-01T00:00:00Z'])(
    'returns the default for "%s"',
    (text) => {
      expect(readRange(new URLSearchParams(text), '24h')).toMatchObject({ preset: { id: '24h' } })
    },
  )

  it('returns what writeRange has written', () => {
    const choice = { kind: 'custom', from: 1_793_487_600_000, to: 1_793_491_200_000 } as const
    const written = writeRange(new URLSearchParams('range=7d&user=ada'), choice)
    expect(readRange(written, '24h')).toEqual(choice)
    expect(written.get('user')).toBe('ada')
    expect(written.has('range')).toBe(false)
  })
})

it('resolveRange ends a preset at the next whole minute', () => {
  const choice = readRange(new URLSearchParams('range=1h'), '24h')
  expect(resolveRange(choice, 3_600_001)).toEqual({ from: 60_000, to: 3_660_000 })
})

it('previousRange has the same length and ends at the start', () => {
  expect(previousRange({ from: 100, to: 150 })).toEqual({ from: 50, to: 100 })
})

describe('bucketTimes', () => {
  it('covers a range from the bucket of its start', () => {
    expect(bucketTimes({ from: 90_000, to: 240_000 }, 60_000)).toEqual([60_000, 120_000, 180_000])
  })

  it('starts weeks on Monday', () => {
    const [first] = bucketTimes({ from: Date.UTC(2026, 10, 25), to: Date.UTC(2026, 11, 25) }, 7 * day)
    expect(new Date(first ?? 0).toISOString()).toBe('2026-11-23T00:00:00.000Z')
  })

  it('is bounded', () => {
    expect(bucketTimes({ from: 0, to: day * 10_000 }, 1_000)).toHaveLength(2_001)
  })
})
