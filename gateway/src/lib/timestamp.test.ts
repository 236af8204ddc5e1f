import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseTimestamp } from './timestamp.ts'

describe('parseTimestamp', () => {
  it.each([
    ['2027-01-31T00:00:00Z', '2027-01-31T00:00:00.000Z'],
    ['2027-01-31t10:20:30.5z', '2027-01-31T10:20:30.500Z'],
    ['2027-01-31T10:20:30.123456789Z', '2027-01-31T10:20:30.123Z'],
    ['2027-01-31T00:30:00+02:00', '2027-01-30T22:30:00.000Z'],
    ['2027-01-31T00:30:00-00:30', '2027-01-31T01:00:00.000Z'],
    ['2028-02-29T00:00:00Z', '2028-02-29T00:00:00.000Z'],
    ['2016-12-31T23:59:60Z', '2017-01-01T00:00:00.000Z'],
    ['0000-01-01T00:00:00Z', '0000-01-01T00:00:00.000Z'],
  ])('reads %s', (text, time) => {
    expect(new Date(parseTimestamp(text) ?? Number.NaN).toISOString()).toBe(time)
  })

  it.each([
    ['', ''],
    ['a date', '2027-01-31'],
    ['a time without offset', '2027-01-31T00:00:00'],
    ['a day that the month lacks', '2027-02-29T00:00:00Z'],
    ['month 13', '2027-13-01T00:00:00Z'],
    ['hour 24', '2027-01-01T24:00:00Z'],
    ['a space as separator', '2027-01-01 00:00:00Z'],
    ['an offset without colon', '2027-01-01T00:00:00+0200'],
    ['text after the time', '2027-01-01T00:00:00Z '],
  ])('refuses %s', (_, text) => {
    expect(parseTimestamp(text)).toBeUndefined()
  })

  it('returns the time of each ISO 8601 text in UTC', () => {
    const times = fc.integer({ min: -62_167_219_200_000, max: 253_402_300_799_999 })
    fc.assert(fc.property(times, (ms) => parseTimestamp(new Date(ms).toISOString()) === ms))
  })
})
