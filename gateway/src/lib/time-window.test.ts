import * as fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { createWindows, isTimeZone, type WindowRule } from './time-window.ts'

const hourMs = 3_600_000

/** The part of Temporal (TC39) that is compared with, which the TypeScript library lacks. */
const { Temporal } = globalThis as unknown as {
  Temporal: { Instant: { fromEpochMilliseconds(time: number): { toZonedDateTimeISO(zone: string): Zoned } } }
}
type Zoned = { startOfDay(): { epochMilliseconds: number } }

function windowAt(rule: WindowRule, time: string): [string, string] {
  const { start, end } = createWindows(rule)(Date.parse(time))
  return [new Date(start).toISOString(), new Date(end).toISOString()]
}

const day = (timeZone: string): WindowRule => ({ kind: 'calendar', unit: 'day', timeZone })

describe('createWindows', () => {
  it('aligns fixed windows to the Unix epoch', () => {
    expect(windowAt({ kind: 'fixed', lengthMs: 7 * 24 * hourMs }, '2026-11-22T10:00:00Z')).toEqual([
      '2026-11-19T00:00:00.000Z',
      '2026-11-26T00:00:00.000Z',
    ])
  })

  it('begins weeks on Monday and months on their first day', () => {
    const zone = { kind: 'calendar', timeZone: 'UTC' } as const
    expect(windowAt({ ...zone, unit: 'week' }, '2026-11-22T23:59:59Z')).toEqual([
      '2026-11-16T00:00:00.000Z',
      '2026-11-23T00:00:00.000Z',
    ])
    expect(windowAt({ ...zone, unit: 'month' }, '2028-02-29T12:00:00Z')).toEqual([
      '2028-02-01T00:00:00.000Z',
      '2028-03-01T00:00:00.000Z',
    ])
  })

  it('has days of 23 and 25 hours at changes of daylight saving time', () => {
    expect(windowAt(day('Europe/Berlin'), '2026-03-29T12:00:00Z')).toEqual([
      '2026-03-28T23:00:00.000Z',
      '2026-03-29T22:00:00.000Z',
    ])
    expect(windowAt(day('Europe/Berlin'), '2026-10-25T12:00:00Z')).toEqual([
      '2026-10-24T22:00:00.000Z',
      '2026-10-25T23:00:00.000Z',
    ])
  })

  it('begins a day without midnight at its first second', () => {
    expect(windowAt(day('Africa/Cairo'), '2026-04-24T12:00:00Z')[0]).toBe('2026-04-23T22:00:00.000Z')
  })

  it('assigns a repeated part of a day to one window', () => {
    // The clock was set from 00:01 back to 23:01 of the previous day.
    const zone = day('America/St_Johns')
    const find = createWindows(zone)
    const change = Date.parse('2010-11-07T02:31:00Z')
    for (let time = change - 3 * hourMs; time < change + 3 * hourMs; time += 60_000) {
      const { start, end } = find(time)
      expect(start).toBeLessThanOrEqual(time)
      expect(end).toBeGreaterThan(time)
      expect(createWindows(zone)(time)).toEqual({ start, end })
    }
  })

  const zones = [
    'UTC',
    'Europe/Berlin',
    'America/Havana',
    'Asia/Kathmandu',
    'Pacific/Apia',
    'Pacific/Kiritimati',
  ]
  const anyRule = fc.oneof(
    fc.record({
      kind: fc.constant('fixed' as const),
      lengthMs: fc.integer({ min: 60_000, max: 30 * 24 * hourMs }),
    }),
    fc.record({
      kind: fc.constant('calendar' as const),
      unit: fc.constantFrom('day' as const, 'week' as const, 'month' as const),
      timeZone: fc.constantFrom(...zones),
    }),
  )
  const anyTime = fc.integer({ min: Date.parse('2005-01-01'), max: Date.parse('2040-01-01') })

  it('covers time without gaps and overlaps', () => {
    fc.assert(
      fc.property(anyRule, anyTime, (rule, time) => {
        const find = createWindows(rule)
        const { start, end } = find(time)
        expect(start <= time && time < end).toBe(true)
        for (const other of [start, end - 1]) expect(createWindows(rule)(other)).toEqual({ start, end })
        expect(find(end).start).toBe(end)
        expect(find(start - 1).end).toBe(start)
      }),
      { numRuns: 50 },
    )
  })

  it('agrees with Temporal on the start of a day', () => {
    fc.assert(
      fc.property(fc.constantFrom(...zones), anyTime, (timeZone, time) => {
        const zoned = Temporal.Instant.fromEpochMilliseconds(time).toZonedDateTimeISO(timeZone)
        expect(createWindows(day(timeZone))(time).start).toBe(zoned.startOfDay().epochMilliseconds)
      }),
      { numRuns: 50 },
    )
  })
})

describe('isTimeZone', () => {
  it('accepts names of the IANA database', () => {
    expect(isTimeZone('Europe/Berlin')).toBe(true)
    expect(isTimeZone('Europe/Atlantis')).toBe(false)
  })

  it('creates one date format for 20,000 tests of a name', () => {
    const formats = vi.spyOn(Intl, 'DateTimeFormat')
    try {
      for (let test = 0; test < 10_000; test++) {
        expect(isTimeZone('America/Sao_Paulo')).toBe(true)
        expect(isTimeZone('America/Nowhere')).toBe(false)
      }
      expect(formats.mock.calls.length).toBe(2)
    } finally {
      formats.mockRestore()
    }
  })
})
