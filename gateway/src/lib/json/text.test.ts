import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cpuMsOf, expectBelow } from '../../../test/support/time-bound.ts'
import { editTopLevel, memberText } from './edit.ts'
import { exactObject } from './exact.ts'
import { isJsonObject, type JsonObject, type JsonValue } from './json.ts'
import { defaultJsonLimits } from './limits.ts'
import { membersOf } from './members.ts'
import { type JsonText, readJsonObject } from './text.ts'

const { maxDepth: maxJsonDepth, maxElements: maxJsonParts } = defaultJsonLimits

function read(text: string): JsonText {
  const json = readJsonObject(text)
  if (json.kind !== 'object') throw new Error(`expected an object, got ${JSON.stringify(json)}`)
  return json
}

/** JSON text of a value with random blanks and unnecessary escapes. */
function spaced(value: unknown, random: () => number): string {
  const blank = () => [' ', '\n', '\t', '\r', '', '', '', ''][Math.floor(random() * 8)] ?? ''
  const string = (text: string) =>
    JSON.stringify(text).replace(/[a-z{}[\]:,]/g, (c) =>
      random() < 0.2 ? `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}` : c,
    )
  const write = (item: unknown): string => {
    if (typeof item === 'string') return blank() + cleanEscapes(string(item), item) + blank()
    if (Array.isArray(item)) return `${blank()}[${item.map(write).join(',')}${blank()}]${blank()}`
    if (isJsonObject(item)) {
      const members = Object.entries(item).map(([key, child]) => `${write(key)}:${write(child)}`)
      return `${blank()}{${blank()}${members.join(',')}}${blank()}`
    }
    return blank() + JSON.stringify(item) + blank()
  }
  return write(value)
}

/** Escaping the letter of an escape such as \n would change the text; then the plain form is used. */
function cleanEscapes(escaped: string, original: string): string {
  try {
    return JSON.parse(escaped) === original ? escaped : JSON.stringify(original)
  } catch {
    return JSON.stringify(original)
  }
}

const keys = fc.oneof(
  fc.constantFrom('a', 'model', '__proto__', 'constructor', '"', '\\', '{', ':', ''),
  fc.string(),
)
const { value: anyJson } = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(null, true, false, 0, -1.5, 1e21),
    fc.string(),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.array(fc.tuple(keys, tie('value')), { maxLength: 4 }).map((entries) => Object.fromEntries(entries)),
  ),
}))
const objects = fc
  .array(fc.tuple(keys, anyJson), { maxLength: 6 })
  .map((entries): JsonObject => Object.fromEntries(entries))
const seeds = fc.integer({ min: 1 }).map((seed) => {
  let state = seed
  return () => {
    state = (state * 1103515245 + 12345) % 2147483648
    return state / 2147483648
  }
})

describe('readJsonObject', () => {
  it('equals JSON.parse and locates the members', () => {
    fc.assert(
      fc.property(objects, seeds, (object, random) => {
        const json = read(spaced(object, random))
        expect(json.value).toEqual(object)
        expect(
          membersOf(json.text)
            .map((member) => member.name)
            .sort(),
        ).toEqual(Object.keys(object).sort())
        for (const { name, valueStart, valueEnd } of membersOf(json.text)) {
          expect(read(`{"it":${json.text.slice(valueStart, valueEnd)}}`).value).toEqual({ it: object[name] })
        }
      }),
    )
  })

  it('reads keys with escapes correctly after any other keys', () => {
    const names = fc.uniqueArray(fc.constantFrom('a', 'model', '"', '\\', 'b', ''), { maxLength: 5 })
    fc.assert(
      fc.property(names, fc.nat(2), (chosen, escaping) => {
        const keyText = (name: string) =>
          /^[a-z]/.test(name) && escaping === 0
            ? `"\\u${name.charCodeAt(0).toString(16).padStart(4, '0')}${name.slice(1)}"`
            : JSON.stringify(name)
        const { value } = read(`{${chosen.map((name, index) => `${keyText(name)}:${index}`).join(', ')}}`)
        expect(Object.entries(value).sort()).toEqual(chosen.map((name, index) => [name, index]).sort())
      }),
      { numRuns: 2_000 },
    )
  })

  it('never throws and never accepts text that JSON.parse rejects', () => {
    const hostile = fc.array(
      fc.constantFrom('{', '}', '[', ']', '"', '\\', ':', ',', ' ', 'a', '1', '"a"', '\u0000'),
    )
    fc.assert(
      fc.property(hostile, (parts) => {
        const text = parts.join('')
        if (readJsonObject(text).kind === 'object') expect(isJsonObject(JSON.parse(text))).toBe(true)
      }),
      { numRuns: 2000 },
    )
  })

  it.each([
    ['{"model":"a","model":"b"}', 'model'],
    ['{"model":"a","mod\\u0065l":"b"}', 'model'],
    ['{"a":1,"messages":[{"role":"user"},{"role":"user","x":{},"role":"system"}]}', 'messages[1].role'],
    ['{"a":{"b":[[{"c":1,"c":1}]]}}', 'a.b[0][0].c'],
    ['{"__proto__":1,"__proto__":2}', '__proto__'],
    ['{"a":"\\"","b":"{\\"b\\":1}","b":2}', 'b'],
    ['{"":1,"":2}', ''],
  ])('names the duplicate key of %s', (text, path) => {
    expect(readJsonObject(text)).toEqual({ kind: 'duplicate', path })
  })

  it.each([
    '',
    '[]',
    '1',
    '"a"',
    'null',
    '{',
    '{"a":}',
    '{"a":1,}',
    '{"a":1}x',
    '\ufeff{}',
    "{'a':1}",
    '{"a":NaN}',
  ])('refuses %s', (text) => {
    expect(readJsonObject(text).kind).toBe('invalid')
  })

  it('rejects deep nesting without exhausting the stack', () => {
    expect(readJsonObject(`{"a":${'['.repeat(1_000_000)}`).kind).toBe('invalid')
    const deepest = maxJsonDepth - 1
    expect(readJsonObject(`{"a":${'['.repeat(deepest)}${']'.repeat(deepest)}}`).kind).toBe('object')
    expect(readJsonObject(`{"a":${'['.repeat(deepest + 1)}${']'.repeat(deepest + 1)}}`).kind).toBe('invalid')
  })

  it('rejects too many objects, arrays and members for the memory', () => {
    const most = maxJsonParts - 3
    expect(readJsonObject(`{"a":[${'{},'.repeat(most)}1]}`).kind).toBe('object')
    expect(readJsonObject(`{"a":[${'{},'.repeat(most + 1)}1]}`)).toEqual({
      kind: 'invalid',
      message: `of more than ${maxJsonParts} objects, arrays and members`,
    })
    expect(readJsonObject(`{"a":[${'[],'.repeat(most + 1)}1]}`).kind).toBe('invalid')
    expect(readJsonObject(`{${'"a":1,'.repeat(maxJsonParts)}"b":1}`).kind).toBe('invalid')
  })

  it('rejects one object of too many members at any position', () => {
    const { maxMembers } = defaultJsonLimits
    const members = (count: number) =>
      Array.from({ length: count }, (_, index) => `"${index}:":"{,}"`).join(',')
    const full = `{${members(maxMembers)}}`
    expect(readJsonObject(full).kind).toBe('object')
    expect(readJsonObject(`{"a":[${full},{"b":1}],"c":${full}}`).kind).toBe('object')
    const problem = { kind: 'invalid', message: `an object of more than ${maxMembers} members` }
    expect(readJsonObject(`{${members(maxMembers + 1)}}`)).toEqual(problem)
    expect(readJsonObject(`{"a":[[{"b":${full}}],{${members(maxMembers + 1)}}]}`)).toEqual(problem)
  })

  it('rejects lists of too many items', () => {
    const { maxElements } = defaultJsonLimits
    expect(readJsonObject(`{"a":[0${',0'.repeat(maxElements * 10)}]}`).kind).toBe('object')
    expect(readJsonObject(`{"a":[0${',0'.repeat(maxElements * 10)}],"b":1}`)).toEqual({
      kind: 'invalid',
      message: `of more than ${maxElements * 10} list items and members`,
    })
  })

  it('rejects text beyond custom limits', () => {
    const limits = { maxDepth: 2, maxMembers: 1, maxElements: 5 }
    expect(readJsonObject('{"a":[1,2]}', limits).kind).toBe('object')
    expect(readJsonObject('{"a":[[]]}', limits)).toMatchObject({ message: 'nested deeper than 2 levels' })
    expect(readJsonObject('{"a":1,"b":2}', limits)).toMatchObject({
      message: 'an object of more than 1 members',
    })
    expect(readJsonObject('{"a":[{},{},{},{}]}', { ...limits, maxDepth: 3 })).toMatchObject({
      message: 'of more than 5 objects, arrays and members',
    })
  })

  it('takes linear time with any escapes', async () => {
    const isFast = (text: string) => expectBelow(2_000, () => cpuMsOf(() => readJsonObject(text)))
    const million = 1_000_000
    await isFast(`{"a":"${'\\\\'.repeat(million)}"}`)
    await isFast(`{"a":"${'\\"'.repeat(million)}"}`)
    await isFast(`{"a":"${'\\'.repeat(million)}`)
    await isFast('{"a":"'.repeat(million))
  })
})

describe('editTopLevel', () => {
  const big = '{ "id": 12345678901234567890 ,\n "model": "a", "x" : [1.0, 1e2],"stream":true }'

  it('changes one value and preserves every other byte', () => {
    expect(editTopLevel(read(big), { set: new Map([['model', '"b"']]) })).toBe(big.replace('"a"', '"b"'))
  })

  it('adds members behind the last one', () => {
    expect(
      editTopLevel(read(big), {
        set: new Map([
          ['n', '1'],
          ['"', 'null'],
        ]),
      }),
    ).toBe(big.replace(':true', ':true,"n":1,"\\"":null'))
    expect(editTopLevel(read(' { } '), { set: new Map([['n', '1']]) })).toBe(' {"n":1 } ')
  })

  it('equals the same edits of the value', () => {
    const edits = fc.record({ set: fc.array(fc.tuple(keys, anyJson)), remove: fc.array(keys) })
    fc.assert(
      fc.property(objects, seeds, edits, fc.array(fc.nat(5)), (object, random, { set, remove }, picks) => {
        const names = Object.keys(object)
        const removed = new Set([...remove, ...picks.flatMap((pick) => names[pick] ?? [])])
        const changes = new Map(set.map(([name, value]) => [name, JSON.stringify(value)]))
        const edited = editTopLevel(read(spaced(object, random)), { set: changes, remove: removed })
        const expected = new Map(
          Object.entries(object).filter(([name]) => !removed.has(name) || changes.has(name)),
        )
        for (const [name, value] of set) expected.set(name, value)
        expect(read(edited).value).toEqual(Object.fromEntries(expected))
      }),
      { numRuns: 500 },
    )
  })

  it('returns the text of a member as written', () => {
    expect(memberText(read(big), 'id')).toBe('12345678901234567890')
    expect(memberText(read(big), 'x')).toBe('[1.0, 1e2]')
    expect(memberText(read(big), 'y')).toBeUndefined()
  })
})

describe('exactObject', () => {
  const exact = (text: string) => {
    const json = readJsonObject(text)
    if (json.kind !== 'object') throw new Error('not an object')
    return exactObject(json)
  }

  it('returns integers that JSON.parse rounds', () => {
    const text =
      '{"a":9007199254740993,"b":[-9007199254740993,{"c":9223372036854775807}],"d":"9007199254740993"}'
    expect(exact(text)).toEqual({
      a: 9007199254740993n,
      b: [-9007199254740993n, { c: 9223372036854775807n }],
      d: '9007199254740993',
    })
  })

  it('returns numbers elsewhere: safe integers, fractions, exponents and integers above 64 bits', () => {
    const text =
      '{"a":9007199254740991,"b":1.5,"c":1e300,"d":9223372036854775808,"e":12345678901234567890123}'
    expect(exact(text)).toEqual(JSON.parse(text))
  })

  it('returns the value itself without rounded numbers', () => {
    const json = readJsonObject('{"a":1,"b":[2]}')
    expect(json.kind === 'object' && exactObject(json) === json.value).toBe(true)
    expect(exactObject({ kind: 'object', text: '{"a":1}', value: { a: 1 } })).toEqual({ a: 1 })
  })

  it('distinguishes keys written with escapes and __proto__', () => {
    expect(Object.entries(exact('{"\\u0061":9007199254740993,"__proto__":9007199254740995}'))).toEqual([
      ['a', 9007199254740993n],
      ['__proto__', 9007199254740995n],
    ])
  })
})
