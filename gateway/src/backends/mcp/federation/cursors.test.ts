import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formatCursors, memberEventId, mergedEventId, parseCursors, parseEventId } from './cursors.ts'

const cursors = fc
  .dictionary(fc.string(), fc.string(), { minKeys: 1, noNullPrototype: true })
  .filter((entries) => !Object.hasOwn(entries, '__proto__'))
  .map((entries) => new Map(Object.entries(entries)))

describe('cursors over several targets', () => {
  it('come back as they were', () => {
    fc.assert(
      fc.property(cursors, (value) => {
        expect(parseCursors(formatCursors(value))).toEqual(value)
      }),
    )
  })

  it('are not believed when made up', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const read = parseCursors(text)
        if (read) expect(formatCursors(read)).toBe(text)
      }),
    )
    for (const json of ['[]', '"x"', '{}', '{"a":1}', '{"a":null}', '{"a":{}}', '1', '{']) {
      expect(parseCursors(Buffer.from(json).toString('base64url'))).toBeUndefined()
    }
    const formatted = formatCursors(new Map([['a', 'x']]))
    for (const text of [`${formatted}=`, ` ${formatted}`, `${formatted}\n`, `${formatted}*`]) {
      expect(parseCursors(text)).toBeUndefined()
    }
    expect(parseCursors('')).toBeUndefined()
    expect(parseCursors('A'.repeat(70_000))).toBeUndefined()
  })
})

describe('event ids of several targets', () => {
  const id = fc.string({ minLength: 1 })

  it('come back with their target', () => {
    fc.assert(
      fc.property(fc.nat(99), id, (index, value) => {
        expect(parseEventId(memberEventId(index, value))).toEqual({ kind: 'one', index, id: value })
      }),
    )
  })

  it('of merged streams come back as positions', () => {
    fc.assert(
      fc.property(cursors, (value) => {
        expect(parseEventId(mergedEventId(value))).toEqual({ kind: 'merged', cursors: value })
      }),
    )
  })

  it('are none when made up', () => {
    for (const text of ['', 'x', 'r.', 'r1.', 'rx.1', 'l.', 'l.x', '1'])
      expect(parseEventId(text)).toBeUndefined()
  })
})
