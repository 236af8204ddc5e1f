import { closeCodes, maxControlBytes, opcodes } from './frame.ts'

/** A violation of RFC 6455 or of the size limit, with the code to close with. */
export type Violation = { readonly kind: 'violation'; readonly code: number; readonly reason: string }

/** A frame whose header is known. */
export type FrameHeader = {
  readonly kind: 'frame'
  readonly opcode: number
  readonly isFinal: boolean
  readonly length: number
  readonly mask: Buffer | undefined
}

/** Longest header: opcode, length of 64 bits, mask. */
export const maxHeaderBytes = 14

/** Reads a header from its bytes (RFC 6455 section 5.2); undefined while it is incomplete. */
export function readFrameHeader(header: Buffer, isMasked: boolean): FrameHeader | Violation | undefined {
  if (header.length < 2) return undefined
  const first = header[0] ?? 0
  const second = header[1] ?? 0
  if ((first & 0x70) !== 0) return protocolError('reserved bits')
  if (((second & 0x80) !== 0) !== isMasked)
    return protocolError(isMasked ? 'frame without mask' : 'masked frame')
  const short = second & 0x7f
  const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0
  const end = 2 + lengthBytes + (isMasked ? 4 : 0)
  if (header.length < end) return undefined
  const length = lengthBytes === 0 ? short : readLength(header, lengthBytes)
  if (lengthBytes > 0 && length <= (lengthBytes === 2 ? maxControlBytes : 0xffff))
    return protocolError('length of a frame not in its shortest form')
  const mask = isMasked ? Buffer.from(header.subarray(end - 4, end)) : undefined
  return { kind: 'frame', opcode: first & 0x0f, isFinal: (first & 0x80) !== 0, length, mask }
}

function readLength(header: Buffer, lengthBytes: 2 | 8): number {
  return lengthBytes === 2 ? header.readUInt16BE(2) : Number(header.readBigUInt64BE(2))
}

export function isControl({ opcode }: Pick<FrameHeader, 'opcode'>): boolean {
  return opcode >= opcodes.close
}

/** The violation of a frame behind others; `received` are the bytes of the message in progress, if any. */
export function frameViolation(
  { opcode, isFinal, length }: FrameHeader,
  received: number | undefined,
  maxMessageBytes: number,
): Violation | undefined {
  if (opcode > opcodes.pong || (opcode > opcodes.binary && opcode < opcodes.close))
    return protocolError('reserved opcode')
  if (opcode >= opcodes.close) {
    if (!isFinal) return protocolError('fragmented control frame')
    return length > maxControlBytes ? protocolError('control frame too long') : undefined
  }
  if ((opcode === opcodes.continuation) !== (received !== undefined))
    return protocolError('fragments of messages out of order')
  if (length + (received ?? 0) <= maxMessageBytes) return undefined
  return {
    kind: 'violation',
    code: closeCodes.tooLarge,
    reason: `message larger than ${maxMessageBytes} bytes`,
  }
}

function protocolError(reason: string): Violation {
  return { kind: 'violation', code: closeCodes.protocolError, reason }
}
