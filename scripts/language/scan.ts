/** A token of TypeScript or JavaScript. `start` and `end` are offsets in the source. */
export type Token = {
  kind: 'comment' | 'string' | 'template' | 'regex' | 'number' | 'word' | 'punctuator'
  start: number
  end: number
  text: string
  /** Templates: the offsets of their substitutions, `${` and `}` included. */
  substitutions?: readonly { start: number; end: number }[]
}

const patterns = {
  space: /\s+/y,
  comment: /\/\/[^\n]*|\/\*[\s\S]*?\*\/|#![^\n]*/y,
  string: /'(?:[^'\\\n]|\\[\s\S])*'|"(?:[^"\\\n]|\\[\s\S])*"/y,
  regex: /\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/y,
  number: /\d[\w.]*|\.\d\w*/y,
  word: /(?:[A-Za-z_$#@\u0080-\uffff]|\\u[\da-f]{4})(?:[\w$\u0080-\uffff]|\\u[\da-f]{4})*/iy,
  punctuator: /=>|\+\+|--|[\s\S]/y,
}

/** Words that an expression may follow, so that a slash after them starts a regular expression. */
const prefixWords = new Set(
  'await case delete do else extends in instanceof new of return throw typeof void yield'.split(' '),
)
const conditionWords = new Set(['if', 'while', 'for', 'with'])

/**
 * Tokens of a source text, in the order of their starts: comments, strings, templates, regular expressions,
 * numbers, words and punctuators. The tokens inside template substitutions follow the template. Types and JSX
 * get no treatment of their own. A slash after `}` is read as the start of a regular expression (ECMA-262,
 * section 12.9.5 leaves it to the parser).
 */
export function scan(source: string): Token[] {
  return scanCode(source, 0, 'file').tokens
}

type Scanned = { tokens: Token[]; end: number }

function scanCode(source: string, from: number, until: 'file' | 'brace'): Scanned {
  const tokens: Token[] = []
  const significant: Token[] = []
  const open: { bracket: string; isCondition: boolean }[] = []
  let afterCondition = false
  let position = from
  while (position < source.length) {
    position += match(patterns.space, source, position)?.length ?? 0
    if (position >= source.length) break
    if (until === 'brace' && source[position] === '}' && open.length === 0) break
    const nested = source[position] === '`' ? scanTemplate(source, position) : undefined
    const isRegexNext = isExpressionStart(significant, afterCondition)
    const added = nested?.tokens ?? [readToken(source, position, isRegexNext)]
    const [first] = added
    if (first === undefined) break
    tokens.push(...added)
    position = nested?.end ?? first.end
    if (first.kind === 'comment') continue
    afterCondition = false
    if (first.kind === 'punctuator' && '([{'.includes(first.text)) {
      const before = significant.at(-1)
      open.push({ bracket: first.text, isCondition: before !== undefined && conditionWords.has(before.text) })
    } else if (first.kind === 'punctuator' && ')]}'.includes(first.text)) {
      afterCondition = open.pop()?.isCondition === true
    }
    significant.push(first)
  }
  return { tokens, end: position }
}

/** The template that starts at an offset, then the tokens inside its substitutions. */
function scanTemplate(source: string, start: number): Scanned {
  const inner: Token[] = []
  const substitutions: { start: number; end: number }[] = []
  let position = start + 1
  while (position < source.length && source[position] !== '`') {
    if (source[position] === '\\') position += 2
    else if (source.startsWith('${', position)) {
      const { tokens, end } = scanCode(source, position + 2, 'brace')
      inner.push(...tokens)
      substitutions.push({ start: position, end: end + 1 })
      position = end + 1
    } else position += 1
  }
  const end = Math.min(position + 1, source.length)
  return {
    tokens: [{ kind: 'template', start, end, text: source.slice(start, end), substitutions }, ...inner],
    end,
  }
}

function readToken(source: string, start: number, isRegexNext: boolean): Token {
  for (const kind of ['comment', 'string', 'regex', 'number', 'word', 'punctuator'] as const) {
    if (kind === 'regex' && !isRegexNext) continue
    // A hash starts a comment only at the start of the file, and a private name elsewhere.
    if (kind === 'comment' && source[start] === '#' && start > 0) continue
    const text = match(patterns[kind], source, start)
    if (text !== undefined) return { kind, start, end: start + text.length, text }
  }
  return { kind: 'punctuator', start, end: start + 1, text: source.charAt(start) }
}

/** Whether an expression, and not an operator, comes after these tokens. */
function isExpressionStart(before: readonly Token[], afterCondition: boolean): boolean {
  const last = before.at(-1)
  if (last === undefined) return true
  if (last.kind === 'word') return prefixWords.has(last.text) && before.at(-2)?.text !== '.'
  if (last.kind !== 'punctuator') return false
  if (last.text === ')') return afterCondition
  return ![']', '++', '--'].includes(last.text)
}

function match(pattern: RegExp, source: string, start: number): string | undefined {
  pattern.lastIndex = start
  return pattern.exec(source)?.[0]
}
