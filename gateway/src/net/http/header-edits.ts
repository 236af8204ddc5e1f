import { isToken } from '../../lib/http-token.ts'
import { type Headers, isHopByHop } from './headers.ts'

/** Change of a header field. `name` is in lower case; several values are several field lines. */
export type HeaderEdit =
  | { readonly kind: 'set' | 'append'; readonly name: string; readonly value: string | string[] }
  | { readonly kind: 'remove'; readonly name: string }

/**
 * RFC 9110 section 5.5. Characters beyond one byte cannot be sent, a line break would start another field,
 * and HTTP/2 permits no leading or trailing whitespace.
 */
const fieldValue = /^[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?$|^$/

/** Whether a text can be sent as the value of a field. */
export function isHeaderValue(text: string): boolean {
  return fieldValue.test(text)
}

/**
 * Whether a text is a value of visible ASCII characters with spaces inside, as nearly all are. A loop takes a
 * third of the time of the pattern for texts of this length.
 */
export function isPlainHeaderValue(text: string): boolean {
  const end = text.length - 1
  if (end < 0 || end >= maxPlainLength) return false
  if (text.charCodeAt(0) === space || text.charCodeAt(end) === space) return false
  for (let index = 0; index <= end; index += 1) {
    const code = text.charCodeAt(index)
    if (code < space || code > lastVisible) return false
  }
  return true
}

const maxPlainLength = 128
const space = 0x20
const lastVisible = 0x7e

/** Fields derived from the body or the connection, generated for each message. */
const derived: ReadonlySet<string> = new Set(['content-length', 'expect', 'host'])

/** Whether a field is generated for each message: framing, connection and `host`. */
export function isDerivedHeader(name: string): boolean {
  return derived.has(name) || isHopByHop(name)
}

/** Whether a text is the name of a field that edits may change, in lower case. */
export function isEditableHeader(name: string): boolean {
  return isToken(name) && name !== '__proto__' && name === name.toLowerCase() && !isDerivedHeader(name)
}

/** Applies edits in order, in place. The names must be editable and the values valid. */
export function applyHeaderEdits(headers: Headers, edits: readonly HeaderEdit[]): void {
  for (const edit of edits) {
    if (edit.kind === 'set') headers[edit.name] = edit.value
    else if (edit.kind === 'append') appendHeader(headers, edit.name, edit.value)
    else if (headers[edit.name] !== undefined) delete headers[edit.name]
  }
}

/**
 * Joins values with commas, except for fields with other rules (RFC 9110 section 5.3). The Gateway API
 * conformance suite requires a comma without a space.
 */
export function appendHeader(headers: Headers, name: string, value: string | string[]): void {
  const present = Object.hasOwn(headers, name) ? headers[name] : undefined
  if (present === undefined) headers[name] = value
  else if (name === 'set-cookie' || typeof present === 'object') headers[name] = [present, value].flat()
  else headers[name] = [present, value].flat().join(name === 'cookie' ? '; ' : ',')
}
