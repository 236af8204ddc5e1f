import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type JsonPath, spliceJson } from './splice.ts'

const set = (path: JsonPath, value: unknown) => ({ kind: 'set', path, json: JSON.stringify(value) }) as const
const remove = (path: JsonPath) => ({ kind: 'remove', path }) as const

describe('splices', () => {
  it('change values and preserve every other byte', () => {
    const text = ' {"a" : [1, {"b":"x", "n":12345678901234567890}] ,\n"c":"\\u0041"} '
    expect(spliceJson(text, [set(['a', 1, 'b'], 'y'), set(['c'], null)])).toBe(
      ' {"a" : [1, {"b":"y", "n":12345678901234567890}] ,\n"c":null} ',
    )
  })

  it('find keys written with escapes', () => {
    expect(spliceJson('{"\\u0061\\"":1}', [set(['a"'], 2)])).toBe('{"\\u0061\\"":2}')
  })

  it.each([
    [[0], '[2, 3]'],
    [[1], '[1, 3]'],
    [[2], '[1, 2]'],
    [[0, 1], '[3]'],
    [[1, 2], '[1]'],
    [[0, 2], '[2]'],
    [[0, 1, 2], '[]'],
  ])('leave items %j out', (items, expected) => {
    expect(
      spliceJson(
        '[1, 2, 3]',
        items.map((item) => remove([item])),
      ),
    ).toBe(expected)
  })

  it('reject a path without a value', () => {
    expect(() => spliceJson('{"a":{}}', [set(['a', 'b'], 1)])).toThrow('does not exist')
    expect(() => spliceJson('{"a":[]}', [remove(['a', 0])])).toThrow('does not exist')
  })

  it('equal a change of the value, for any value', () => {
    fc.assert(
      fc.property(
        fc.jsonValue(),
        fc.jsonValue(),
        fc.nat(),
        fc.integer({ min: 0, max: 4 }),
        (value, put, pick, indent) => {
          const paths = pathsOf(value)
          const path = paths[pick % paths.length] ?? []
          const text = JSON.stringify(value, undefined, indent)
          const expected: unknown =
            path.length === 0 ? put : replaced(JSON.parse(JSON.stringify(value)), path, put)
          expect(JSON.parse(spliceJson(text, [set(path, put)]))).toEqual(JSON.parse(JSON.stringify(expected)))
        },
      ),
      { numRuns: 300 },
    )
  })
})

function pathsOf(value: unknown, path: JsonPath = []): JsonPath[] {
  if (typeof value !== 'object' || value === null) return [path]
  const isArray = Array.isArray(value)
  const inside = Object.entries(value).flatMap(([key, entry]) =>
    key === '__proto__' ? [] : pathsOf(entry, [...path, isArray ? Number(key) : key]),
  )
  return [path, ...inside]
}

function replaced(value: unknown, path: JsonPath, put: unknown): unknown {
  const [step, ...rest] = path
  if (step === undefined) return put
  if (Array.isArray(value))
    return value.map((item, index) => (index === step ? replaced(item, rest, put) : item))
  const entries = Object.entries(value ?? {})
  return Object.fromEntries(
    entries.map(([key, entry]) => [key, key === step ? replaced(entry, rest, put) : entry]),
  )
}
