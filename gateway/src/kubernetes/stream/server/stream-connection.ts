import type { ServerHttp2Stream } from 'node:http2'
import { zstdCompressSync } from 'node:zlib'
import { closingLine, heartbeatLine } from '../parts/messages.ts'
import type { Channel } from './channel.ts'
import type { ProxyStream } from './proxy-connections.ts'

export type StreamTimes = {
  /** Interval of heartbeats while nothing else is sent. */
  readonly heartbeatMs: number
  /** Longest time that a proxy does not read. */
  readonly stallMs: number
}

export type StreamConnectionOptions = StreamTimes & {
  readonly response: ServerHttp2Stream
  readonly channel: Channel
  /** Version that the proxy has from an earlier stream. */
  readonly resume: string | undefined
}

/** Bytes given to a connection at a time: TLS copies what it is given. */
const pieceBytes = 64 * 1024

const heartbeat = zstdCompressSync(Buffer.from(heartbeatLine))

/**
 * Sends configurations as a response. A connection has one message in progress and no queue: a slow proxy
 * receives the newest configuration after the one that it is reading.
 */
export function createStreamConnection(options: StreamConnectionOptions): ProxyStream {
  const { response, channel, heartbeatMs, stallMs } = options
  const ended = Promise.withResolvers<void>()
  /** Version that the proxy has. */
  let known = options.resume
  /** Version sent on this stream: a proxy that is current receives an empty change. */
  let sent: string | undefined
  let state: 'idle' | 'sending' | 'closing' | 'ended' = 'idle'
  let closingTimer: NodeJS.Timeout | undefined

  const timer = setInterval(() => {
    // Unread heartbeats of a proxy that does not read are not repeated.
    if (state === 'idle' && response.writableLength === 0) response.write(heartbeat)
  }, heartbeatMs)
  response.once('close', () => {
    state = 'ended'
    clearInterval(timer)
    clearTimeout(closingTimer)
    ended.resolve()
  })
  response.on('error', () => response.destroy())

  async function sendNewest(): Promise<void> {
    while (state === 'sending' && channel.version !== undefined && channel.version !== sent) {
      const frame = await channel.frameFrom(known)
      if (frame === undefined) return
      await write(frame.bytes)
      known = frame.version
      sent = frame.version
    }
  }

  async function write(bytes: Uint8Array): Promise<void> {
    for (let start = 0; start < bytes.length && isOpen(); start += pieceBytes) {
      if (!response.write(bytes.subarray(start, start + pieceBytes))) await drained()
    }
  }

  async function drained(): Promise<void> {
    const drain = Promise.withResolvers<void>()
    response.once('drain', drain.resolve)
    const expiry = setTimeout(() => response.destroy(), stallMs)
    try {
      await Promise.race([drain.promise, ended.promise])
    } finally {
      clearTimeout(expiry)
      response.off('drain', drain.resolve)
    }
  }

  function isOpen(): boolean {
    return state !== 'ended'
  }

  function wake(): void {
    if (state !== 'idle') return
    state = 'sending'
    sendNewest().then(
      () => {
        if (state === 'sending') state = 'idle'
        // A configuration may have been published after the last comparison.
        if (state === 'idle' && channel.version !== undefined && channel.version !== sent) wake()
      },
      () => response.destroy(),
    )
  }

  return {
    wake,
    close(reason) {
      if (state === 'ended' || state === 'closing') return
      // Within a message, another line would be part of it.
      if (state === 'sending') {
        response.destroy()
        return
      }
      state = 'closing'
      response.end(zstdCompressSync(Buffer.from(closingLine(reason))))
      closingTimer = setTimeout(() => response.destroy(), stallMs)
    },
  }
}
