import type { Duplex } from 'node:stream'
import { closeCodes, closePayload, encodeFrame, opcodes } from './frame.ts'
import { createMessageReader, type Received } from './message-reader.ts'

/** The end of a connection: the close frame of the peer, its violation, or the loss of the connection. */
export type PeerEnd =
  | { readonly kind: 'close'; readonly code: number | undefined; readonly reason: string }
  | { readonly kind: 'violation'; readonly code: number; readonly reason: string }
  | { readonly kind: 'lost'; readonly error: unknown }

export type PeerOptions = {
  /** Role of the gateway on this connection. */
  readonly role: 'server' | 'client'
  readonly maxMessageBytes: number
  /** Longest wait for a peer that does not read. */
  readonly stallMs: number
  /** Receives messages one by one: the next one is read after the promise. Must not reject. */
  onMessage(bytes: Buffer, isText: boolean): Promise<void> | undefined
  /** Called once. After a violation or a close frame the gateway has answered with its own. */
  onEnd(end: PeerEnd): void
}

/** One WebSocket connection over a stream that it owns. */
export type WebSocketPeer = {
  /** Starts reading. */
  start(): void
  /** Sends a text message; the promise, if any, settles when more may be sent. */
  send(text: Uint8Array): Promise<void> | undefined
  ping(): void
  /** Sends a close frame once, and closes the stream after that of the peer or a time. */
  close(code: number, reason: string): void
  /** Whether bytes have arrived since the last call. */
  takeActivity(): boolean
}

/** Longest wait for the close frame of the peer, and for its end of the stream. */
const closeTimeoutMs = 5_000

const noPayload = Buffer.alloc(0)

/** Creates the gateway's end of a WebSocket connection. */
export function createPeer(stream: Duplex, options: PeerOptions): WebSocketPeer {
  const isMasked = options.role === 'client'
  const { maxMessageBytes, stallMs } = options
  const reader = createMessageReader({ isMasked: !isMasked, maxMessageBytes })
  let hasClosed = false
  let hasEnded = false
  let isActive = false

  stream.on('error', () => stream.destroy())

  function write(opcode: number, payload: Uint8Array): boolean {
    if (stream.destroyed || stream.writableEnded) return true
    return stream.write(encodeFrame(opcode, payload, isMasked))
  }

  function close(code: number, reason: string): void {
    if (hasClosed) return
    hasClosed = true
    // Codes that only report the absence of a close frame are not sent (RFC 6455 section 7.4.1).
    write(opcodes.close, code === 0 ? noPayload : closePayload(code, reason))
    destroyLater()
  }

  function destroyLater(): void {
    const timer = setTimeout(() => stream.destroy(), closeTimeoutMs)
    stream.once('close', () => clearTimeout(timer))
  }

  function end(reason: PeerEnd): void {
    if (hasEnded) return
    hasEnded = true
    if (reason.kind === 'close') close(reason.code ?? 0, reason.reason)
    if (reason.kind === 'violation') close(reason.code, reason.reason)
    // A peer that has ended its side may still read nothing of the other.
    if (reason.kind === 'lost' && !stream.destroyed) destroyLater()
    stream.end()
    options.onEnd(reason)
  }

  async function receive(received: Received): Promise<void> {
    switch (received.kind) {
      case 'message':
        // After its own close frame, the gateway only waits for that of the peer.
        if (!hasClosed) await options.onMessage(received.bytes, received.isText)
        return
      case 'ping':
        if (!hasClosed && !write(opcodes.pong, received.bytes)) await drained(stream, stallMs)
        return
      case 'pong':
        return
      case 'close':
      case 'violation':
        end(received)
    }
  }

  async function run(): Promise<void> {
    let error: unknown
    try {
      for await (const chunk of stream.iterator({ destroyOnReturn: false })) {
        isActive = true
        for (const received of reader.read(chunk)) await receive(received)
      }
    } catch (thrown) {
      error = thrown
    }
    end({ kind: 'lost', error })
  }

  return {
    start() {
      void run()
    },
    send(text) {
      if (hasClosed) return undefined
      return write(opcodes.text, text) ? undefined : drained(stream, stallMs)
    },
    ping() {
      if (!hasClosed) write(opcodes.ping, noPayload)
    },
    close,
    takeActivity() {
      const wasActive = isActive
      isActive = false
      return wasActive
    },
  }
}

/** Resolves when a stream accepts more data or is closed. A peer that reads nothing for a time is cut off. */
function drained(stream: Duplex, stallMs: number): Promise<void> {
  if (stream.destroyed || !stream.writableNeedDrain) return Promise.resolve()
  return new Promise((resolve) => {
    const timer = setTimeout(() => stream.destroy(), stallMs)
    const finish = () => {
      clearTimeout(timer)
      stream.off('drain', finish)
      stream.off('close', finish)
      resolve()
    }
    stream.on('drain', finish)
    stream.on('close', finish)
  })
}

/** The status code for the other side of a relay, after the end of one. */
export function codeForOther(end: PeerEnd, ended: 'client' | 'upstream'): { code: number; reason: string } {
  if (end.kind === 'close') return { code: end.code ?? closeCodes.normal, reason: end.reason }
  if (ended === 'client') return { code: closeCodes.goingAway, reason: 'client disconnected' }
  const reason =
    end.kind === 'violation' ? 'invalid frame of the provider' : 'connection to the provider lost'
  return { code: closeCodes.badGateway, reason }
}
