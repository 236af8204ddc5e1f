import { GatewayError } from '../../lib/gateway-error.ts'
import type { BodySink, BodySource } from '../http/body.ts'

/** Flow control of one response in the client library. */
export type Flow = {
  pause(): void
  resume(): void
  abort(reason: Error): void
}

/** Response body between the connection, which writes, and its reader. */
export type UpstreamBody = BodySource &
  BodySink & {
    /** The complete body if it has arrived without a reader. */
    whole(): Uint8Array | undefined
  }

/** Buffer limit before reading starts; above it the connection pauses. */
const maxEarlyBytes = 64 * 1024

/** Buffers data until reading starts, and pauses the connection while the reader is full. */
export function createUpstreamBody(flow: Flow, onCancel: () => void): UpstreamBody {
  let sink: BodySink | undefined
  let early: Uint8Array[] = []
  let earlyBytes = 0
  let ended = false
  let trailers: Parameters<BodySink['end']>[0]
  let failure: Error | undefined
  let cancelled = false

  return {
    start(reader) {
      sink = reader
      let full = false
      for (const chunk of early) full = !reader.write(chunk) || full
      early = []
      if (cancelled) return
      if (failure) reader.fail(failure)
      else if (ended) reader.end(trailers)
      else if (full) flow.pause()
      else flow.resume()
    },
    resume: () => flow.resume(),
    cancel() {
      if (cancelled) return
      cancelled = true
      early = []
      if (ended || failure) return
      onCancel()
      flow.abort(new GatewayError('request_aborted', 'response discarded by its reader'))
    },
    write(chunk) {
      if (cancelled) return true
      if (sink) {
        if (sink.write(chunk)) return true
        flow.pause()
        return false
      }
      early.push(chunk)
      earlyBytes += chunk.byteLength
      if (earlyBytes < maxEarlyBytes) return true
      flow.pause()
      return false
    },
    end(last) {
      ended = true
      trailers = last
      if (!cancelled) sink?.end(last)
    },
    fail(error) {
      failure = error
      if (!cancelled) sink?.fail(error)
    },
    whole() {
      if (!ended || sink || trailers) return undefined
      const only = early.length === 1 ? early[0] : undefined
      return only ?? Buffer.concat(early, earlyBytes)
    },
  }
}
