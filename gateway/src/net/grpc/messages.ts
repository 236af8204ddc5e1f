import { failed, type GrpcStatus, statusCodes } from './status.ts'

const prefixBytes = 5
const smallestBuffer = 4_096

/** Frames a message without compression. */
export function frameMessage(message: Uint8Array): Buffer {
  const length = message.byteLength
  const frame = Buffer.allocUnsafe(prefixBytes + length)
  frame[0] = 0
  frame.writeUInt32BE(length, 1)
  frame.set(message, prefixBytes)
  return frame
}

/** Reads framed messages, one after the other. */
export type MessageReader = {
  /** Reads from a position up to the end of a message at most. Returns the position behind the read bytes. */
  read(bytes: Buffer, position: number): number
  /** Returns a complete message, once, as a copy; the failure of an invalid one; undefined until then. */
  take(): Buffer | (GrpcStatus & { kind: 'failed' }) | undefined
  /** Whether a message is incomplete. */
  isWithin(): boolean
}

type Reading = {
  readonly prefix: Buffer
  prefixLength: number
  /** Grows with the received bytes, because the length is the claim of a server. */
  message: Buffer | undefined
  received: number
  length: number
}

export function createMessageReader(maxMessageBytes: number): MessageReader {
  const state: Reading = {
    prefix: Buffer.alloc(prefixBytes),
    prefixLength: 0,
    message: undefined,
    received: 0,
    length: 0,
  }
  return {
    read: (bytes, position) => read(state, bytes, { position, maxMessageBytes }),
    take() {
      if (state.prefixLength < prefixBytes) return undefined
      if (state.prefix[0] !== 0) return failed(statusCodes.internal, 'a message of the server is compressed')
      if (state.length > maxMessageBytes)
        return failed(
          statusCodes.resourceExhausted,
          `a message of the server exceeds ${maxMessageBytes} bytes`,
        )
      if (state.received < state.length) return undefined
      const message = state.message?.subarray(0, state.length) ?? Buffer.alloc(0)
      state.prefixLength = 0
      state.message = undefined
      state.received = 0
      return message
    },
    isWithin: () => state.prefixLength > 0,
  }
}

function read(
  state: Reading,
  bytes: Buffer,
  { position, maxMessageBytes }: { position: number; maxMessageBytes: number },
): number {
  let at = position
  while (state.prefixLength < prefixBytes) {
    const byte = bytes[at]
    if (byte === undefined) return at
    state.prefix[state.prefixLength++] = byte
    at += 1
    if (state.prefixLength === prefixBytes) state.length = state.prefix.readUInt32BE(1)
  }
  if (state.prefix[0] !== 0 || state.length > maxMessageBytes) return at
  const length = Math.min(bytes.length - at, state.length - state.received)
  if (length === 0) return at
  reserve(state, length)
  state.message?.set(bytes.subarray(at, at + length), state.received)
  state.received += length
  return at + length
}

function reserve(state: Reading, more: number): void {
  const needed = state.received + more
  const { message } = state
  if (message !== undefined && message.length >= needed) return
  const size = needed === state.length ? needed : Math.max(2 * needed, smallestBuffer)
  // Not from the shared pool: a small part of a message may be stored for long.
  const larger = Buffer.allocUnsafeSlow(Math.min(size, state.length))
  message?.copy(larger, 0, 0, state.received)
  state.message = larger
}
