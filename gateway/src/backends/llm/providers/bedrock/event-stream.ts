import { crc32 } from 'node:zlib'
import { GatewayError } from '../../../../lib/gateway-error.ts'

/** Headers of a message with values of type string. */
export type EventHeaders = ReadonlyMap<string, string>

/** A message of a binary event stream. Its payload is a part of the received bytes, valid during the call. */
export type EventMessage = { readonly headers: EventHeaders; readonly payload: Buffer }

export type EventStreamParser = {
  /**
   * Reads the next bytes, in pieces of any size. Throws `GatewayError` (`upstream_invalid`,
   * `upstream_too_large`).
   */
  push(bytes: Uint8Array): void
  /** The bytes end inside a message. */
  readonly incomplete: boolean
}

type ParserOptions = {
  /** Limit of one message, which is buffered until it is complete. */
  readonly maxMessageBytes: number
  onMessage(message: EventMessage): void
}

const preludeBytes = 12
const checksumBytes = 4
const minMessageBytes = preludeBytes + checksumBytes

const nothing = Buffer.alloc(0)

/**
 * Creates a parser of `application/vnd.amazon.eventstream`:
 * https://smithy.io/2.0/aws/amazon-eventstream.html. A message consists of its length, the length of its
 * headers, a checksum of both, headers, payload and a checksum of everything before (CRC-32, integers in
 * network order).
 */
export function createEventStreamParser({ maxMessageBytes, onMessage }: ParserOptions): EventStreamParser {
  const readHeaders = createHeaderReader()
  let pending = nothing
  let size = 0

  /** Copies into a buffer that doubles, so that a message in many small chunks costs no more than in few. */
  function append(bytes: Buffer): void {
    const needed = size + bytes.length
    if (needed > pending.length) {
      const larger = Buffer.allocUnsafe(Math.max(needed, pending.length * 2))
      pending.copy(larger, 0, 0, size)
      pending = larger
    }
    bytes.copy(pending, size)
    size = needed
  }

  /** Length of the message that starts here; its prelude is checked before anything is buffered. */
  function lengthOf(bytes: Buffer): number {
    const length = bytes.readUInt32BE(0)
    const headersLength = bytes.readUInt32BE(4)
    if (bytes.readUInt32BE(8) !== crc32(bytes.subarray(0, 8)))
      throw invalid('the checksum of a prelude is wrong')
    if (length < minMessageBytes || headersLength > length - minMessageBytes)
      throw invalid('the lengths of a message contradict each other')
    if (length > maxMessageBytes)
      throw new GatewayError(
        'upstream_too_large',
        `a message of the upstream's stream is larger than ${maxMessageBytes} bytes`,
      )
    return length
  }

  return {
    get incomplete() {
      return size > 0
    },
    push(bytes) {
      let rest = asBuffer(bytes)
      if (size > 0) {
        append(rest)
        rest = pending.subarray(0, size)
      }
      let start = 0
      while (rest.length - start >= preludeBytes) {
        const message = rest.subarray(start)
        const length = lengthOf(message)
        if (message.length < length) break
        onMessage(readMessage(message.subarray(0, length), readHeaders))
        start += length
      }
      if (start === 0 && size > 0) return
      const left = rest.subarray(start)
      pending = nothing
      size = 0
      if (left.length > 0) append(left)
    },
  }
}

function readMessage(bytes: Buffer, readHeaders: (bytes: Buffer) => EventHeaders): EventMessage {
  const end = bytes.length - checksumBytes
  if (bytes.readUInt32BE(end) !== crc32(bytes.subarray(0, end)))
    throw invalid('the checksum of a message is wrong')
  const headersEnd = preludeBytes + bytes.readUInt32BE(4)
  return {
    headers: readHeaders(bytes.subarray(preludeBytes, headersEnd)),
    payload: bytes.subarray(headersEnd, end),
  }
}

/** Reads headers. Most messages of a stream have those of the message before, which are not decoded again. */
function createHeaderReader(): (bytes: Buffer) => EventHeaders {
  let lastBytes = nothing
  let last: EventHeaders = new Map()
  return (bytes) => {
    if (bytes.equals(lastBytes)) return last
    last = headersIn(bytes)
    // A copy, because the buffer belongs to the connection.
    lastBytes = Buffer.from(bytes)
    return last
  }
}

const stringType = 7
/** Bytes of the values of other types; types 6 and 7 have a length of their own. */
const valueBytes: readonly number[] = [0, 0, 1, 2, 4, 8, -1, -1, 8, 16]

function headersIn(bytes: Buffer): EventHeaders {
  const headers = new Map<string, string>()
  let at = 0
  while (at < bytes.length) {
    const nameEnd = at + 1 + bytes.readUInt8(at)
    if (nameEnd >= bytes.length) throw invalid('a header is incomplete')
    const name = bytes.toString('utf8', at + 1, nameEnd)
    const type = bytes.readUInt8(nameEnd)
    let valueStart = nameEnd + 1
    let length = valueBytes[type]
    if (length === undefined) throw invalid('a header has an unknown type')
    if (length === -1) {
      if (valueStart + 2 > bytes.length) throw invalid('a header is incomplete')
      length = bytes.readUInt16BE(valueStart)
      valueStart += 2
    }
    at = valueStart + length
    if (at > bytes.length) throw invalid('a header is incomplete')
    if (type === stringType) headers.set(name, bytes.toString('utf8', valueStart, at))
  }
  return headers
}

function invalid(problem: string): GatewayError {
  return new GatewayError('upstream_invalid', `the upstream's event stream cannot be read: ${problem}`)
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
