import type { Headers } from './headers.ts'

/**
 * Media type of a body: JSON in UTF-8, a type that ends in `+json`, JSON in another charset, none, or another
 * type.
 */
export type JsonMediaType = 'json' | 'suffix' | 'charset' | 'absent' | 'other'

/**
 * Reads `content-type`. RFC 8259 section 8.1 allows UTF-8 only and defines no `charset`; some servers apply
 * one nevertheless, and would read a text that differs from the checked one.
 */
export function readJsonMediaType({ 'content-type': contentType }: Headers): JsonMediaType {
  if (contentType === 'application/json') return 'json'
  if (contentType === undefined) return 'absent'
  if (typeof contentType !== 'string') return 'other'
  const [type = '', ...parameters] = contentType.toLowerCase().split(';')
  const name = type.trim()
  const isSuffix = name.startsWith('application/') && name.endsWith('+json')
  if (name !== 'application/json' && !isSuffix) return 'other'
  if (!parameters.every(isUtf8OrOther)) return 'charset'
  return isSuffix ? 'suffix' : 'json'
}

/** Extended parameters (`charset*`, RFC 8187) are rejected too. */
function isUtf8OrOther(parameter: string): boolean {
  if (!parameter.trim().startsWith('charset')) return true
  return /^\s*charset\s*=\s*(?:utf-?8|"utf-?8")\s*$/.test(parameter)
}
