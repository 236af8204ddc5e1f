import { describe, expect, it } from 'vitest'
import { readSourceTexts } from './source-texts.ts'

function read(source: string, lineWidth = 110) {
  const { comments, messages, testNames, wideComments } = readSourceTexts('a.ts', source, lineWidth)
  const plain = (texts: typeof comments) =>
    texts.map(({ line, text }) => `${line}: ${text.replace(/\s+/g, ' ').trim()}`)
  return {
    comments: plain(comments),
    messages: plain(messages),
    testNames: plain(testNames),
    wideComments,
  }
}

describe('readSourceTexts', () => {
  it('joins line comments on consecutive lines', () => {
    const source = 'f() // one\n\n// two\n  // three\n\n/**\n * four\n * five */\n/* six */'
    expect(read(source).comments).toEqual(['1: one', '3: two three', '6: four five', '9: six'])
  })

  it('skips code and URLs in comments', () => {
    const source = '// a `b c` d https://example.com/what e\n/**\n * f\n * ```\n * g\n * ```\n */'
    expect(read(source).comments).toEqual(['1: a d e', '2: f'])
  })

  it('returns literals with two spaces as messages, without substitutions and escapes', () => {
    const source = `f('a b', 'c d e', \`g \${h('i j k')} l\\\`m\` + 'n\\no p\\'s q')`
    expect(read(source).messages).toEqual(['1: c d e', '1: g l `m', '1: i j k', "1: n o p 's q"])
  })

  it('returns the names of tests in every form', () => {
    const source = `it('one', () => {})
describe('two', () => { f.it('no') })
it.each<[string, () => void]>([['no', () => {}]])('three %s', () => {})
describe.skipIf(f('no'))(\`four \${x}\`, () => {})
it.only('five', () => {})
it(name, () => {})
const it = 'no'`
    expect(read(source).testNames).toEqual(['1: one', '2: two', '3: three %s', '4: four', '5: five'])
  })

  it('lists comment lines that exceed the width, except those with a URL', () => {
    const source =
      "// 5678901\n/**\n * 8901\n * 89\n */\nabcdef(1) // b\nconst wide = 'wide'\n// http://a.b\n// 89"
    expect(read(source, 10).wideComments).toEqual([6])
    expect(read(source, 6).wideComments).toEqual([1, 3, 6])
  })
})
