import {
  backslash,
  closeBrace,
  closeBracket,
  colon,
  comma,
  isBlank,
  openBrace,
  openBracket,
  quote,
} from '../characters.ts'
import { malformed } from './rejection.ts'

/** Steps of a scan between two yields. */
export const scanSteps = 16 * 1024

/** Bytes of a long string decoded per step. */
const stringPieceBytes = 256 * 1024

/** Index of the closing quote of a string; throws if it is not closed. */
export function* endOfStringSteps(bytes: Buffer, start: number): Generator<void, number> {
  let index = start + 1
  for (let steps = 0; ; steps += 64) {
    if (steps >= scanSteps) {
      steps = 0
      yield
    }
    // Native search for strings without escapes; near escaped quotes a loop over bytes costs less.
    const end = bytes.indexOf(quote, index)
    if (end === -1) throw malformed()
    let first = end
    while (first > index && bytes[first - 1] === backslash) {
      first -= 1
      if ((end - first) % scanSteps === 0) yield
    }
    if ((end - first) % 2 === 0) return end
    const near = Math.min(end + 64, bytes.length)
    for (index = end + 1; index < near; index += 1) {
      const byte = bytes[index]
      if (byte === backslash) index += 1
      else if (byte === quote) return index
    }
  }
}

/** The value of a long string, decoded in pieces that split neither an escape nor a character. */
export function* parseStringSteps(bytes: Buffer, start: number, end: number): Generator<void, string> {
  let text = ''
  for (let from = start + 1; from < end; ) {
    const to = pieceEnd(bytes, from, end)
    try {
      text += JSON.parse(`"${bytes.toString('utf8', from, to)}"`)
    } catch {
      throw malformed()
    }
    from = to
    yield
  }
  return text
}

function pieceEnd(bytes: Buffer, from: number, end: number): number {
  let to = from + stringPieceBytes
  if (to >= end) return end
  // Not inside a multi-byte character, nor inside an escape: `\uXXXX` has six bytes.
  while (((bytes[to] ?? 0) & 0xc0) === 0x80) to -= 1
  for (let back = 1; back <= 5; back += 1) {
    const at = to - back
    if (bytes[at] !== backslash || !startsEscape(bytes, at, from)) continue
    const length = bytes[at + 1] === 0x75 ? 6 : 2
    return at + length > to ? at : to
  }
  return to
}

/** Whether a backslash starts an escape: an even number of backslashes precedes it. */
function startsEscape(bytes: Buffer, at: number, from: number): boolean {
  let first = at
  while (first > from && bytes[first - 1] === backslash) first -= 1
  return (at - first) % 2 === 0
}

export function isStructural(byte: number): boolean {
  return (
    byte === quote ||
    byte === comma ||
    byte === colon ||
    byte === openBracket ||
    byte === closeBracket ||
    byte === openBrace ||
    byte === closeBrace
  )
}

export function hasBackslash(bytes: Buffer, start: number, end: number): boolean {
  for (let index = start; index < end; index += 1) if (bytes[index] === backslash) return true
  return false
}

/** Index of the first byte at or after `start` that is not whitespace. */
export function skipBlankBytes(bytes: Buffer, start: number): number {
  let index = start
  while (isBlank(bytes[index])) index += 1
  return index
}

export function isBlankRange(bytes: Buffer, start: number, end: number): boolean {
  for (let index = start; index < end; index += 1) if (!isBlank(bytes[index])) return false
  return true
}
