import { isUtf8 } from 'node:buffer'
import {
  applyMask,
  type CloseContent,
  closeCodes,
  maxControlBytes,
  opcodes,
  readClosePayload,
} from './frame.ts'
import {
  type FrameHeader,
  frameViolation,
  isControl,
  maxHeaderBytes,
  readFrameHeader,
  type Violation,
} from './frame-header.ts'

/** Content of a WebSocket connection in one direction. Nothing follows a close frame or a violation. */
export type Received =
  | { readonly kind: 'message'; readonly isText: boolean; readonly bytes: Buffer }
  | { readonly kind: 'ping'; readonly bytes: Buffer }
  | { readonly kind: 'pong' }
  | ({ readonly kind: 'close' } & CloseContent)
  | Violation

export type MessageReaderOptions = {
  /** The peer is a client, whose frames must be masked; those of servers must not. */
  readonly isMasked: boolean
  /** Largest message, over all of its fragments. */
  readonly maxMessageBytes: number
}

/** Reads messages and control frames from chunks with any boundaries. */
export type MessageReader = { read(chunk: Buffer): Generator<Received, void> }

/** Payload that is being received, in a buffer that grows with it. */
type Payload = { bytes: Buffer; length: number }

type State = {
  readonly maxMessageBytes: number
  /** Bytes of an incomplete header. */
  readonly header: Buffer
  headerBytes: number
  frame: FrameHeader | undefined
  /** Received bytes of the payload of `frame`. */
  received: number
  readonly control: Payload
  message: (Payload & { readonly isText: boolean }) | undefined
}

const initialBytes = 1024

/**
 * Creates a strict reader without extensions (RFC 6455 section 5). A message occupies one buffer up to the
 * limit, whatever the size of its fragments.
 */
export function createMessageReader({ isMasked, maxMessageBytes }: MessageReaderOptions): MessageReader {
  const state: State = {
    maxMessageBytes,
    header: Buffer.alloc(maxHeaderBytes),
    headerBytes: 0,
    frame: undefined,
    received: 0,
    control: { bytes: Buffer.alloc(maxControlBytes), length: 0 },
    message: undefined,
  }
  let isOver = false
  return {
    *read(chunk) {
      let at = 0
      while (!isOver && at < chunk.length) {
        if (state.frame === undefined) {
          const problem = addHeaderByte(state, chunk[at] ?? 0, isMasked)
          at += 1
          if (problem !== undefined) {
            isOver = true
            yield problem
          }
          if (state.frame === undefined) continue
        }
        at += addPayload(state, state.frame, chunk.subarray(at))
        if (state.received < state.frame.length) return
        const content = finishFrame(state, state.frame)
        state.frame = undefined
        if (content === undefined) continue
        isOver = content.kind === 'close' || content.kind === 'violation'
        yield content
      }
    },
  }
}

/** Adds a byte of the header, and starts the frame behind the last one. */
function addHeaderByte(state: State, byte: number, isMasked: boolean): Violation | undefined {
  state.header[state.headerBytes] = byte
  state.headerBytes += 1
  const frame = readFrameHeader(state.header.subarray(0, state.headerBytes), isMasked)
  if (frame === undefined) return undefined
  if (frame.kind === 'violation') return frame
  const problem = frameViolation(frame, state.message?.length, state.maxMessageBytes)
  if (problem !== undefined) return problem
  state.headerBytes = 0
  state.frame = frame
  state.received = 0
  if (isControl(frame)) state.control.length = 0
  else state.message ??= { isText: frame.opcode === opcodes.text, bytes: Buffer.alloc(0), length: 0 }
  return undefined
}

/** Adds bytes of the payload. Returns their number. */
function addPayload(state: State, frame: FrameHeader, available: Buffer): number {
  const piece = available.subarray(0, frame.length - state.received)
  const payload = payloadOf(state, frame)
  const { length } = payload
  if (length + piece.length > payload.bytes.length) {
    const doubled = Math.min(payload.bytes.length * 2, state.maxMessageBytes)
    const larger = Buffer.allocUnsafeSlow(Math.max(length + piece.length, doubled, initialBytes))
    payload.bytes.copy(larger, 0, 0, length)
    payload.bytes = larger
  }
  piece.copy(payload.bytes, length)
  const { mask } = frame
  if (mask !== undefined)
    applyMask(payload.bytes.subarray(length, length + piece.length), mask, state.received)
  payload.length += piece.length
  state.received += piece.length
  return piece.length
}

function payloadOf({ control, message }: State, frame: FrameHeader): Payload {
  return isControl(frame) || message === undefined ? control : message
}

/** The content that a complete frame ends; undefined for a fragment. */
function finishFrame(state: State, { opcode, isFinal }: FrameHeader): Received | undefined {
  const { control, message } = state
  if (opcode >= opcodes.close)
    return readControl(opcode, Buffer.from(control.bytes.subarray(0, control.length)))
  if (!isFinal || message === undefined) return undefined
  state.message = undefined
  const bytes = message.bytes.subarray(0, message.length)
  if (message.isText && !isUtf8(bytes))
    return { kind: 'violation', code: closeCodes.invalidText, reason: 'text is not valid UTF-8' }
  return { kind: 'message', isText: message.isText, bytes }
}

function readControl(opcode: number, bytes: Buffer): Received {
  if (opcode === opcodes.ping) return { kind: 'ping', bytes }
  if (opcode === opcodes.pong) return { kind: 'pong' }
  const content = readClosePayload(bytes)
  if (typeof content !== 'number') return { kind: 'close', ...content }
  return { kind: 'violation', code: content, reason: 'malformed close frame' }
}
