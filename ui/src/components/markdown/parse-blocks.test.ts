import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseBlocks } from './parse-blocks.ts'

describe('parseBlocks', () => {
  it('parses headings, nested lists, code, tables and quotes', () => {
    const text = [
      '## Title',
      'First **bold** and `code`',
      'second line',
      '',
      '1. one',
      '   - inner',
      '2. two',
      '',
      '```ts',
      'const a = "**"',
      '```',
      '| a | b |',
      '|---|---|',
      '| 1 | *2* |',
      '> quoted',
    ].join('\n')
    expect(parseBlocks(text)).toMatchObject([
      { kind: 'heading', level: 2 },
      {
        kind: 'paragraph',
        content: [
          { text: 'First ' },
          { kind: 'strong' },
          { text: ' and ' },
          { kind: 'code', text: 'code' },
          { kind: 'break' },
          { text: 'second line' },
        ],
      },
      {
        kind: 'list',
        start: 1,
        items: [[{ kind: 'paragraph' }, { kind: 'list', start: undefined }], [{ kind: 'paragraph' }]],
      },
      { kind: 'code', language: 'ts', text: 'const a = "**"' },
      {
        kind: 'table',
        head: [[{ text: 'a' }], [{ text: 'b' }]],
        rows: [[[{ text: '1' }], [{ kind: 'emphasis' }]]],
      },
      { kind: 'quote', blocks: [{ kind: 'paragraph' }] },
    ])
  })

  it('retains a list across empty lines and ends it at a paragraph', () => {
    expect(parseBlocks('- a\n\n- b\n\nend')).toMatchObject([
      { kind: 'list', items: [{ length: 1 }, { length: 1 }] },
      { kind: 'paragraph' },
    ])
  })

  it('parses the unfinished code of a stream', () => {
    expect(parseBlocks('Look:\n```py\nprint(1)')).toMatchObject([
      { kind: 'paragraph' },
      { kind: 'code', language: 'py', text: 'print(1)' },
    ])
  })

  it('leaves HTML as text', () => {
    expect(parseBlocks('<img src=x onerror=alert(1)>')).toEqual([
      { kind: 'paragraph', content: [{ kind: 'text', text: '<img src=x onerror=alert(1)>' }] },
    ])
  })

  it.each(['javascript:alert(1)', 'data:text/html,x', '//host/x', 'vbscript:x'])(
    'creates no link to %s',
    (address) => {
      expect(JSON.stringify(parseBlocks(`[x](${address})`))).not.toContain('"link"')
    },
  )

  it('leaves snake_case names and lone stars as text', () => {
    expect(parseBlocks('a_b_c and 2 * 3 * 4')).toEqual([
      { kind: 'paragraph', content: [{ kind: 'text', text: 'a_b_c and 2 * 3 * 4' }] },
    ])
  })

  it('terminates on any text, and retains its words', () => {
    const piece = fc.constantFrom(
      '*',
      '**',
      '_',
      '`',
      '```',
      '[',
      '](',
      ')',
      '|',
      '-',
      '\n',
      ' ',
      '> ',
      '1. ',
      'w',
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 80 }), (pieces) => {
        const text = pieces.join('')
        const words = text.match(/w/g)?.length ?? 0
        const parsed = JSON.stringify(parseBlocks(text)).match(/w/g)?.length ?? 0
        // Words after a code fence are its language: only the first is retained there.
        if (!/```|~~~/.test(text)) expect(parsed).toBeGreaterThanOrEqual(words)
      }),
    )
  })

  it('parses long texts of marks without quadratic growth', () => {
    for (const text of [
      '*'.repeat(50_000),
      '[a]('.repeat(20_000),
      '`'.repeat(50_001),
      '> '.repeat(20_000),
      '|-'.repeat(20_000),
    ])
      expect(parseBlocks(text).length).toBeGreaterThan(0)
  }, 10_000)
})
