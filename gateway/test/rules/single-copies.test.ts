import { describe, expect, it } from 'vitest'
import { isTest, readSources, type Sources } from './sources.ts'

// Code that was once copied in many files has one owner. The owner is the only file of gateway/src that may
// contain the pattern.

/** `except` is a file that cannot import the owner. */
type Rule = { name: string; pattern: RegExp; except?: RegExp }

const rules: Rule[] = [
  {
    name: 'the callback that reports an issue',
    pattern: /\(\s*path: Path,\s*message: string,?\s*\) => void/g,
  },
  { name: 'a type called Report', pattern: /\btype Report = /g },
  {
    name: 'the token grammar of RFC 9110',
    pattern: /\[(?=[^\]\n]*#\$%&'\*\+)(?=[^\]\n]*\^_`\|~)[^\]\n]*\]/g,
  },
  {
    name: 'the message of a caught value',
    pattern: /\b(\w+) instanceof Error\s*\?\s*\1\.message\s*:\s*String\(/g,
    // TEMPORARY: the text of the SQLite thread imports nothing. Remove once the thread is a module.
    except: /\bsqlite[/-]thread\.ts$/,
  },
  { name: 'the test for an event stream', pattern: /\b(?:function|const) isEventStream\b/g },
  { name: 'the value at a path', pattern: /\bfunction valueAt\(\w+: unknown\b/g },
]

/** Every occurrence of a pattern that has more than one. */
function copies(sources: Sources): string[] {
  return rules.flatMap(({ name, pattern, except }) => {
    const found = [...sources]
      .filter(([path]) => !isTest(path) && except?.test(path) !== true)
      .flatMap(([path, text]) =>
        [...text.matchAll(pattern)].map(({ index }) => `${path}:${lineAt(text, index)}`),
      )
    return found.length > 1 ? [`${name}: ${found.join(', ')}`] : []
  })
}

function lineAt(text: string, index: number): number {
  return text.slice(0, index).split('\n').length
}

function planted(files: Record<string, string>): string[] {
  return copies(new Map(Object.entries(files)))
}

describe('the source', () => {
  it('has one copy of each', () => {
    expect(copies(readSources('gateway/src'))).toEqual([])
  })
})

describe('the rules of single copies', () => {
  it.each([
    ['an issue callback', 'type A = (path: Path, message: string) => void'],
    ['an issue callback on several lines', 'f: (\n  path: Path,\n  message: string,\n) => void'],
    ['a Report', 'type Report = () => void'],
    ['a token', "/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/"],
    ['a token in another order', "/[A-Za-z0-9!#$%&'*+\\-.^_`|~]/"],
    ['a message', 'return error instanceof Error ? error.message : String(error)'],
    ['a message on several lines', 'cause instanceof Error\n    ? cause.message\n    : String(cause)'],
    ['an event stream', 'export function isEventStream() {}'],
    ['a value at a path', 'function valueAt(tree: unknown, path: Path) {}'],
  ])('report %s in a second file', (_, text) => {
    expect(planted({ 'a.ts': text, 'a.test.ts': text })).toEqual([])
    expect(planted({ 'a.ts': `\n${text}`, 'b/c.ts': text })).toEqual([
      expect.stringMatching(/: a\.ts:2, b\/c\.ts:1$/),
    ])
  })

  it('report a second copy in one file', () => {
    expect(planted({ 'a.ts': 'type Report = A\ntype Report = B' })).toHaveLength(1)
  })
})
