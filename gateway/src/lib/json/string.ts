import { backslash, isBlank } from './characters.ts'

/**
 * Index of the closing quote of the JSON string that starts at `start`; the length of the text if it is not
 * closed.
 */
export function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1)
  while (end !== -1) {
    if (text.charCodeAt(end - 1) !== backslash) return end
    let first = end - 1
    while (first > start && text.charCodeAt(first) === backslash) first -= 1
    // An even number of backslashes are escaped backslashes: the quote is not escaped.
    if ((end - 1 - first) % 2 === 0) return end
    end = text.indexOf('"', end + 1)
  }
  return text.length
}

/** Index of the first character at or after `start` that is not whitespace. */
export function skipBlanks(text: string, start: number): number {
  let index = start
  while (isBlank(text.charCodeAt(index))) index += 1
  return index
}
