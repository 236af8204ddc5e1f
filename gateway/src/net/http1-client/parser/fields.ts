import type { Headers } from '../../http/headers.ts'
import { malformed, tooLarge, type Violation } from './violation.ts'

/** Maximum number of field lines of a head or a trailer section. */
export const maxFields = 1_000

const lowerCase = 1
const upperCase = 2

/** Characters of a token (RFC 9110 section 5.6.2); 0 for all others. */
const tokenCharacters = createTokenCharacters()

function createTokenCharacters(): Uint8Array {
  const kinds = new Uint8Array(256)
  for (const character of "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz")
    kinds[character.charCodeAt(0)] = lowerCase
  for (const character of 'ABCDEFGHIJKLMNOPQRSTUVWXYZ') kinds[character.charCodeAt(0)] = upperCase
  return kinds
}

/** Whether a byte is a character of a token. */
export function isTokenByte(byte: number): boolean {
  return tokenCharacters[byte] !== 0
}

/**
 * Adds the field lines of `text` from position `from` to `headers`. Each line ends with CRLF. Names become
 * lower case, values lose surrounding blanks; a repeated name becomes a list. Obsolete line folding, blanks
 * before the colon, and bare CR or LF are violations (RFC 9112 sections 2.2 and 5).
 */
export function readFields(text: string, from: number, headers: Headers): Violation | undefined {
  let at = from
  let count = 0
  while (at < text.length) {
    let nameEnd = at
    let kinds = 0
    for (;;) {
      const kind = tokenCharacters[text.charCodeAt(nameEnd)]
      if (kind === undefined || kind === 0) break
      kinds |= kind
      nameEnd += 1
    }
    if (nameEnd === at || text.charCodeAt(nameEnd) !== 0x3a) return malformed('invalid field name')
    const lineEnd = textEnd(text, nameEnd + 1)
    if (lineEnd === -1) return malformed('invalid field value')
    count += 1
    if (count > maxFields) return tooLarge(`more than ${maxFields} fields`)
    const name = text.slice(at, nameEnd)
    addField(headers, kinds < upperCase ? name : name.toLowerCase(), trimBlanks(text, nameEnd + 1, lineEnd))
    at = lineEnd + 2
  }
  return undefined
}

/**
 * Position of the CRLF behind visible characters, blanks and obs-text (RFC 9110 section 5.5) from `from`; -1
 * at any other character.
 */
export function textEnd(text: string, from: number): number {
  for (let at = from; ; at++) {
    const code = text.charCodeAt(at)
    if ((code >= 0x20 && code !== 0x7f) || code === 0x09) continue
    return code === 0x0d && text.charCodeAt(at + 1) === 0x0a ? at : -1
  }
}

function trimBlanks(text: string, from: number, to: number): string {
  let start = from
  let end = to
  while (start < end && isBlank(text.charCodeAt(start))) start += 1
  while (end > start && isBlank(text.charCodeAt(end - 1))) end -= 1
  return text.slice(start, end)
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09
}

function addField(headers: Headers, name: string, value: string): void {
  const present = headers[name]
  if (present === undefined) headers[name] = value
  else if (typeof present === 'string') headers[name] = [present, value]
  else if (Object.hasOwn(headers, name)) present.push(value)
  // A name of the prototype of objects (`constructor`, `__proto__`).
  else Object.defineProperty(headers, name, { value, enumerable: true, configurable: true, writable: true })
}
