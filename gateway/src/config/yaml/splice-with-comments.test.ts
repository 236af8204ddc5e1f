import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { JsonValue } from '../../lib/json/json.ts'
import type { YamlEdit } from './draft.ts'
import { editYaml } from './edit.ts'
import { parseYaml, readYamlSource } from './yaml.ts'

/** A source of choices: the same numbers make the same document. */
type Dice = (sides: number) => number

function diceOf(numbers: readonly number[]): Dice {
  let at = 0
  return (sides) => (numbers.length === 0 ? 0 : (numbers[at++ % numbers.length] ?? 0) + at * 7) % sides
}

const words = [
  'a',
  'name',
  'x y',
  '42',
  'true',
  'a: b',
  '# no',
  "it's",
  '"q"',
  'ü→😀',
  '',
  ' lead',
  'null',
  '~',
  '- d',
  '*s',
  '&s',
  '{',
  '\\',
  '$HOME',
  '$' + '{K}',
  '1e3',
  '0x1',
  'C:\\x',
  '!t',
  '%',
  '@',
  '`',
  '|',
  '>',
  'tail ',
  'a\nb',
  'a\n\nb\n',
  '\n',
  'a\r\nb',
  '\t',
  'x\u0000',
  '\u2028',
  '\uFEFF',
  'https://h/p?q=1#f',
]
const keys = [
  'a',
  'b',
  'keys',
  'name',
  'long-key',
  'x.y',
  'with space',
  '1',
  'true',
  'ключ',
  'k:v',
  'q"q',
  '-',
]

const scalar = fc.oneof(
  fc.constantFrom(...words),
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.maxSafeInteger(),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => (Number.isInteger(value) ? 1.5 : value)),
  fc.boolean(),
  fc.constant(null),
)
const { value: jsonValue } = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    scalar,
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(fc.constantFrom(...keys), tie('value'), { maxKeys: 4, noNullPrototype: true }),
  ),
}))
const root = fc.dictionary(fc.constantFrom(...keys), jsonValue, { maxKeys: 5, noNullPrototype: true })
const dice = fc.array(fc.nat(1000), { maxLength: 40 })

/** Writes a value in one of the many ways there are. Every comment has a number of its own. */
function writeVaried(value: Record<string, JsonValue>, roll: Dice): string {
  const eol = roll(4) === 0 ? '\r\n' : '\n'
  const step = 1 + roll(4)
  let comments = 0
  const comment = () => (roll(4) === 0 ? ` # c${comments++}` : '')
  const above = (indent: number) => {
    if (roll(9) === 0) return [`${' '.repeat(roll(2) === 0 ? indent : roll(7))}# c${comments++}`]
    return roll(9) === 0 ? [''] : []
  }

  function text(word: string, flow: boolean): string {
    const plain = /^[a-z][\w/.-]*$/.test(word) && !/^(true|false|null|yes|no|on|off|y|n)$/.test(word)
    if (plain && roll(3) > 0) return word
    const single = !/[^\x20-\x7E]/.test(word) && roll(2) === 0
    if (single) return `'${word.replaceAll("'", "''")}'`
    return flow || roll(2) === 0 ? escaped(word) : escaped(word)
  }

  function flow(json: JsonValue, indent: number): string {
    if (typeof json === 'string') return text(json, true)
    if (typeof json !== 'object' || json === null) return String(json)
    const list = Array.isArray(json)
    const items = list
      ? json.map((item) => flow(item, indent + step))
      : Object.entries(json).map(([key, item]) => `${text(key, true)}: ${flow(item, indent + step)}`)
    const [open, close] = list ? '[]' : '{}'
    if (items.length === 0) return `${open}${close}`
    const tail = roll(4) === 0 ? ',' : ''
    if (roll(3) > 0) {
      const space = roll(2) === 0 ? ' ' : ''
      return `${open}${space}${items.join(roll(2) === 0 ? ', ' : ' , ')}${tail}${space}${close}`
    }
    const line = eol + ' '.repeat(indent + step)
    const lines = items.map(
      (item, index) => `${line}${item}${index < items.length - 1 ? ',' : tail}${comment()}`,
    )
    return `${open}${lines.join('')}${eol}${' '.repeat(indent)}${close}`
  }

  /** The value after a key or dash, and the lines below. */
  function block(json: JsonValue, indent: number, dash: boolean): string[] {
    const isBlockText = typeof json === 'string' && /^[a-z]+(\n+[a-z]+)*\n*$/.test(json)
    if (isBlockText && roll(2) === 0) {
      const kept = /\n*$/.exec(json)?.[0].length ?? 0
      const lines = json.slice(0, json.length - kept).split('\n')
      const extra = Array.from({ length: Math.max(0, kept - 1) }, () => '')
      const mark = kept === 0 ? '|-' : kept === 1 ? '|' : '|+'
      return [
        ` ${mark}${comment()}`,
        ...[...lines, ...extra].map((line) => (line === '' ? '' : ' '.repeat(indent + step) + line)),
      ]
    }
    if (json === null && roll(2) === 0) return [comment()]
    const empty = typeof json === 'object' && json !== null && Object.keys(json).length === 0
    if (typeof json !== 'object' || json === null || empty || roll(4) === 0) {
      const written = flow(json, indent)
      if (!dash && roll(8) === 0) return ['', `${' '.repeat(indent + step)}${written}`]
      return ` ${written}${comment()}`.split(eol)
    }
    if (Array.isArray(json)) {
      const inner = dash ? indent + step : indent + (roll(2) === 0 ? step : 0)
      const lines = json.flatMap((item) => {
        const [head = '', ...body] = block(item, inner, true)
        return [...above(inner), `${' '.repeat(inner)}-${head}`, ...body]
      })
      return nested(lines, indent, { dash, inner })
    }
    return nested(map(json, indent + step), indent, { dash, inner: indent + step })
  }

  function nested(
    lines: string[],
    indent: number,
    { dash, inner }: { dash: boolean; inner: number },
  ): string[] {
    const [first = '', ...body] = lines
    const fits = dash && inner > indent + 1 && !first.trimStart().startsWith('#') && first !== ''
    return fits && roll(4) > 0 ? [first.slice(indent + 1), ...body] : [comment(), ...lines]
  }

  function map(json: Record<string, JsonValue>, indent: number): string[] {
    return Object.entries(json).flatMap(([key, item]) => {
      const [head = '', ...body] = block(item, indent, false)
      return [...above(indent), `${' '.repeat(indent)}${text(key, false)}:${head}`, ...body]
    })
  }

  const shape = roll(8)
  const start = roll(5) === 0 ? ['---'] : []
  const lines = shape === 0 || Object.keys(value).length === 0 ? flow(value, 0).split(eol) : map(value, 0)
  const end = roll(6) === 0 ? '' : eol
  return [...(roll(3) === 0 ? ['# head', ''] : []), ...start, ...lines].join(eol) + end
}

function escaped(word: string): string {
  return JSON.stringify(word).replace(/[\p{Cc}\p{Cs}\p{Cn}\p{Co}\u2028\u2029\uFEFF\u0085]/gu, (character) =>
    Array.from(
      { length: character.length },
      (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`,
    ).join(''),
  )
}

/** An edit that makes sense for the value, and the value after it. Changes the value. */
function randomEdit(document: Record<string, JsonValue>, roll: Dice, fresh: JsonValue): YamlEdit {
  const path: (string | number)[] = []
  let here: JsonValue = document
  for (;;) {
    const steps: (string | number)[] = Array.isArray(here) ? [...here.keys()] : Object.keys(here as object)
    const step = steps[roll(Math.max(1, steps.length))]
    const next: JsonValue | undefined = step === undefined ? undefined : Reflect.get(here as object, step)
    if (step === undefined || roll(4) === 0) break
    path.push(step)
    if (typeof next !== 'object' || next === null) break
    here = next
  }
  const value = structuredClone(fresh)
  const holder = path.slice(0, -1).reduce<JsonValue>((at, step) => Reflect.get(at as object, step), document)
  const last = path.at(-1)
  const target = last === undefined ? document : Reflect.get(holder as object, last)
  if (Array.isArray(target) && roll(2) === 0) {
    target.push(value)
    return { op: 'append', path, value: fresh }
  }
  if (
    last === undefined ||
    (typeof target === 'object' && target !== null && !Array.isArray(target) && roll(2) === 0)
  ) {
    const key = keys[roll(keys.length)] ?? 'a'
    Reflect.set(target as object, key, value)
    return { op: 'set', path: [...path, key], value: fresh }
  }
  if (roll(2) === 0) {
    if (Array.isArray(holder)) holder.splice(Number(last), 1)
    else Reflect.deleteProperty(holder as object, last)
    return { op: 'remove', path }
  }
  Reflect.set(holder as object, last, value)
  return { op: 'set', path, value: fresh }
}

function parsed(text: string): unknown {
  return JSON.parse(JSON.stringify(parseYaml(text)))
}

const runs = Number(process.env.EDIT_RUNS ?? 300)

describe('editing any document', () => {
  it('produces the edited value in every document style', () => {
    fc.assert(
      fc.property(
        root,
        dice,
        fc.array(fc.tuple(jsonValue, dice), { minLength: 1, maxLength: 6 }),
        (value, numbers, seeds) => {
          const text = writeVaried(value, diceOf(numbers))
          // A comment far to the right below text in block style is part of that text.
          fc.pre(isDeepStrictEqual(parsed(text), value))
          const expected = structuredClone(value)
          const edits = seeds.map(([fresh, each]) => randomEdit(expected, diceOf(each), fresh))
          const result = editYaml(text, edits)
          if (result.kind === 'refused') expect.fail(`${result.message}\n${JSON.stringify(edits)}\n${text}`)
          expect(parseYaml(result.text)).toEqual(expected)
        },
      ),
      { numRuns: runs },
    )
  })

  it('only inserts text for additions to non-empty collections', () => {
    fc.assert(
      fc.property(root, dice, dice, jsonValue, (value, numbers, place, fresh) => {
        const text = writeVaried(value, diceOf(numbers))
        const target = filledCollection(value, diceOf(place))
        fc.pre(target !== undefined && isDeepStrictEqual(parsed(text), value))
        const edit: YamlEdit = Array.isArray(target.value)
          ? { op: 'append', path: target.path, value: fresh }
          : { op: 'set', path: [...target.path, 'fresh'], value: fresh }
        const added = editYaml(text, [edit])
        if (added.kind === 'refused') expect.fail(added.message)
        expect(isInsertion(text, added.text)).toBe(true)
        const path = Array.isArray(target.value) ? [...target.path, target.value.length] : edit.path
        expect(editYaml(added.text, [{ op: 'remove', path }])).toEqual({ kind: 'edited', text })
      }),
      { numRuns: runs },
    )
  })

  it('leaves the text under other keys unchanged', () => {
    fc.assert(
      fc.property(root, dice, jsonValue, dice, (value, numbers, fresh, each) => {
        const text = writeVaried(value, diceOf(numbers))
        fc.pre(isDeepStrictEqual(parsed(text), value))
        const edit = randomEdit(structuredClone(value), diceOf(each), fresh)
        const result = editYaml(text, [edit])
        if (result.kind === 'refused') expect.fail(result.message)
        const { tree, value: written } = readYamlSource(text)
        const names = tree.kind === 'map' ? [...tree.entries.keys()] : []
        let at = 0
        written?.items().forEach(({ start, end }, index) => {
          if (names[index] === edit.path[0]) return
          const found = result.text.indexOf(text.slice(start, end), at)
          expect(found).toBeGreaterThanOrEqual(at)
          at = found + end - start
        })
      }),
      { numRuns: runs },
    )
  })
})

type Target = { path: (string | number)[]; value: JsonValue[] | Record<string, JsonValue> }

/** Some list or map of the document that is not empty. */
function filledCollection(document: Record<string, JsonValue>, roll: Dice): Target | undefined {
  const found: Target[] = []
  const visit = (value: JsonValue, path: (string | number)[]): void => {
    if (typeof value !== 'object' || value === null || Object.keys(value).length === 0) return
    found.push({ path, value })
    const list = Array.isArray(value)
    for (const [key, item] of Object.entries(value)) visit(item, [...path, list ? Number(key) : key])
  }
  visit(document, [])
  return found[roll(Math.max(1, found.length))]
}

/** Whether the longer text is the shorter one with one insertion, and maybe a comma before it. */
function isInsertion(shorter: string, longer: string): boolean {
  const first = samePrefix(shorter, longer)
  if (longer.endsWith(shorter.slice(first))) return true
  if (longer[first] !== ',') return false
  const second = samePrefix(shorter.slice(first), longer.slice(first + 1))
  return longer.endsWith(shorter.slice(first + second))
}

function samePrefix(one: string, other: string): number {
  let at = 0
  while (at < one.length && one[at] === other[at]) at++
  return at
}
