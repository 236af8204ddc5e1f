import { crc32 } from 'node:zlib'

const preludeBytes = 12
const checksumBytes = 4
const stringType = 7

/**
 * Encodes a message of `application/vnd.amazon.eventstream` with headers of type string:
 * https://smithy.io/2.0/aws/amazon-eventstream.html. Names have at most 255 bytes, values at most 32767.
 */
export function encodeEventMessage(
  headers: readonly (readonly [name: string, value: string])[],
  payload: string,
): Buffer {
  let headersLength = 0
  for (const [name, value] of headers) headersLength += 4 + Buffer.byteLength(name) + Buffer.byteLength(value)
  const length = preludeBytes + headersLength + Buffer.byteLength(payload) + checksumBytes
  const message = Buffer.allocUnsafe(length)
  message.writeUInt32BE(length, 0)
  message.writeUInt32BE(headersLength, 4)
  message.writeUInt32BE(crc32(message.subarray(0, 8)), 8)
  let at = preludeBytes
  for (const [name, value] of headers) {
    at = message.writeUInt8(Buffer.byteLength(name), at)
    at += message.write(name, at)
    at = message.writeUInt8(stringType, at)
    at = message.writeUInt16BE(Buffer.byteLength(value), at)
    at += message.write(value, at)
  }
  at += message.write(payload, at)
  message.writeUInt32BE(crc32(message.subarray(0, at)), at)
  return message
}
