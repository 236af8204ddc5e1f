import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { scan, type Token } from '../../../scripts/language/scan.ts'
import { configSchema } from '../../src/config/schema.ts'
import { shapeOf as describeSchema, type Shape } from '../../src/schema/shape.ts'

// Every key of the configuration has an effect: its name occurs as a property read in the source. Names are
// compared, not types, so a key that shares its name with another property needs its own test of behaviour.

/** Keys without a read by name, with the reason. */
const readOtherwise: [keys: RegExp, reason: string][] = [
  [/\bai\.(groups\.providers\.)?provider\.\w+$/, 'selects a row of the provider table'],
  [/\bmcpAuthentication\.provider\.\w+$/, 'selects a row of the identity provider table'],
  [/\bresourceMetadata\.bearerMethodsSupported$/, 'all fields of the metadata are published in snake_case'],
  [/\bparams\.(aws|azure|vertex)\w+$/, 'settings of a kind of provider, by the names in its `params`'],
  [/\b(params|ai(\.groups\.providers)?)\.tokenize$/, 'limits estimate every request, with either value'],
]

/**
 * Names of properties that a source text reads: `a.name`, `a['name']`, `'name' in a`, `const { name } = a`.
 */
function propertyReads(source: string): Set<string> {
  const tokens = scan(source).filter(({ kind }) => kind !== 'comment')
  const bound = destructured(tokens)
  const names = new Set<string>()
  tokens.forEach((token, index) => {
    const next = tokens[index + 1]?.text
    const previous = tokens[index - 1]?.text
    if (token.kind === 'string') {
      const isIndex = previous === '[' && next === ']' && isValueEnd(tokens[index - 2])
      if (isIndex || next === 'in') names.add(token.text.slice(1, -1))
    } else if (token.kind === 'word') {
      const isAssigned = next === '=' && tokens[index + 2]?.text !== '='
      if ((previous === '.' && !isAssigned) || bound.has(index)) names.add(token.text)
    }
  })
  return names
}

function isValueEnd(token: Token | undefined): boolean {
  return token !== undefined && (token.kind === 'word' || [')', ']', '.'].includes(token.text))
}

/** Indexes of the words in object patterns of declarations, loops and parameters. */
function destructured(tokens: readonly Token[]): Set<number> {
  const found = new Set<number>()
  const open: number[] = []
  tokens.forEach(({ kind, text }, index) => {
    if (kind !== 'punctuator') return
    if (text === '{') open.push(index)
    if (text !== '}') return
    const start = open.pop() ?? 0
    if (!isPattern(tokens[start - 1]?.text, tokens.slice(index + 1, index + 3))) return
    for (let inner = start + 1; inner < index; inner += 1) {
      const isName = tokens[inner]?.kind === 'word' && ['{', ','].includes(tokens[inner - 1]?.text ?? '')
      if (isName) found.add(inner)
    }
  })
  return found
}

function isPattern(before: string | undefined, [after, later]: readonly Token[]): boolean {
  if (after?.text === '=') return later?.text !== '='
  if (after?.text === 'of') return true
  const isParameter = before === '(' || before === ','
  if (after?.text === ')') return isParameter && (later?.text === '=>' || later?.text === ':')
  return isParameter && (after?.text === ':' || (after?.text === ',' && later?.text !== '{'))
}

/**
 * The keys of a schema with their paths: `config.logging.level`. Lists and maps add no step; recursive shapes
 * end.
 */
function keysOf(shape: Shape, path: readonly string[] = [], within: readonly Shape[] = []): string[][] {
  if (within.includes(shape)) return []
  const inside = [...within, shape]
  switch (shape.kind) {
    case 'object':
      return [...shape.fields].flatMap(([name, field]) => [
        [...path, name],
        ...keysOf(field.shape, [...path, name], inside),
      ])
    case 'choice':
      return shape.shapes.flatMap((option) => keysOf(option, path, inside))
    case 'list':
      return keysOf(shape.item, path, inside)
    case 'map':
      return keysOf(shape.value, path, inside)
    default:
      return []
  }
}

/** Paths whose last key no source reads; of keys inside such a key only the outermost is reported. */
function unreadKeys(shape: Shape, reads: ReadonlySet<string>): string[] {
  const unread = keysOf(shape).filter(
    (path) => path.findIndex((name) => !reads.has(name)) === path.length - 1,
  )
  return [...new Set(unread.map((path) => path.join('.')))]
}

describe('the keys of the configuration', () => {
  it('are each read by the source', () => {
    const folder = fileURLToPath(new URL('../../src/', import.meta.url))
    const paths = globSync('**/*.ts', { cwd: folder }).filter((path) => !/\.(test|bench)\.ts$/.test(path))
    const reads = new Set(paths.flatMap((path) => [...propertyReads(readFileSync(folder + path, 'utf8'))]))
    const unread = unreadKeys(describeSchema(configSchema), reads)
    expect(unread.filter((path) => readOtherwise.every(([keys]) => !keys.test(path)))).toEqual([])
    const unused = readOtherwise.filter(([keys]) => !unread.some((path) => keys.test(path)))
    expect(unused).toEqual([])
  })
})

describe('the search for reads', () => {
  it.each([
    ['a member', 'f(a.key)'],
    ['an optional member', 'f(a?.key)'],
    ['a comparison', 'a.key === b'],
    ['an indexed member', "a['key']"],
    ['a test of presence', "'key' in a"],
    ['a declaration', 'const { other, key = 1 } = a'],
    ['a renamed declaration', 'const { key: other, ...rest } = a'],
    ['a nested declaration', 'const { other: { key } } = a'],
    ['a typed parameter', 'function f(a: A, { key }: B) {}'],
    ['an untyped parameter', 'map(({ key }) => f())'],
    ['one of two parameters', 'map(({ key }, index) => f())'],
    ['a loop', 'for (const { key } of a) f()'],
  ])('finds %s', (_, source) => {
    expect(propertyReads(source)).toContain('key')
  })

  it.each([
    ['a declaration of a schema', 'object({ key: string() })'],
    ['an assignment', 'a.key = 1'],
    ['a text', "f('key')"],
    ['a list of one text', "f(['key'])"],
    ['a comment', '// a.key'],
    ['a type', 'type A = { key: string }'],
  ])('skips %s', (_, source) => {
    expect(propertyReads(source)).not.toContain('key')
  })

  it('reports the outermost unread key', () => {
    const text: Shape = { kind: 'string', meta: { doc: '' } }
    const object = (fields: Record<string, Shape>): Shape => ({
      kind: 'object',
      fields: new Map(Object.entries(fields).map(([name, shape]) => [name, { shape, required: false }])),
      exactlyOne: [],
      meta: { doc: '' },
    })
    const list: Shape = { kind: 'list', item: object({ known: text, missing: text }), meta: { doc: '' } }
    const shape = object({ known: list, absent: object({ known: text, missing: text }) })
    expect(unreadKeys(shape, new Set(['known']))).toEqual(['known.missing', 'absent'])
  })
})
