import type { JsonValue } from '../../../../lib/json/json.ts'

const maxLength = 80

/**
 * Sanitizes the name of a client for display: one line, without invisible characters, characters that change
 * the display of other text, or stacked combining marks.
 */
export function displayName(value: JsonValue | undefined): string | undefined {
  if (typeof value !== 'string') return undefined
  const plain = value
    .toWellFormed()
    .replace(/[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}]+/gu, ' ')
    .replace(/(\p{M}{3})\p{M}+/gu, '$1')
    .trim()
  const short = [...plain].slice(0, maxLength).join('')
  return short === '' ? undefined : short
}
