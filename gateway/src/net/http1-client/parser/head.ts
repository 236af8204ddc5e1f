import type { Headers } from '../../http/headers.ts'
import { readFields, textEnd } from './fields.ts'
import { malformed, type Violation } from './violation.ts'

/** Properties of a request that determine the body of its response (RFC 9112 section 6.3). */
export type RequestFacts = {
  readonly method: string
  /** The request offers another protocol, so that 101 is permitted. */
  readonly upgrade: boolean
}

export type ResponseHead = {
  readonly kind: 'head'
  readonly status: number
  readonly headers: Headers
  /** Length of the body in bytes, `chunked` or `untilClose`. */
  readonly length: number
  /** The connection may serve another request after the body. */
  readonly persistent: boolean
}

/** Values of `ResponseHead.length` without a known length. */
export const chunked = -1
export const untilClose = -2

/** Digits of a content-length: at most 999 terabytes. */
const maxLengthDigits = 15

/** llhttp does not remove a tab behind the coding, and reads such a body until the connection closes. */
const codingWithTab = /\ntransfer-encoding:[^\r]*\t/i

/** Parses a status line and its fields. `text` ends with the CRLF of the last line. */
export function parseHead(text: string, request: RequestFacts): ResponseHead | Violation {
  const isHttp11 = text.startsWith('HTTP/1.1 ')
  if (!isHttp11 && !text.startsWith('HTTP/1.0 ')) return malformed('invalid status line')
  const status = statusOf(text)
  const lineEnd = status === -1 ? -1 : reasonEnd(text)
  if (lineEnd === -1) return malformed('invalid status line')
  const headers: Headers = {}
  const violation = readFields(text, lineEnd + 2, headers)
  if (violation !== undefined) return violation
  const length = bodyLength(headers, isHttp11, text)
  if (typeof length !== 'number') return length
  if (status === 101 && !isSwitch(headers, request)) return malformed('unexpected protocol upgrade')
  if (status < 200 && status !== 101 && !isPersistent(headers, isHttp11)) {
    return malformed('informational response closes the connection')
  }
  if (status < 200 && (length > 0 || length === chunked))
    return malformed('informational response with a body')
  if (request.method === 'HEAD' || status === 304 || status === 204 || status < 200) {
    // The server may send the announced body regardless, which would then be parsed as the next response.
    const announcesBody = length > 0 || length === chunked
    const persistent = isPersistent(headers, isHttp11) && !(announcesBody && request.method !== 'HEAD')
    return { kind: 'head', status, headers, length: 0, persistent }
  }
  const persistent = length !== untilClose && isPersistent(headers, isHttp11)
  return { kind: 'head', status, headers, length, persistent }
}

/** Three digits (RFC 9112 section 4); -1 for others. */
function statusOf(text: string): number {
  const hundreds = text.charCodeAt(9) - 0x30
  const tens = text.charCodeAt(10) - 0x30
  const ones = text.charCodeAt(11) - 0x30
  const isValid = hundreds >= 1 && hundreds <= 9 && tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9
  return isValid ? hundreds * 100 + tens * 10 + ones : -1
}

/**
 * Position of the CRLF of the status line. Servers without a reason phrase often omit the space before it.
 */
function reasonEnd(text: string): number {
  const code = text.charCodeAt(12)
  return code === 0x20 || code === 0x0d ? textEnd(text, 12) : -1
}

/**
 * RFC 9112 section 6.3. Everything that two recipients may interpret differently is a violation: both
 * lengths, a repeated or listed content-length, other transfer codings, transfer codings in HTTP/1.0.
 */
function bodyLength(headers: Headers, isHttp11: boolean, text: string): number | Violation {
  const length = headers['content-length']
  const coding = headers['transfer-encoding']
  if (coding !== undefined) {
    if (length !== undefined) return malformed('content-length with transfer-encoding')
    if (!isHttp11) return malformed('transfer-encoding in HTTP/1.0')
    if (typeof coding !== 'string' || (coding !== 'chunked' && coding.toLowerCase() !== 'chunked'))
      return malformed('unsupported transfer-encoding')
    if (codingWithTab.test(text)) return malformed('tab in transfer-encoding')
    return chunked
  }
  if (length === undefined) return untilClose
  return typeof length === 'string' ? decimal(length) : malformed('repeated content-length')
}

function decimal(value: string): number | Violation {
  if (value.length === 0) return malformed('invalid content-length')
  let bytes = 0
  for (let at = 0; at < value.length; at++) {
    const digit = value.charCodeAt(at) - 0x30
    if (digit < 0 || digit > 9) return malformed('invalid content-length')
    bytes = bytes * 10 + digit
  }
  return value.length > maxLengthDigits ? malformed('content-length has too many digits') : bytes
}

/** RFC 9112 section 9.3. */
function isPersistent(headers: Headers, isHttp11: boolean): boolean {
  const connection = headers['connection']
  if (connection === undefined) return isHttp11
  if (connection === 'keep-alive') return true
  const options = connectionOptions(connection)
  return !options.includes('close') && (isHttp11 || options.includes('keep-alive'))
}

function isSwitch(headers: Headers, { upgrade }: RequestFacts): boolean {
  const { connection } = headers
  return (
    upgrade &&
    headers['upgrade'] !== undefined &&
    connection !== undefined &&
    connectionOptions(connection).includes('upgrade')
  )
}

function connectionOptions(connection: string | string[]): string[] {
  const list = typeof connection === 'string' ? connection : connection.join(',')
  return list.split(',').map((option) => option.trim().toLowerCase())
}
