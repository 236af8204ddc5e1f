import { describe, expect, it } from 'vitest'
import { readMarkdown, readYamlComments } from './document-texts.ts'
import type { Text } from './text.ts'

function plain(texts: readonly Text[]): string[] {
  return texts.map(({ line, text }) => `${line}: ${text.replace(/\s+/g, ' ').trim()}`)
}

describe('readMarkdown', () => {
  it('skips code, comments, tags and addresses', () => {
    const text =
      '# A\n```sh\nno\n```\n<!-- no --> b `no` [c](no.md) <br> ``no ` no`` d https://no.example.com e'
    expect(plain(readMarkdown('a.md', text))).toEqual(['1: # A b [c d e'])
  })

  it('retains line breaks', () => {
    const [text] = readMarkdown('a.md', 'a\n```\nno\n```\nb')
    expect(text?.text.split('\n').indexOf('b')).toBe(4)
  })
})

describe('readYamlComments', () => {
  it('returns comments only, joined on consecutive lines', () => {
    const text = '# a\n# b `no`\nkey: "# no"\nblock: |\n  # no\nother: 1 # c\n'
    expect(plain(readYamlComments('a.yaml', text))).toEqual(['1: a b', '6: c'])
  })
})
