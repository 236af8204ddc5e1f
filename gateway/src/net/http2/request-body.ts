import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import { GatewayError } from '../../lib/gateway-error.ts'
import type { BodySource } from '../http/body.ts'
import { createBodyBudget } from '../http/body-budget.ts'
import type { Headers } from '../http/headers.ts'
import { allowedTrailers } from '../http/trailers.ts'
import type { AdmittedConnection } from '../listener/admission.ts'

export type RequestBody = {
  readonly source: BodySource
  /** Discards an unread body. */
  discardUnlessRead(): void
  /** Fails the reader: the rest of the body will not arrive. */
  abort(): void
  /** Whether the client has sent the complete body. */
  ended(): boolean
}

/** Body of an HTTP/2 request, which must be complete within `limitMs`. */
export function requestBody(
  stream: ServerHttp2Stream,
  headers: Headers,
  { limitMs, admitted }: { limitMs: number; admitted: AdmittedConnection },
): RequestBody {
  let over = false
  let started = false
  let ended = false
  let abort = () => {}
  let trailers: Headers | undefined
  const timer = setTimeout(() => resetStream(stream), limitMs)
  stream.on('trailers', (fields: IncomingHttpHeaders) => {
    trailers = allowedTrailers(fields as Headers)
  })
  stream.on('end', () => {
    ended = true
    clearTimeout(timer)
  })
  stream.on('close', () => clearTimeout(timer))

  const source: BodySource = {
    budget: createBodyBudget(admitted, (end) => stream.on('close', end)),
    start(sink) {
      started = true
      if (awaitsContinue(headers) && !stream.headersSent && !stream.closed)
        stream.additionalHeaders({ ':status': 100 })
      stream.on('data', (chunk: Buffer) => {
        if (!over && !sink.write(chunk)) stream.pause()
      })
      stream.on('end', () => {
        // Node ends a stream that was reset without an error like one with a complete body.
        if (over || stream.aborted || (stream.closed && !stream.writableFinished)) return
        over = true
        sink.end(trailers)
      })
      abort = () => {
        if (over) return
        over = true
        sink.fail(new GatewayError('request_aborted', 'the request ended before its body was complete'))
      }
      stream.on('close', abort)
    },
    resume: () => stream.resume(),
    cancel() {
      over = true
      stream.resume()
    },
  }
  return {
    source,
    discardUnlessRead() {
      if (!started) stream.resume()
    },
    abort: () => abort(),
    ended: () => ended,
  }
}

function awaitsContinue({ expect }: Headers): boolean {
  return typeof expect === 'string' && expect.toLowerCase() === '100-continue'
}

/**
 * Resets a stream with INTERNAL_ERROR, so that sent data does not appear complete. `close` would end the
 * stream in order before the reset.
 */
export function resetStream(stream: ServerHttp2Stream): void {
  stream.destroy(new Error('stream aborted'))
}
