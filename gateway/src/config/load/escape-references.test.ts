// biome-ignore-all lint/suspicious/noTemplateCurlyInString: environment references
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Shape } from '../../schema/shape.ts'
import { editYaml } from '../yaml/edit.ts'
import { readYaml } from '../yaml/yaml.ts'
import { expandReferences } from './environment.ts'
import { escapeReferences } from './escape-references.ts'
import { toPlainValue } from './plain-value.ts'

const none = new Set<string>()
const text = fc
  .array(fc.constantFrom('$', '$$', '{', '}', ':-', 'NAME', 'ü', ' ', '${', 'a', '_', '9', '\n'))
  .map((all) => all.join(''))

describe('escapeReferences', () => {
  it('writes texts that expand to themselves in every environment', () => {
    fc.assert(
      fc.property(fc.oneof(text, fc.string()), (sent) => {
        const expanded = expandReferences(String(escapeReferences(sent, none)), { NAME: 'secret', a: 'x' })
        expect(expanded).toMatchObject({ text: sent, missing: [], replaced: false })
      }),
      { numRuns: 2_000 },
    )
  })

  it.each([
    ['${KEY}', '${KEY}'],
    ['$KEY', '$KEY'],
    ['Bearer ${KEY:-none} $', 'Bearer ${KEY:-none} $$'],
    ['${OTHER}', '$${OTHER}'],
    ['$KEYS', '$$KEYS'],
    ['$$KEY', '$$$KEY'],
    ['${OTHER:-$KEY}', '$${OTHER:-$$KEY}'],
    ['${KEY', '$${KEY'],
    ['${}', '$${}'],
  ])('keeps references to allowed variables only: %s', (sent, written) => {
    expect(escapeReferences(sent, new Set(['KEY']))).toBe(written)
  })

  it('expands a dollar before an allowed reference to a dollar and the value', () => {
    const written = String(escapeReferences('$${KEY} $$', new Set(['KEY'])))
    expect(expandReferences(written, { KEY: 'v' }).text).toBe('$v $$')
  })

  it('escapes texts in lists and objects of a copy, but not keys and other values', () => {
    const sent = { $a: ['$x', 1, null, true, { b: '$$' }] }
    expect(escapeReferences(sent, none)).toEqual({ $a: ['$$x', 1, null, true, { b: '$$$$' }] })
    expect(sent).toEqual({ $a: ['$x', 1, null, true, { b: '$$' }] })
  })

  it('stores the exact value in a file, whose references stay references', () => {
    const shape: Shape = { kind: 'any', meta: { doc: 'anything' } }
    const json = fc.jsonValue({ noUnicodeString: false, stringUnit: 'binary' })
    fc.assert(
      fc.property(fc.oneof(text, json), (sent) => {
        const result = editYaml('a: ${NAME}\n', [
          { op: 'set', path: ['b'], value: escapeReferences(sent, none) },
        ])
        // Some JSON is refused, because the style of this file cannot express it.
        if (result.kind === 'refused') {
          expect(result.message).toMatch(/would be rounded|key/)
          return
        }
        const loaded = toPlainValue(readYaml(result.text).tree, shape, { NAME: 'value' })
        expect(loaded.mistakes).toEqual([])
        expect(loaded.value).toEqual({ a: 'value', b: JSON.parse(JSON.stringify(sent)) })
      }),
      { numRuns: 500 },
    )
  })

  it('retains a key named __proto__', () => {
    const escaped = escapeReferences(JSON.parse('{"__proto__": {"admin": true}}'), none)
    expect(Object.hasOwn(Object(escaped), '__proto__')).toBe(true)
    expect(Object(escaped).admin).toBeUndefined()
  })
})
