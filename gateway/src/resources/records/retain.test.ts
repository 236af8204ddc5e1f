import { describe, expect, it } from 'vitest'
import { retainStored } from './retain.ts'

const mask = '***'

describe('retainStored', () => {
  it('replaces masks by the stored value at the same place', () => {
    const stored = { a: { secret: 's1', b: 1 }, c: 's2' }
    const shown = { a: { secret: mask, b: 1 }, c: mask }
    expect(retainStored({ a: { secret: mask, b: 2 }, c: mask }, { shown, stored })).toEqual({
      a: { secret: 's1', b: 2 },
      c: 's2',
    })
    expect(retainStored({ a: { other: mask } }, { shown, stored })).toEqual({ a: { other: mask } })
    expect(retainStored({ c: 'new' }, { shown, stored })).toEqual({ c: 'new' })
  })

  it('recognises moved items of a list', () => {
    const stored = [
      { name: 'a', key: 's1' },
      { name: 'b', key: 's2' },
      { host: 'c', key: 's3' },
    ]
    const shown = stored.map((item) => ({ ...item, key: mask }))
    const [a, b, c] = shown
    expect(retainStored([c, b, a] as never, { shown, stored })).toEqual([stored[2], stored[1], stored[0]])
    expect(retainStored([{ ...b, x: 1 }, a] as never, { shown, stored })).toEqual([
      { name: 'b', key: 's2', x: 1 },
      stored[0],
    ])
    expect(retainStored([a, b, { ...c, x: 1 }] as never, { shown, stored })).toEqual([
      ...stored.slice(0, 2),
      { host: 'c', key: 's3', x: 1 },
    ])
  })

  it('leaves the mask if one of several items that look alike was removed', () => {
    const shown = [{ key: mask }, { key: mask }, { name: 'c', key: mask }]
    const stored = [{ key: 's1' }, { key: 's2' }, { name: 'c', key: 's3' }]
    expect(retainStored([{ key: mask }, { name: 'c', key: mask }], { shown, stored })).toEqual([
      { key: mask },
      { name: 'c', key: 's3' },
    ])
    const same = [{ key: 's1' }, { key: 's1' }]
    expect(retainStored([{ key: mask }], { shown: shown.slice(0, 2), stored: same })).toEqual([{ key: 's1' }])
  })

  it('uses each stored item once', () => {
    const result = retainStored([mask, mask, mask], { shown: [mask, mask], stored: ['s1', 's2'] })
    expect(result).toEqual(['s1', 's2', mask])
  })

  it('returns the stored value for a value sent as read, for any JSON', () => {
    let seed = 7
    const random = (limit: number) => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
      return seed % limit
    }
    type Json = string | Json[] | { [key: string]: Json }
    const value = (depth: number): Json => {
      const kind = depth === 0 ? 0 : random(3)
      if (kind === 0) return random(2) === 0 ? `secret ${random(1000)}` : `text ${random(5)}`
      if (kind === 1) return Array.from({ length: random(5) }, () => value(depth - 1))
      return Object.fromEntries(Array.from({ length: random(4) }, (_, at) => [`m${at}`, value(depth - 1)]))
    }
    const masked = (json: Json): Json => {
      if (typeof json === 'string') return json.startsWith('secret') ? mask : json
      if (Array.isArray(json)) return json.map(masked)
      return Object.fromEntries(Object.entries(json).map(([key, member]) => [key, masked(member)]))
    }
    for (let run = 0; run < 2_000; run++) {
      const stored = value(4)
      expect(retainStored(masked(stored), { shown: masked(stored), stored })).toEqual(stored)
      const extended = { own: masked(stored), added: 'x' }
      const whole = { shown: { own: masked(stored) }, stored: { own: stored } }
      expect(retainStored(extended, whole)).toEqual({ own: stored, added: 'x' })
    }
  })
})
