import type { JsonValue } from '../../../../lib/json/json.ts'

const maxLength = 80

/**
 * A client's name for itself, fit to be shown: one line, without characters that change how other text is displayed, are invisible, or
 * pile up over the lines above and below.
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
