// biome-ignore-all lint/suspicious/noTemplateCurlyInString: environment references
import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cpuMsOf, expectBelow } from '../../../test/support/time-bound.ts'
import type { YamlEdit } from './draft.ts'
import { editYaml } from './edit.ts'
import { parseYaml, readYaml } from './yaml.ts'

function edited(text: string, ...edits: YamlEdit[]): string {
  const result = editYaml(text, edits)
  if (result.kind === 'refused') expect.fail(result.message)
  return result.text
}

function refusal(text: string, ...edits: YamlEdit[]): string {
  const result = editYaml(text, edits)
  return result.kind === 'refused' ? result.message : expect.fail(result.text)
}

const keys = ['llm', 'policies', 'apiKey', 'keys']
const file = `# yaml-language-server: $schema=../config.schema.json
# Who may call.

llm:
  policies:
    apiKey:
      mode: strict # nobody else
      # The keys.
      keys:
        # Research, until June.
        - key: \${RESEARCH_KEY}
          metadata: { name: research }

        # Demo.
        - key: 'tg demo' # rotated
          # name: old
          metadata:
            name: demo
  models:
    - name: gpt-*
`

describe('append', () => {
  it('adds to a list in the style of its items, and changes nothing else', () => {
    const value = { keyHash: 'sha256:ab', metadata: { name: 'new', teams: ['a', 'b'] } }
    expect(edited(file, { op: 'append', path: keys, value })).toBe(
      file.replace(
        '            name: demo\n',
        `            name: demo
        - keyHash: sha256:ab
          metadata:
            name: new
            teams:
              - a
              - b
`,
      ),
    )
  })

  it('follows dashes at the column of the key, wide dashes, and other indentation', () => {
    const text = 'a:\n    b:\n    -   x: 1\n'
    expect(edited(text, { op: 'append', path: ['a', 'b'], value: { x: { z: [2] } } })).toBe(
      'a:\n    b:\n    -   x: 1\n    -   x:\n            z:\n            - 2\n',
    )
  })

  it.each([
    ['a list without items', 'a: []\nb: 1\n', 'a:\n  - x\nb: 1\n'],
    ['a key without a value', 'a: # why\nb: 1\n', 'a: # why\n  - x\nb: 1\n'],
    ['a key with null', 'a: null # why\nb: 1\n', 'a: # why\n  - x\nb: 1\n'],
    ['a key that is not there', 'b: 1\n', 'b: 1\na:\n  - x\n'],
    ['a list on one line', 'a: [ y, z ] # why\n', 'a: [ y, z, x ] # why\n'],
    ['a list on one line with a comma at its end', 'a: [y, ]\n', 'a: [y, x, ]\n'],
    ['a list between brackets, a line for each', 'a: [\n  y # c\n  ]\n', 'a: [\n  y, # c\n  x\n  ]\n'],
    ['a list at the end of a file without a line break', 'a:\n- y', 'a:\n- y\n- x'],
    ['a list with CRLF', 'a:\r\n  - y\r\nb: 1\r\n', 'a:\r\n  - y\r\n  - x\r\nb: 1\r\n'],
    [
      'a list before the end of the document',
      '---\na:\n  - y\n...\n# end\n',
      '---\na:\n  - y\n  - x\n...\n# end\n',
    ],
    [
      'a list whose last item is text with its line breaks',
      'a:\n  - |+\n    y\n\nb: 1\n',
      'a:\n  - |+\n    y\n\n  - x\nb: 1\n',
    ],
    ['a list below its anchor', 'a: &list\n  - y\n', 'a: &list\n  - y\n  - x\n'],
    ['a file with a byte order mark', '\uFEFFa:\n  - y\n', '\uFEFFa:\n  - y\n  - x\n'],
  ])('adds to %s', (_, before, after) => {
    expect(edited(before, { op: 'append', path: ['a'], value: 'x' })).toBe(after)
  })
})

describe('set', () => {
  it.each([
    ['text', 'a: 1 # why\nb: 2\n', 'x y', 'a: x y # why\nb: 2\n'],
    ['text in quotes', "a: 'x' # why\n", 'z', 'a: z # why\n'],
    ['text in lines', 'a: | # why\n  x\n  y\n\nb: 2\n', 'z', 'a: z # why\n\nb: 2\n'],
    ['text by a map', 'a: 1 # why\nb: 2\n', { c: [], d: {} }, 'a: # why\n  c: []\n  d: {}\nb: 2\n'],
    ['a map by text', 'a: # why\n  c: 1\n  # d\n  d: 2 # e\n# f\nb: 2\n', 'x', 'a: x # why\n# f\nb: 2\n'],
    ['a list by a map', 'a:\n- 1\n- 2\nb: 2\n', { c: 1 }, 'a:\n  c: 1\nb: 2\n'],
    ['a map on one line by another', 'a: { b: 1 }\n', { c: 'x, y' }, "a: { c: 'x, y' }\n"],
    ['a value with an anchor that nobody uses', 'a: &x 1\n', 2, 'a: 2\n'],
    ['a value with a tag', 'a: !!str 1\n', 2, 'a: 2\n'],
    ['an alias, which leaves the anchor alone', 'x: &x 1\na: *x\n', 2, 'x: &x 1\na: 2\n'],
    ['several lines', 'a: 1\n', 'x\n\ny\n', 'a: |\n  x\n\n  y\n'],
    ['several lines, the last one open', 'a: 1 # why\n', 'x\ny', 'a: |- # why\n  x\n  y\n'],
    [
      'several lines that a comment below would join',
      'a: 1\n  # c\nb: 1\n',
      'x\ny',
      'a: "x\\ny"\n  # c\nb: 1\n',
    ],
  ])('replaces %s', (_, before, value, after) => {
    expect(edited(before, { op: 'set', path: ['a'], value })).toBe(after)
  })

  it('creates missing parents', () => {
    const text = 'a: 1\n\n# end\n'
    expect(edited(text, { op: 'set', path: ['mcp', 'targets', 0, 'name'], value: 'x' })).toBe(
      'a: 1\nmcp:\n  targets:\n    - name: x\n\n# end\n',
    )
  })

  it.each([
    ['', 'a:\n  b: 1\n'],
    ['# nothing yet\n', '# nothing yet\na:\n  b: 1\n'],
    ['# nothing yet', '# nothing yet\na:\n  b: 1'],
    ['---\n', '---\na:\n  b: 1\n'],
    ['---\n# c\n...\n', '---\n# c\na:\n  b: 1\n...\n'],
    ['{}\n', 'a:\n  b: 1\n'],
    ['# head\n{} # none\n', '# head\na:\n  b: 1\n'],
    ['null\n', 'a:\n  b: 1\n'],
  ])('begins a document: %j', (before, after) => {
    expect(edited(before, { op: 'set', path: ['a', 'b'], value: 1 })).toBe(after)
  })

  it('rewrites only differing parts: comments and references of the rest stay', () => {
    const value = { metadata: { name: 'research', user: 'ann' }, key: '${RESEARCH_KEY}' }
    expect(edited(file, { op: 'set', path: [...keys, 0], value })).toBe(
      file.replace('{ name: research }', '{ name: research, user: ann }'),
    )
  })

  it('changes nothing for an equal value', () => {
    expect(edited(file, { op: 'set', path: ['llm'], value: Object(parseYaml(file)).llm })).toBe(file)
  })

  it('matches list items by identity, so that comments stay with their item', () => {
    const text = 'a:\n  # one\n  - name: one\n  # two\n  - name: two\n    x: 1\n  # three\n  - name: three\n'
    const value = [{ name: 'two', x: 2 }, { name: 'three' }, { name: 'four' }]
    expect(edited(text, { op: 'set', path: ['a'], value })).toBe(
      'a:\n  # two\n  - name: two\n    x: 2\n  # three\n  - name: three\n  - name: four\n',
    )
  })

  it.each([
    ...[
      '1',
      '1.5',
      '-1',
      '+1',
      '1e3',
      '.5',
      '0x1f',
      '0o7',
      '0b1',
      '1_000',
      '12:30',
      '2026-01-01',
      '.inf',
      '.NaN',
      '- x',
      '-',
    ],
    ...[
      'true',
      'False',
      'yes',
      'No',
      'on',
      'off',
      'y',
      'null',
      '~',
      '',
      ' ',
      ' x',
      'x ',
      '\t',
      'a: b',
      'a:',
      ': a',
      'a #b',
      '#a',
    ],
    ...[
      '[',
      ']',
      '{',
      '}',
      ',',
      '&a',
      '*a',
      '!a',
      '|',
      '>',
      '>-',
      "'",
      '"',
      '%a',
      '@a',
      '`a',
      '?',
      '? a',
      '<<',
      '=',
      '---',
      '...',
    ],
    ...[
      'a\nb',
      '\n',
      'a\n',
      'a\n\n',
      '\na',
      ' a\nb',
      'a \nb',
      'a\r\nb',
      'a\tb',
      '\u0000',
      '\u001b[31m',
      '\u007f',
      '\u0085',
      '\u00a0',
      '\u2028',
    ],
    ...[
      '\u200b',
      '\uFEFF',
      '\uFFFE',
      '\ud800',
      '😀',
      'ключ',
      '__proto__',
      'constructor',
      '${A:-b c}',
      'it\'s "so"',
      'C:\\n',
      '\\',
    ],
  ])('reads back the text it was given: %j', readsBack)

  it('reads back long texts', () => {
    readsBack('x'.repeat(1_000_000))
    readsBack(`${'word '.repeat(500)}end`)
    readsBack('a line\n'.repeat(10_000))
  })
})

describe('remove', () => {
  it('removes the comment directly above and the trailing one, but no other', () => {
    expect(edited(file, { op: 'remove', path: [...keys, 1] })).toBe(
      file.replace(/\n {8}# Demo\.[\s\S]*?name: demo(?=\n)/, ''),
    )
  })

  it('leaves an empty list after the removal of the last item', () => {
    const twice: YamlEdit[] = [
      { op: 'remove', path: [...keys, 1] },
      { op: 'remove', path: [...keys, 0] },
    ]
    expect(edited(file, ...twice)).toBe(
      file.replace(/keys:\n {8}# Research[\s\S]*?name: demo\n/, 'keys: []\n'),
    )
  })

  it.each([
    ['the first key of an item', 'a:\n- x: 1 # c\n  # y\n  y: 2\n', ['a', 0, 'x'], 'a:\n- # y\n  y: 2\n'],
    ['the only key of an item', 'a:\n  - x:\n      y: 1\n', ['a', 0, 'x'], 'a:\n  - {}\n'],
    ['the last line of a file without a line break', 'a: 1\nb: 2', ['b'], 'a: 1'],
    ['the first line', 'a: 1\nb: 2\n', ['a'], 'b: 2\n'],
    ['the last key', '# head\na: 1\n# end\n', ['a'], '# head\n{}\n# end\n'],
    [
      'what stands below the line for editors',
      '# yaml-language-server: $schema=x\n# a\na: 1\nb: 2\n',
      ['a'],
      '# yaml-language-server: $schema=x\nb: 2\n',
    ],
    ['a line with CRLF', 'a: 1\r\nb: 2\r\nc: 3\r\n', ['b'], 'a: 1\r\nc: 3\r\n'],
    ['the first of a list on a line', 'a: [x, y, z]\n', ['a', 0], 'a: [y, z]\n'],
    ['the last of a list on a line', 'a: [ x, y, z ]\n', ['a', 2], 'a: [ x, y ]\n'],
    ['the only one of a list on a line', 'a: [ x ] # c\n', ['a', 0], 'a: [] # c\n'],
    [
      'a line between brackets',
      'a: [\n  x, # x\n  # y\n  y, # y\n  z\n]\n',
      ['a', 1],
      'a: [\n  x, # x\n  z\n]\n',
    ],
    ['the last line between brackets', '{\n  "a": 1,\n  "b": {"c": 2}\n}\n', ['b'], '{\n  "a": 1\n}\n'],
    [
      'text that looks like a comment, and nothing above it',
      'a: |\n  # x\nb: |\n  # y\nc: 1\n',
      ['b'],
      'a: |\n  # x\nc: 1\n',
    ],
    [
      'an item, but no comment of the item above',
      'a:\n- x\n  # was: y\n- z\n',
      ['a', 1],
      'a:\n- x\n  # was: y\n',
    ],
    ['an alias', 'a: &x 1\nb: *x\nc: *x\n', ['b'], 'a: &x 1\nc: *x\n'],
  ])('removes %s', (_, before, path, after) => {
    expect(edited(before, { op: 'remove', path })).toBe(after)
  })

  it('counts items after the preceding edits', () => {
    const first: YamlEdit = { op: 'remove', path: ['a', 0] }
    expect(edited('a: [1, 2, 3, 4]\n', first, first, { op: 'append', path: ['a'], value: 5 }, first)).toBe(
      'a: [4, 5]\n',
    )
  })
})

describe('editYaml', () => {
  it('retains JSON syntax', () => {
    const text = '{\n  "a": [\n    1\n  ],\n  "b": {}\n}\n'
    const after = edited(
      text,
      { op: 'append', path: ['a'], value: { x: 'yes', y: [null] } },
      { op: 'set', path: ['b', 'c'], value: 'tab\t' },
      { op: 'set', path: ['d'], value: 'é' },
    )
    expect(after).toBe(
      '{\n  "a": [\n    1,\n    {\n      "x": "yes",\n      "y": [\n        null\n      ]\n    }\n  ],\n  "b": {\n    "c": "tab\\t"\n  },\n  "d": "é"\n}\n',
    )
    expect(JSON.parse(after)).toEqual(parseYaml(after))
  })

  it.each<[string, string, YamlEdit, string]>([
    [
      'a mistake in the file',
      'a: 1\na: 2\n',
      { op: 'set', path: ['b'], value: 1 },
      'the file has a mistake at line 2, column 1: duplicate key `a`',
    ],
    [
      'two documents',
      'a: 1\n---\nb: 1\n',
      { op: 'set', path: ['b'], value: 1 },
      'more than one YAML document',
    ],
    [
      'a big number that would be rounded',
      'a: 12345678901234567890\n',
      { op: 'set', path: ['b'], value: 1 },
      'would be rounded',
    ],
    [
      'a change of an anchored value that others show',
      'a: &x { b: 1 }\nc: *x\n',
      { op: 'set', path: ['a', 'b'], value: 2 },
      'used in other places',
    ],
    [
      'the removal of such a value',
      'a: &x 1\nc: *x\n',
      { op: 'remove', path: ['a'] },
      'used in other places',
    ],
    [
      'the removal of what such a value is in',
      'a:\n  - b: &x 1\nc: *x\n',
      { op: 'remove', path: ['a', 0] },
      'used in other places',
    ],
    [
      'a change in such a value further down',
      'a: &x\n  b:\n    c: [1]\nd: *x\n',
      { op: 'append', path: ['a', 'b', 'c'], value: 2 },
      'used in other places',
    ],
    [
      'a change inside an alias',
      'a: &x { b: 1 }\nc: *x\n',
      { op: 'set', path: ['c', 'b'], value: 2 },
      'c is an alias of another value',
    ],
    [
      'a path of a list through a map',
      'a: { b: 1 }\n',
      { op: 'append', path: ['a'], value: 2 },
      'a is not a list',
    ],
    ['a path through text', 'a: x\n', { op: 'set', path: ['a', 'b'], value: 2 }, 'a is not a mapping'],
    ['the removal of nothing', 'a: [x]\n', { op: 'remove', path: ['a', 1] }, 'there is nothing at a[1]'],
    [
      'the removal of what only a prototype has',
      'a: {}\n',
      { op: 'remove', path: ['a', 'toString'] },
      'there is nothing at a.toString',
    ],
    ['a gap in a list', 'a: [x]\n', { op: 'set', path: ['a', 2], value: 1 }, 'there is nothing at a[2]'],
    ['an item before the first', 'a: [x]\n', { op: 'remove', path: ['a', -1] }, 'there is nothing at a[-1]'],
    ['the document as a whole', 'a: 1\n', { op: 'set', path: [], value: {} }, 'an edit must have a path'],
    ['a number that is none', 'a: 1\n', { op: 'set', path: ['a'], value: Number.NaN }, 'would be rounded'],
    ['a number beyond 2^53', 'a: 1\n', { op: 'set', path: ['a'], value: [2 ** 53] }, 'would be rounded'],
    ['what is no JSON', 'a: 1\n', { op: 'set', path: ['a'], value: 1n }, 'not plain JSON'],
    [
      'a key that reads differently',
      'a: 1\n',
      { op: 'set', path: ['__proto__'], value: 1 },
      '`__proto__` is not allowed',
    ],
    [
      'such a key inside',
      'a: 1\n',
      { op: 'set', path: ['a'], value: JSON.parse('{"__proto__": 1}') },
      '`__proto__` is not allowed',
    ],
    ['a merge key', 'a: 1\n', { op: 'set', path: ['a', '<<'], value: 1 }, 'a is not a mapping'],
    ['an empty key', 'a: {}\n', { op: 'set', path: ['a', ''], value: 1 }, 'a key must be text'],
    [
      'a key that is too long to be one',
      'a: {}\n',
      { op: 'set', path: ['a', 'k'.repeat(2_000)], value: 1 },
      'does not allow an edit in place',
    ],
    [
      'a change beside a key written with `?`',
      '? a\n: 1\n',
      { op: 'set', path: ['b'], value: 1 },
      'unsupported form',
    ],
  ])('refuses %s', (_, text, edit, message) => {
    expect(refusal(text, edit)).toContain(message)
  })

  it('refuses a value that is nested too deeply', () => {
    let value: unknown = 1
    for (let depth = 0; depth < 5_000; depth++) value = [value]
    expect(refusal('a: 1\n', { op: 'set', path: ['a'], value })).toContain('nested too deeply')
  })

  it('refuses a file whose aliases expand beyond the bound, without expanding them', () => {
    const lines = Array.from(
      { length: 40 },
      (_, level) => `k${level + 1}: &a${level + 1} [*a${level}, *a${level}]`,
    )
    const text = `k0: &a0 [x]\n${lines.join('\n')}\n`
    expect(refusal(text, { op: 'set', path: ['b'], value: 1 })).toContain('aliases')
  })

  it('refuses a file whose chain of aliases would overflow the stack', () => {
    const lines = Array.from({ length: 5_000 }, (_, level) => `k${level + 1}: &a${level + 1} [*a${level}]`)
    const text = `k0: &a0 [x]\n${lines.join('\n')}\n`
    expect(refusal(text, { op: 'set', path: ['b'], value: 1 })).toContain('aliases')
  })

  it('needs constant time per item for a large file on one line', { timeout: 60_000 }, async () => {
    const text = JSON.stringify({
      a: Array.from({ length: 20_000 }, (_, index) => ({ name: `n${index}`, x: { y: [1] } })),
    })
    // Two readings and little more. Looking at the whole line for each item took forty times as long.
    await expectBelow(12, () => {
      const reading = cpuMsOf(() => readYaml(text))
      return cpuMsOf(() => edited(text, { op: 'append', path: ['a'], value: 1 })) / reading
    })
  })

  it('quotes no value in a message', () => {
    expect(refusal('a: "sec\nret\n', { op: 'set', path: ['b'], value: 'hidden' })).not.toMatch(
      /sec|ret\b|hidden/,
    )
  })

  it('applies all edits or none', () => {
    const result = editYaml('a: 1\n', [
      { op: 'set', path: ['b'], value: 1 },
      { op: 'remove', path: ['c'] },
    ])
    expect(result).toEqual({ kind: 'refused', message: 'there is nothing at c' })
  })

  it('never throws, and never returns a text with another value', () => {
    const piece = fc.constantFrom(
      ...[
        'a',
        'b',
        ':',
        ': ',
        '- ',
        '\n',
        '\n  ',
        '\n    ',
        '[',
        ']',
        '{',
        '}',
        ',',
        '#c',
        ' #c',
        '&x ',
        '*x',
        '|',
        '>-',
        '"',
        "'",
        '? ',
        '!!str ',
        '---\n',
        '1',
        '\r\n',
        '\t',
        '<<',
        '%Y',
        '...\n',
      ],
    )
    const text = fc.array(piece, { maxLength: 25 }).map((pieces) => pieces.join(''))
    fc.assert(
      fc.property(
        text,
        fc.constantFrom('a', 'b', '1'),
        fc.constantFrom<YamlEdit['op']>('set', 'append', 'remove'),
        (before, key, op) => {
          const result = editYaml(before, [{ op, path: [key], value: { a: 'x' } }])
          if (result.kind === 'refused') return
          const document = Object(parseYaml(result.text))
          if (op === 'remove') expect(document).not.toHaveProperty(key)
          else expect(op === 'set' ? document[key] : document[key].at(-1)).toEqual({ a: 'x' })
        },
      ),
      { numRuns: 3_000 },
    )
  })

  const examples = fileURLToPath(new URL('../../../../examples', import.meta.url))
  it.each(globSync('*.yaml', { cwd: examples }))('adds to examples/%s and takes it out again', (name) => {
    const text = readFileSync(`${examples}/${name}`, 'utf8')
    const added = edited(
      text,
      { op: 'append', path: ['llm', 'guardrails', 'request'], value: { name: 'x' } },
      { op: 'set', path: ['fresh'], value: [1] },
    )
    expect(added.length).toBeGreaterThan(text.length)
    const before = Object(parseYaml(text)).llm
    const path =
      before === undefined
        ? ['llm']
        : before.guardrails === undefined
          ? ['llm', 'guardrails']
          : ['llm', 'guardrails', 'request', before.guardrails.request?.length ?? 0]
    expect(edited(added, { op: 'remove', path: ['fresh'] }, { op: 'remove', path })).toBe(text)
  })
})

function readsBack(value: string): void {
  for (const text of ['a: 1\n', 'a: {b: 1}\n', '{"a": [1]}\n', 'a:\n  - 1\n']) {
    expect(parseYaml(edited(text, { op: 'set', path: ['a'], value }))).toEqual({ a: value })
    expect(parseYaml(edited(text, { op: 'set', path: ['z'], value: [value, { b: value }] }))).toMatchObject({
      z: [value, { b: value }],
    })
  }
}
