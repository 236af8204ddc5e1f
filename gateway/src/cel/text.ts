import { Failure } from './failure.ts'
import { isInt, noOverload } from './values.ts'

/** A method of strings, or of lists of strings, that both engines share. */
export type TextMethod = {
  readonly name: string
  readonly target: 'string' | 'list'
  readonly args: readonly ('string' | 'int')[]
  /** Takes loaded values of any type; answers a value or a Failure. */
  readonly apply: (target: unknown, args: readonly unknown[]) => unknown
}

/**
 * Common methods of CEL's strings extension, and `stripPrefix` and `stripSuffix` of the reference product. The library
 * has most of them, but it counts UTF-16 units instead of code points and drops the rest of a limited split.
 */
export const textMethods: readonly TextMethod[] = [
  onText('lowerAscii', [], (text) => text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())),
  onText('upperAscii', [], (text) => text.replace(/[a-z]+/g, (letters) => letters.toUpperCase())),
  onText('trim', [], trim),
  onText('substring', ['int'], (text, _, [start = 0]) => substring(text, start, undefined)),
  onText('substring', ['int', 'int'], (text, _, [start = 0, end]) => substring(text, start, end)),
  onText('split', ['string'], (text, [separator = '']) => split(text, separator, -1)),
  onText('split', ['string', 'int'], (text, [separator = ''], [limit = 0]) => split(text, separator, limit)),
  onText('replace', ['string', 'string'], (text, [old = '', fresh = '']) =>
    text.replaceAll(old, () => fresh),
  ),
  onText('replace', ['string', 'string', 'int'], (text, [old = '', fresh = ''], [limit = 0]) =>
    limit < 0 ? text.replaceAll(old, () => fresh) : replaceSome(text, { old, fresh, limit }),
  ),
  onText('stripPrefix', ['string'], (text, [prefix = '']) =>
    text.startsWith(prefix) ? text.slice(prefix.length) : text,
  ),
  onText('stripSuffix', ['string'], (text, [suffix = '']) =>
    text.endsWith(suffix) ? text.slice(0, text.length - suffix.length) : text,
  ),
  { name: 'join', target: 'list', args: [], apply: (list) => join(list, '') },
  { name: 'join', target: 'list', args: ['string'], apply: (list, [separator]) => join(list, separator) },
]

function onText(
  name: string,
  args: TextMethod['args'],
  method: (text: string, texts: string[], numbers: number[]) => unknown,
): TextMethod {
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

/** White space as Unicode defines it, which is not quite JavaScript's. */
const space = /[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/

function trim(text: string): string {
  let start = 0
  let end = text.length
  while (start < end && space.test(text.charAt(start))) start += 1
  while (end > start && space.test(text.charAt(end - 1))) end -= 1
  return text.slice(start, end)
}

function substring(text: string, start: number, end: number | undefined): unknown {
  const points = /[\ud800-\udfff]/.test(text) ? [...text] : text
  const last = end ?? points.length
  if (start < 0 || last > points.length || start > last) return new Failure('substring() out of range')
  const part = points.slice(start, last)
  return typeof part === 'string' ? part : part.join('')
}

/** A limit of n yields at most n parts, the last one holding the rest; a negative one yields all. */
function split(text: string, separator: string, limit: number): string[] {
  const parts = separator === '' ? [...text] : text.split(separator)
  if (limit < 0 || parts.length <= limit) return parts
  if (limit === 0) return []
  return [...parts.slice(0, limit - 1), parts.slice(limit - 1).join(separator)]
}

function replaceSome(
  text: string,
  { old, fresh, limit }: { old: string; fresh: string; limit: number },
): string {
  let left = limit
  return text.replaceAll(old, (found) => {
    left -= 1
    return left < 0 ? found : fresh
  })
}

function join(list: unknown, separator: unknown): unknown {
  if (!Array.isArray(list) || typeof separator !== 'string') return noOverload('join', list, separator)
  const isText = list.every((item) => typeof item === 'string')
  return isText ? list.join(separator) : new Failure('join() of a list that holds more than strings')
}
