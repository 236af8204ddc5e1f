import { isUtf8 } from 'node:buffer'
import { randomBytes } from 'node:crypto'

/** Opcodes of RFC 6455 section 5.2. */
export const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const

/** Status codes of a close frame (RFC 6455 section 7.4.1 and the registry of IANA). */
export const closeCodes = {
  normal: 1000,
  goingAway: 1001,
  protocolError: 1002,
  unsupportedData: 1003,
  invalidText: 1007,
  policyViolation: 1008,
  tooLarge: 1009,
  serviceRestart: 1012,
  badGateway: 1014,
} as const

/** Content of a close frame; the code is undefined without one. */
export type CloseContent = { readonly code: number | undefined; readonly reason: string }

/** Longest payload of a control frame. */
export const maxControlBytes = 125

/** One complete, unfragmented frame. Frames of clients are masked (RFC 6455 section 5.3). */
export function encodeFrame(opcode: number, payload: Uint8Array, isMasked: boolean): Buffer {
  const { length } = payload
  const lengthBytes = length <= maxControlBytes ? 0 : length <= 0xffff ? 2 : 8
  const payloadStart = 2 + lengthBytes + (isMasked ? 4 : 0)
  const frame = Buffer.allocUnsafe(payloadStart + length)
  const maskBit = isMasked ? 0x80 : 0
  frame[0] = 0x80 | opcode
  if (lengthBytes === 0) frame[1] = maskBit | length
  else if (lengthBytes === 2) {
    frame[1] = maskBit | 126
    frame.writeUInt16BE(length, 2)
  } else {
    frame[1] = maskBit | 127
    frame.writeBigUInt64BE(BigInt(length), 2)
  }
  frame.set(payload, payloadStart)
  if (isMasked) {
    const mask = randomBytes(4)
    mask.copy(frame, payloadStart - 4)
    applyMask(frame.subarray(payloadStart), mask, 0)
  }
  return frame
}

/** Masks or unmasks bytes in place; `offset` is their position in the payload. */
export function applyMask(bytes: Buffer, mask: Uint8Array, offset: number): void {
  for (let index = 0; index < bytes.length; index += 1)
    bytes[index] = (bytes[index] ?? 0) ^ (mask[(offset + index) & 3] ?? 0)
}

/** The payload of a close frame, with the reason cut off at the limit of control frames. */
export function closePayload(code: number, reason: string): Buffer {
  let text = Buffer.from(reason)
  if (text.length > maxControlBytes - 2) {
    let end = maxControlBytes - 2
    // Not inside a character: continuation bytes are 10xxxxxx.
    while (end > 0 && ((text[end] ?? 0) & 0xc0) === 0x80) end -= 1
    text = text.subarray(0, end)
  }
  const payload = Buffer.allocUnsafe(2 + text.length)
  payload.writeUInt16BE(code, 0)
  text.copy(payload, 2)
  return payload
}

/** Reads the payload of a close frame; the status code of its violation if it is malformed. */
export function readClosePayload(payload: Buffer): CloseContent | number {
  if (payload.length === 0) return { code: undefined, reason: '' }
  if (payload.length === 1) return closeCodes.protocolError
  const code = payload.readUInt16BE(0)
  if (!maySendCode(code)) return closeCodes.protocolError
  const reason = payload.subarray(2)
  return isUtf8(reason) ? { code, reason: reason.toString() } : closeCodes.invalidText
}

/** Whether an endpoint may send a code: registered ones and those of libraries and applications. */
function maySendCode(code: number): boolean {
  if (code >= 3000 && code <= 4999) return true
  return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014)
}
