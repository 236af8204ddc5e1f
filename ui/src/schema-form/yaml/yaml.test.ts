import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import type { JsonSchema } from '../model/schema.ts'
import { parseYaml, placeMistakes, yamlMistakes } from './yaml-mistakes.ts'
import { yamlPlaceAt } from './yaml-place.ts'
import { suggestYaml } from './yaml-suggestions.ts'

/** Splits a text at its mark. */
function at(marked: string): { text: string; offset: number } {
  return { text: marked.replace('|', ''), offset: marked.indexOf('|') }
}

describe('the place of the cursor', () => {
  it.each<[string, readonly unknown[], string | undefined]>([
    ['na|', [], undefined],
    ['a: 1\nb|', [], undefined],
    ['a:\n  b|', ['a'], undefined],
    ['a:\n  b: |', ['a'], 'b'],
    ['a:\n  - b|', ['a', 0], undefined],
    ['a:\n  - b: 1\n    c|', ['a', 0], undefined],
    ['a:\n- b: 1\n  c|', ['a', 0], undefined],
    ['a:\n  - b: 1\n  - c|', ['a', 0], undefined],
    ['a:\n  - b:\n      - c: x\n        d: |', ['a', 0, 'b', 0], 'd'],
    ['a:\n  b:\n    c: 1\n  d|', ['a'], undefined],
    ['a:\n  b: 1\n\n  # comment\n  c|', ['a'], undefined],
    ['"a.b":\n  c|', ['a.b'], undefined],
  ])('in %j', (marked, path, key) => {
    const { text, offset } = at(marked)
    const place = yamlPlaceAt(text, offset)
    expect([place?.path, place?.key]).toEqual([path, key])
  })
})

const schema: JsonSchema = {
  type: 'object',
  properties: {
    name: { type: 'string', description: 'The name.' },
    mode: {
      anyOf: [{ enum: ['strict', 'optional'] }, { type: 'string', pattern: '^\\$' }],
      default: 'optional',
    },
    rules: { type: 'array', items: { $ref: '#/definitions/rule' } },
    limits: { type: 'object', additionalProperties: { $ref: '#/definitions/rule' } },
  },
  required: ['name'],
  definitions: {
    rule: {
      type: 'object',
      properties: { allow: { type: 'string' }, deny: { type: 'string' }, on: { type: 'boolean' } },
      oneOf: [{ required: ['allow'] }, { required: ['deny'] }],
    },
  },
}

describe('suggestions', () => {
  it.each<[string, readonly string[]]>([
    ['|', ['name', 'mode', 'rules', 'limits']],
    ['name: x\nm|', ['mode', 'rules', 'limits']],
    ['mode: |', ['strict', 'optional']],
    ['rules:\n  - |', ['allow', 'deny', 'on']],
    ['rules:\n  - allow: x\n    |', ['on']],
    ['limits:\n  any:\n    on: |', ['true', 'false']],
    ['unknown:\n  |', []],
  ])('in %j', (marked, expected) => {
    const { text, offset } = at(marked)
    expect(suggestYaml(text, offset, schema)?.items.map(({ label }) => label)).toEqual(expected)
  })

  it('contain the documentation, and the colon of a key', () => {
    const [first] = suggestYaml('', 0, schema)?.items ?? []
    expect(first).toMatchObject({ label: 'name', info: 'The name.', detail: 'required', insert: 'name: ' })
  })
})

describe('mistakes', () => {
  const shown = (text: string) =>
    yamlMistakes(text, schema).map(({ from, to, message }) => [text.slice(from, to), message])

  it('of the syntax have their place', () => {
    expect(shown('name: "a')[0]?.[1]).toContain('Missing closing')
  })

  it('of values mark the value, of missing fields the object around', () => {
    expect(shown('name: a\nmode: x\nrules:\n  - allow: 1\n')).toEqual([
      ['x', 'must be one of strict, optional'],
      ['1', 'must be a text'],
    ])
    expect(shown('rules:\n  - on: true\nname: a\n')[0]?.[1]).toBe('must have exactly one of Allow, Deny')
    expect(shown('mode: strict\n')[0]?.[1]).toBe('Name is required')
  })

  it('that the gateway reports are placed by their path', () => {
    const text = 'name: a\nrules:\n  - allow: "x"\n'
    const parsed = parseYaml(text)
    if (parsed.kind !== 'value') throw new Error(parsed.message)
    const [mistake] = placeMistakes(parsed.document, [{ path: ['rules', 0, 'allow'], message: 'm' }])
    expect(text.slice(mistake?.from, mistake?.to)).toBe('"x"')
  })
})

it('a value is the same after it was shown as YAML', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 4 })), (value) => {
      const parsed = parseYaml(stringify(value, { lineWidth: 100 }))
      expect(parsed.kind === 'value' && JSON.stringify(parsed.value)).toBe(JSON.stringify(value))
    }),
  )
})

it('a value with exponential aliases is refused', () => {
  const lines = [
    'a0: &a0 [x]',
    ...Array.from({ length: 12 }, (_, i) => `a${i + 1}: &a${i + 1} [${`*a${i},`.repeat(9)}]`),
  ]
  expect(parseYaml(lines.join('\n')).kind).toBe('invalid')
})
