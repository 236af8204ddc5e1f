import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { jsonObject } from '../../schema/dsl.ts'
import { loadConfigText } from './load.ts'
import { parsePlainJson } from './plain-json.ts'

const schema = jsonObject({ doc: 'x' })

function load(text: string): unknown {
  const loaded = loadConfigText({ text, file: 'c', env: { NAME: 'value' }, schema, checks: [] })
  return loaded.kind === 'config' ? loaded.config : loaded.issues.map(({ message }) => message)
}

describe('a configuration in JSON', () => {
  it('has the value that it has as YAML', () => {
    const json = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 5 })
    fc.assert(
      fc.property(json, fc.constantFrom(undefined, 1, 2), (value, indent) => {
        const text = JSON.stringify(value, undefined, indent)
        // A comment makes it YAML.
        expect(load(text)).toEqual(load(`# YAML\n${text}`))
      }),
    )
  })

  it.each([
    ['references', '{"a": "$NAME"}'],
    ['absent values', '{"a": null}'],
    ['duplicate keys', '{"a": 1, "\\u0061": 2}'],
    ['rounded numbers', '{"a": 9007199254740993}'],
    ['an empty name', '{"": 1}'],
    ['a prototype', '{"__proto__": {"a": 1}}'],
    ['a trailing comma', '{"a": 1,}'],
    ['other YAML', 'a: 1'],
    ['a list', '[1]'],
  ])('is read as YAML if it has %s', (_, text) => {
    expect(parsePlainJson(text)).toBeUndefined()
    expect(load(text)).toEqual(load(`# YAML\n${text}`))
  })

  it('is parsed as JSON otherwise', () => {
    expect(parsePlainJson(' {"a": [1, "b"]}')).toEqual({ a: [1, 'b'] })
  })
})
