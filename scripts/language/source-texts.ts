import { scan, type Token } from './scan.ts'
import { cut, lineAt, type Text, without, withoutCode } from './text.ts'

/** English in a source file of TypeScript or JavaScript. */
export type SourceTexts = { comments: Text[]; messages: Text[]; testNames: Text[]; wideComments: number[] }

/**
 * Comments, messages and test names of a source text. Line comments on consecutive lines are one text.
 * Messages are string and template literals with at least two spaces; test names are first arguments of `it`,
 * `test` and `describe`. `wideComments` lists the lines with a comment that end after `lineWidth` columns,
 * except those with a URL.
 */
export function readSourceTexts(path: string, source: string, lineWidth: number): SourceTexts {
  const tokens = scan(source)
  const comments = tokens.filter(({ kind }) => kind === 'comment')
  return {
    comments: joinLines(source, comments).map((range) => commentText(path, source, range)),
    messages: tokens.filter((token) => isMessage(token)).map((token) => literalText(path, source, token)),
    testNames: testNames(tokens).map((token) => literalText(path, source, token)),
    wideComments: wideLines(source, comments, lineWidth),
  }
}

function isMessage(token: Token): boolean {
  if (token.kind !== 'string' && token.kind !== 'template') return false
  return staticText(token).split(' ').length > 2
}

function staticText({ text, start, substitutions = [] }: Token): string {
  const starts = [start, ...substitutions.map((range) => range.end)]
  const ends = [...substitutions.map((range) => range.start), start + text.length]
  return starts.map((from, index) => text.slice(from - start, (ends[index] ?? from) - start)).join('')
}

function literalText(path: string, source: string, token: Token): Text {
  const found = cut(path, source, token, token.substitutions)
  const unquoted = ` ${found.text.slice(1, -1)} `
  return {
    ...found,
    text: withoutCode(unquoted.replace(/\\(.)/g, (_, next) => (/\w/.test(next) ? '  ' : ` ${next}`))),
  }
}

function commentText(path: string, source: string, range: { start: number; end: number }): Text {
  const found = cut(path, source, range)
  const plain = [/^[ \t]*(?:\/\/+|\/\*+|\*(?!\/))/gm, /\*\/$/g, /```[\s\S]*?```/g].reduce(without, found.text)
  return { ...found, text: withoutCode(plain) }
}

/** The ranges of comments, those on consecutive lines joined. */
function joinLines(source: string, comments: readonly Token[]): { start: number; end: number }[] {
  const joined: { start: number; end: number }[] = []
  for (const { start, end, text } of comments) {
    const last = joined.at(-1)
    const isNext = last !== undefined && /^[ \t]*\n[ \t]*$/.test(source.slice(last.end, start))
    if (last !== undefined && isNext && text.startsWith('//')) last.end = end
    else joined.push({ start, end })
  }
  return joined
}

function wideLines(source: string, comments: readonly Token[], lineWidth: number): number[] {
  const lines = source.split('\n')
  const isWide = (number: number): boolean => {
    const line = lines[number - 1] ?? ''
    return line.length > lineWidth && !/\w:\/\//.test(line)
  }
  const numbers = comments.flatMap(({ start, text }) => {
    const first = lineAt(source, start)
    return text.split('\n').map((_, index) => first + index)
  })
  return [...new Set(numbers)].filter(isWide)
}

/** Literals that name tests: `it('…')`, `it.each(rows)('…')`, `describe.skipIf(condition)('…')`. */
function testNames(all: readonly Token[]): Token[] {
  const tokens = all.filter(({ kind }) => kind !== 'comment')
  return tokens.flatMap((token, index) => {
    const isCall = token.kind === 'word' && ['it', 'test', 'describe'].includes(token.text)
    if (!isCall || tokens[index - 1]?.text === '.') return []
    const name = tokens[firstArgument(tokens, index + 1)]
    return name?.kind === 'string' || name?.kind === 'template' ? [name] : []
  })
}

/** The index of the first argument of the call whose modifiers start at `from`; -1 where there is no call. */
function firstArgument(tokens: readonly Token[], from: number): number {
  let index = from
  let modifier = ''
  while (tokens[index]?.text === '.') {
    modifier = tokens[index + 1]?.text ?? ''
    index += 2
  }
  if (tokens[index]?.text === '<') index = skipGroup(tokens, index)
  if (['each', 'for', 'skipIf', 'runIf'].includes(modifier)) index = skipGroup(tokens, index)
  return tokens[index]?.text === '(' ? index + 1 : -1
}

const closing: Record<string, string> = { '(': ')', '<': '>' }

/** The index after the bracket that closes the one at `from`. */
function skipGroup(tokens: readonly Token[], from: number): number {
  const open = tokens[from]?.text ?? ''
  const close = closing[open]
  let depth = 0
  for (let index = from; index < tokens.length; index += 1) {
    const { kind, text } = tokens[index] ?? { kind: 'punctuator', text: '' }
    if (kind !== 'punctuator') continue
    if (text === open) depth += 1
    else if (text === close) depth -= 1
    if (depth === 0) return index + 1
  }
  return tokens.length
}
