import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2'
import { pipeline } from 'node:stream'
import { createZstdDecompress } from 'node:zlib'
import type { YieldPoint } from '../../../lib/scheduling/yielding.ts'
import { messageOf } from '../../../lib/thrown.ts'
import { readLine } from '../parts/messages.ts'
import { createLineSplitter } from './lines.ts'
import { createAssembly, type ReceivedConfig } from './received.ts'

export type ConnectionOptions = {
  /** Origin of the controller, `https://host:port`. */
  readonly url: string
  /** Certificates of the authority of the controller, PEM. */
  readonly ca: string
  readonly token: string
  /** Parameters of all requests, as a query. */
  readonly query: string
  /** Configuration to continue from. */
  readonly start: ReceivedConfig | undefined
  readonly yieldPoint: YieldPoint
  readonly times: ConnectionTimes
  readonly signal: AbortSignal
  /** Called once the controller has accepted the stream. */
  onOpen(connection: OpenConnection): void
  onHeartbeat(): void
  /** Called sequentially; the stream is paused until it resolves. */
  onReceived(received: ReceivedConfig): Promise<void>
}

export type ConnectionTimes = {
  /** Longest time for the TLS handshake and the first response. */
  readonly connectMs: number
  /** Longest time without a byte; the controller sends heartbeats. */
  readonly stallMs: number
}

export type OpenConnection = {
  /** Sends a report to the replica of the controller that has the stream. */
  acknowledge(report: object): Promise<void>
}

export type ConnectionEnd = {
  readonly reason: string
  /** Whether the content was wrong, so that the next stream must begin with a whole configuration. */
  readonly isBroken: boolean
  /** Whether the controller announced the end: no error. */
  readonly isAnnounced: boolean
}

/** Limits on a stream of a faulty controller. */
const maxLineLength = 64 * 1024 * 1024
const maxReplyBytes = 16 * 1024

/** Reads one stream until it ends. Never rejects. */
export async function readStream(options: ConnectionOptions): Promise<ConnectionEnd> {
  const { url, ca, signal, times } = options
  const ended = Promise.withResolvers<ConnectionEnd>()
  const end = (reason: string) => ended.resolve({ reason, isBroken: false, isAnnounced: false })
  const session = connect(url, { ca, minVersion: 'TLSv1.3', maxSessionMemory })
  const abort = () => end('closed')
  signal.addEventListener('abort', abort, { once: true })
  session.on('error', (error) => end(messageOf(error)))
  session.once('close', () => end('the connection was closed'))
  const watchdog = createWatchdog(times.connectMs, () => end('the controller does not respond'))
  try {
    const stream = openStream(session, options, end)
    consume(stream, session, { ...options, watchdog }).then(ended.resolve, (error: unknown) =>
      end(messageOf(error)),
    )
    if (signal.aborted) abort()
    return await ended.promise
  } finally {
    watchdog.close()
    signal.removeEventListener('abort', abort)
    session.destroy()
  }
}

/** In MB: a session reads one stream, with back pressure. */
const maxSessionMemory = 10

function openStream(
  session: ClientHttp2Session,
  { query, token, start }: ConnectionOptions,
  end: (reason: string) => void,
): ClientHttp2Stream {
  const resume = start === undefined ? '' : `&resume=${start.version}`
  const stream = session.request({
    ':path': `/v1/config?${query}${resume}`,
    authorization: `Bearer ${token}`,
    'accept-encoding': 'zstd',
  })
  stream.on('error', (error) => end(messageOf(error)))
  return stream
}

async function consume(
  stream: ClientHttp2Stream,
  session: ClientHttp2Session,
  options: ConnectionOptions & { watchdog: Watchdog },
): Promise<ConnectionEnd> {
  const { watchdog, times } = options
  const status = await statusOf(stream)
  if (status !== 200) {
    const reply = await readReply(stream)
    return ending(`the controller responded with ${status}: ${reply}`)
  }
  watchdog.restart(times.stallMs)
  stream.on('data', () => watchdog.restart(times.stallMs))
  options.onOpen({ acknowledge: (report) => acknowledge(session, options, report) })
  const decompress = createZstdDecompress()
  // Errors of both reach the loop below.
  pipeline(stream, decompress, () => {})
  return readLines(decompress, options)
}

async function readLines(
  chunks: AsyncIterable<Buffer>,
  { start, yieldPoint, watchdog, times, onHeartbeat, onReceived }: ConnectionOptions & { watchdog: Watchdog },
): Promise<ConnectionEnd> {
  const splitter = createLineSplitter(maxLineLength)
  const assemble = createAssembly(start)
  for await (const chunk of chunks) {
    const lines = splitter.push(chunk)
    if (lines === undefined) return broken('a line is too long')
    for (const text of lines) {
      const line = readLine(text)
      if (line.kind === 'closing') return { reason: line.reason, isBroken: false, isAnnounced: true }
      const result = assemble(line, text)
      if (result.kind === 'broken') return broken(result.reason)
      if (line.kind === 'heartbeat') onHeartbeat()
      if (result.kind === 'received') {
        // Activation pauses the stream, and with it the bytes that would restart the watchdog.
        watchdog.pause()
        await onReceived(result.received)
        watchdog.restart(times.stallMs)
      }
      const pause = yieldPoint()
      if (pause) await pause
    }
  }
  return ending('the stream ended')
}

async function acknowledge(
  session: ClientHttp2Session,
  { query, token }: ConnectionOptions,
  report: object,
): Promise<void> {
  const stream = session.request({
    ':method': 'POST',
    ':path': `/v1/ack?${query}`,
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
  })
  stream.end(JSON.stringify(report))
  const status = await statusOf(stream)
  const reply = await readReply(stream)
  if (status !== 204) throw new Error(`the controller responded with ${status}: ${reply}`)
}

function statusOf(stream: ClientHttp2Stream): Promise<number> {
  return new Promise((resolve, reject) => {
    stream.once('response', ({ ':status': status = 0 }) => resolve(status))
    stream.once('error', reject)
    stream.once('close', () => reject(new Error('the connection was closed')))
  })
}

/** The message of an error reply, at most some KB of it. */
async function readReply(stream: ClientHttp2Stream): Promise<string> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of stream) {
    if (!Buffer.isBuffer(chunk)) continue
    length += chunk.length
    if (length > maxReplyBytes) break
    chunks.push(chunk)
  }
  const text = Buffer.concat(chunks).toString()
  return /^\{"error":"([^"\\]*)"\}$/.exec(text)?.[1] ?? ''
}

type Watchdog = {
  restart(ms: number): void
  pause(): void
  close(): void
}

/** Calls `onExpired` after a time without `restart`. */
function createWatchdog(ms: number, onExpired: () => void): Watchdog {
  let isPaused = false
  let timer = setTimeout(onExpired, ms)
  return {
    restart(nextMs) {
      clearTimeout(timer)
      isPaused = false
      timer = setTimeout(() => isPaused || onExpired(), nextMs)
    },
    pause() {
      isPaused = true
    },
    close: () => clearTimeout(timer),
  }
}

function ending(reason: string): ConnectionEnd {
  return { reason, isBroken: false, isAnnounced: false }
}

function broken(reason: string): ConnectionEnd {
  return { reason, isBroken: true, isAnnounced: false }
}
