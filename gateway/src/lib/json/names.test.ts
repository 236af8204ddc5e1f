import { describe, expect, it } from 'vitest'
import { compileJsonNames, foldName } from './names.ts'

const find = compileJsonNames({
  fields: ['model', 'messages', 'content', 'max_tokens', 'type', 'inputSchema'],
  free: {
    arguments: 'free',
    variables: 'map',
    input: ({ type }) => type === 'tool_use',
  },
})
const findPlain = compileJsonNames({ fields: ['model', 'messages', 'content'], free: {} })

describe('ambiguous names', () => {
  it.each([
    [{ Model: 'a' }, 'Model'],
    [{ me\u017f\u017fages: [] }, 'me\u017f\u017fages'],
    [{ model: 'a', MODEL: 'b' }, 'MODEL'],
    [{ Max_To\u212aens: 1 }, 'Max_To\u212aens'],
    [{ inputschema: {} }, 'inputschema'],
    [{ messages: [{}, { content: [{ Type: 'text' }] }] }, 'messages[1].content[0].Type'],
    [{ unknown: { Content: 'x' } }, 'unknown.Content'],
    [{ variables: { Content: { type: 'x', TYPE: 'y' } } }, 'variables.Content.TYPE'],
    [{ input: { Model: 'x' } }, 'input.Model'],
    [{ type: 'tool_use', input: { Model: 'x' } }, 'input.Model'],
    [{ \u0130nput: 1, type: 'x' }, '\u0130nput'],
    [{ other: 1, Other: 2 }, 'Other'],
    [{ stra\u00dfe: 1, STRASSE: 2 }, 'STRASSE'],
  ])('are found: %j', (value, path) => {
    expect(find(value)).toEqual({ kind: 'ambiguous', path })
  })

  it.each([
    [{ model: 'a', messages: [{ content: 'Model', type: 'Type' }] }],
    [{ arguments: { Model: 1, model: 2, MODEL: 3 } }],
    [{ arguments: [{ Model: 1, model: 2 }] }],
    [{ variables: { Content: 'x', content: 'y' } }],
    [{ content: [{ type: 'tool_use', input: { Model: 1 } }] }],
    [{ Other: 1, another: { Another: 2 } }],
    [{ unknown: 1, 'x-other': 2 }],
  ])('are none in %j', (value) => {
    expect(find(value)).toBeUndefined()
  })

  it('are found if every field is lower case', () => {
    expect(findPlain({ model: 1, mode\u006c_x: 1, Content: 2 })).toMatchObject({ path: 'Content' })
    expect(findPlain({ abc: 1, messages: [[{ CONTENT: 1 }]] })).toMatchObject({
      path: 'messages[0][0].CONTENT',
    })
  })
})

describe('undefined names of a format', () => {
  const named = (name: (index: number) => string, count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [name(index), 1]))

  it.each([
    ['plain', (index: number) => `x${index}`, 10_000],
    ['to be folded', (index: number) => `X${index}`, 1_000],
  ])('are bounded where they are %s', (_, name, most) => {
    expect(find({ messages: [named(name, most)] })).toBeUndefined()
    expect(find({ messages: [named(name, most), named(name, 1)] })).toMatchObject({ kind: 'too many' })
    expect(find({ arguments: named(name, most + 1) })).toBeUndefined()
  })

  it('are counted per value', () => {
    for (let round = 0; round < 3; round++) expect(find(named((index) => `x${index}`, 9_000))).toBeUndefined()
  })
})

describe('foldName', () => {
  it('joins all letters joined by simple case folding in regular expressions', () => {
    const letters: string[] = []
    for (let code = 0x80; code <= 0x10ffff; code += 1) {
      if (code >= 0xd800 && code <= 0xdfff) continue
      const letter = String.fromCodePoint(code)
      if (letter.toLowerCase() !== letter || letter.toUpperCase() !== letter) letters.push(letter)
    }
    for (let code = 0x41; code <= 0x7a; code += 1) letters.push(String.fromCharCode(code))
    const all = letters.join('')
    const apart: string[] = []
    for (const letter of letters) {
      if (/[[\\\]^]/.test(letter)) continue
      for (const [equal] of all.matchAll(new RegExp(letter, 'giu'))) {
        if (foldName(equal) !== foldName(letter)) apart.push(`${letter} ${equal}`)
      }
    }
    expect(letters.length).toBeGreaterThan(2_500)
    expect(apart).toEqual([])
  })
})
