import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import { GatewayError } from '../../lib/gateway-error.ts'
import type { BodySource } from '../http/body.ts'
import { createBodyBudget } from '../http/body-budget.ts'
import type { Headers } from '../http/headers.ts'
import { allowedTrailers } from '../http/trailers.ts'
import type { AdmittedConnection } from '../listener/admission.ts'

export type RequestBody = {
  readonly source: BodySource
  /** Throws the body away where nobody has begun to read it. */
  discardUnlessRead(): void
  /** Tells whoever reads it that the rest will not come. */
  abort(): void
  /** The client has sent all of it. */
  ended(): boolean
}

/** The body of an HTTP/2 request, which must be complete within `limitMs`. */
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
        // Node ends a stream that was reset without an error as if its body were complete.
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
 * Resets a stream, so that what was sent of it does not look complete. `close` would not do: it ends the stream in order
 * before it resets it. The error becomes the code INTERNAL_ERROR.
 */
export function resetStream(stream: ServerHttp2Stream): void {
  stream.destroy(new Error('the stream was broken off'))
}
