import type { Socket } from 'node:net'
import { asGatewayError } from '../../lib/gateway-error.ts'
import type { BodySink, BodySource } from '../http/body.ts'

/** Transfer of a streaming request body. */
export type Upload = {
  readonly source: BodySource
  /**
   * `waiting`: not started; `flowing`, `full`: the socket pauses the source; `over`: sent, failed or
   * cancelled.
   */
  state: 'waiting' | 'flowing' | 'full' | 'over'
}

export type UploadRequest = {
  /** Head without framing and without the empty line. */
  readonly head: string
  readonly declaredLength: number | undefined
  /** An empty body has a `content-length`. */
  readonly expectsBody: boolean
}

export type UploadEvents = {
  /** Bytes were sent, or the body is complete. */
  progressed(): void
  failed(error: Error): void
  /** The source sends more or fewer bytes than declared. */
  mismatched(): void
}

/** Bodies up to this size are sent in one piece with the head. */
const maxJoinedBytes = 16 * 1024

export function createUpload(source: BodySource): Upload {
  return { source, state: 'waiting' }
}

/**
 * Sends head and body. The head is sent with the first bytes of the body. No byte beyond the declared length
 * is sent: the server would read it as another request.
 */
export function startUpload(
  upload: Upload,
  socket: Socket,
  request: UploadRequest,
  events: UploadEvents,
): void {
  const { declaredLength } = request
  let head: string | undefined = request.head
  let sent = 0

  function framing(): string {
    return declaredLength === undefined
      ? 'transfer-encoding: chunked\r\n\r\n'
      : `content-length: ${declaredLength}\r\n\r\n`
  }

  const sink: BodySink = {
    write(chunk) {
      if (upload.state === 'over' || chunk.byteLength === 0) return true
      sent += chunk.byteLength
      if (declaredLength !== undefined && sent > declaredLength) {
        events.mismatched()
        return true
      }
      const start = head === undefined ? '' : head + framing()
      head = undefined
      const isAccepted =
        declaredLength === undefined ? writeChunk(socket, start, chunk) : writeJoined(socket, start, chunk)
      if (!isAccepted) upload.state = 'full'
      events.progressed()
      return isAccepted
    },
    end() {
      if (upload.state === 'over') return
      upload.state = 'over'
      if (declaredLength !== undefined && sent !== declaredLength) {
        events.mismatched()
        return
      }
      if (head !== undefined)
        socket.write(`${head}${request.expectsBody ? 'content-length: 0\r\n' : ''}\r\n`, 'latin1')
      else if (declaredLength === undefined) socket.write('0\r\n\r\n', 'latin1')
      events.progressed()
    },
    fail(error) {
      if (upload.state === 'over') return
      upload.state = 'over'
      events.failed(error)
    },
  }
  upload.state = 'flowing'
  try {
    upload.source.start(sink)
  } catch (error) {
    sink.fail(asGatewayError(error))
  }
}

/** Continues after the socket has sent what it had stored. */
export function drained(upload: Upload): void {
  if (upload.state !== 'full') return
  upload.state = 'flowing'
  upload.source.resume()
}

/** Discards the rest of the body. */
export function cancelUpload(upload: Upload): void {
  if (upload.state === 'over') return
  upload.state = 'over'
  upload.source.cancel()
}

/** Writes text and bytes, small ones in one buffer. Returns false when the socket is full. */
export function writeJoined(socket: Socket, text: string, bytes: Uint8Array): boolean {
  if (text === '') return socket.write(bytes)
  if (bytes.byteLength <= maxJoinedBytes) {
    const joined = Buffer.allocUnsafe(text.length + bytes.byteLength)
    joined.write(text, 0, 'latin1')
    joined.set(bytes, text.length)
    return socket.write(joined)
  }
  socket.cork()
  socket.write(text, 'latin1')
  const isAccepted = socket.write(bytes)
  socket.uncork()
  return isAccepted
}

function writeChunk(socket: Socket, start: string, chunk: Uint8Array): boolean {
  socket.cork()
  writeJoined(socket, `${start}${chunk.byteLength.toString(16)}\r\n`, chunk)
  const isAccepted = socket.write('\r\n', 'latin1')
  socket.uncork()
  return isAccepted
}
