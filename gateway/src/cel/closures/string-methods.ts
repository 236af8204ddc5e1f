import { Failure } from '../failure.ts'
import { spendWork } from '../work-budget.ts'
import { isInt } from './representation.ts'
import { noOverload } from './values.ts'

/** Method of strings, or of lists of strings, in both engines. */
export type StringMethod = {
  readonly name: string
  readonly target: 'string' | 'list'
  readonly args: readonly ('string' | 'int')[]
  /** Receives loaded values of any type; returns a value or a Failure. */
  readonly apply: (target: unknown, args: readonly unknown[]) => unknown
}

/**
 * Methods of CEL's strings extension, and `stripPrefix` and `stripSuffix` of the reference product. The
 * library counts UTF-16 units instead of code points, and drops the remainder of a limited split.
 */
export const stringMethods: readonly StringMethod[] = [
  stringMethod('lowerAscii', [], (text) => changeCase(text, 'A', (ascii) => ascii.toLowerCase())),
  stringMethod('upperAscii', [], (text) => changeCase(text, 'a', (ascii) => ascii.toUpperCase())),
  stringMethod('trim', [], trim),
  stringMethod('substring', ['int'], (text, _, [start = 0]) => substring(text, start, undefined)),
  stringMethod('substring', ['int', 'int'], (text, _, [start = 0, end]) => substring(text, start, end)),
  stringMethod('split', ['string'], (text, [separator = '']) => split(text, separator, -1)),
  stringMethod('split', ['string', 'int'], (text, [separator = ''], [limit = 0]) =>
    split(text, separator, limit),
  ),
  stringMethod('replace', ['string', 'string'], (text, [old = '', fresh = '']) =>
    replaceSome(text, { old, fresh, limit: -1 }),
  ),
  stringMethod('replace', ['string', 'string', 'int'], (text, [old = '', fresh = ''], [limit = 0]) =>
    replaceSome(text, { old, fresh, limit }),
  ),
  stringMethod('stripPrefix', ['string'], (text, [prefix = '']) =>
    text.startsWith(prefix) ? text.slice(prefix.length) : text,
  ),
  stringMethod('stripSuffix', ['string'], (text, [suffix = '']) =>
    text.endsWith(suffix) ? text.slice(0, text.length - suffix.length) : text,
  ),
  { name: 'join', target: 'list', args: [], apply: (list) => join(list, '') },
  { name: 'join', target: 'list', args: ['string'], apply: (list, [separator]) => join(list, separator) },
]

/** Creates a method of strings. `method` receives the arguments by type, and returns a value or a Failure. */
export function stringMethod(
  name: string,
  args: StringMethod['args'],
  method: (text: string, texts: string[], numbers: number[]) => unknown,
): StringMethod {
  return {
    name,
    target: 'string',
    args,
    apply(target, values) {
      const fits = values.length === args.length && args.every((type, index) => isOf(type, values[index]))
      if (typeof target !== 'string' || !fits) return noOverload(name, target, ...values)
      return method(
        target,
        values.filter((value) => typeof value === 'string'),
        values.filter(isInt).map(Number),
      )
    },
  }
}

function isOf(type: 'string' | 'int', value: unknown): boolean {
  return type === 'string' ? typeof value === 'string' : isInt(value)
}

/** Changes the case of ASCII letters only; JavaScript also changes other letters of the text. */
function changeCase(text: string, first: 'A' | 'a', change: (ascii: string) => string): string {
  spendWork(text.length * 2)
  if (!/[^\0-\x7f]/.test(text)) return change(text)
  spendWork(text.length * 12)
  const from = first.charCodeAt(0)
  const bytes = Buffer.from(text, 'utf16le')
  for (let index = 0; index < bytes.length; index += 2) {
    const code = bytes[index] ?? 0
    if (bytes[index + 1] === 0 && code >= from && code < from + 26) bytes[index] = code ^ 32
  }
  return bytes.toString('utf16le')
}

/** Unicode white space, which differs from JavaScript's `\s`. */
const space = /[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/

function trim(text: string): string {
  if (!space.test(text.charAt(0)) && !space.test(text.charAt(text.length - 1))) return text
  let start = 0
  let end = text.length
  while (start < end && space.test(text.charAt(start))) {
    spendWork(40)
    start += 1
  }
  while (end > start && space.test(text.charAt(end - 1))) {
    spendWork(40)
    end -= 1
  }
  return text.slice(start, end)
}

function substring(text: string, start: number, end: number | undefined): unknown {
  spendWork(text.length * 40)
  const points = /[\ud800-\udfff]/.test(text) ? [...text] : text
  const last = end ?? points.length
  if (start < 0 || last > points.length || start > last) return new Failure('substring() out of range')
  const part = points.slice(start, last)
  return typeof part === 'string' ? part : part.join('')
}

/**
 * Splits a text into at most `limit` parts; the last one contains the remainder. A negative limit means all
 * parts.
 */
function split(text: string, separator: string, limit: number): string[] {
  spendWork(text.length * (2 + 40 / Math.max(1, separator.length)))
  const parts = separator === '' ? [...text] : text.split(separator)
  if (limit < 0 || parts.length <= limit) return parts
  if (limit === 0) return []
  return [...parts.slice(0, limit - 1), parts.slice(limit - 1).join(separator)]
}

function replaceSome(
  text: string,
  { old, fresh, limit }: { old: string; fresh: string; limit: number },
): string {
  const mostParts = text.length / Math.max(1, old.length) + 1
  spendWork(text.length * 2 + mostParts * 200)
  // The result may be far longer than the operands.
  if (fresh.length > old.length) spendWork((mostParts * fresh.length) / 4)
  let left = limit < 0 ? Number.POSITIVE_INFINITY : limit
  return text.replaceAll(old, (found) => {
    left -= 1
    return left < 0 ? found : fresh
  })
}

function join(list: unknown, separator: unknown): unknown {
  if (!Array.isArray(list) || typeof separator !== 'string') return noOverload('join', list, separator)
  spendWork(list.length * (30 + separator.length))
  const isText = list.every((item) => typeof item === 'string')
  if (isText) spendWork(list.reduce((sum, { length }) => sum + length, 0))
  return isText ? list.join(separator) : new Failure('join() requires a list of strings')
}
