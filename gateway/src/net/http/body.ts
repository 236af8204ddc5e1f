import { GatewayError, type GatewayErrorCode } from '../../lib/gateway-error.ts'
import type { BodyBudget } from './body-budget.ts'
import { createChunkList } from './chunk-list.ts'
import type { Headers } from './headers.ts'

/** Consumer of body chunks. No calls follow `end` or `fail`. */
export type BodySink = {
  /** Returns false when full: the source pauses until `BodySource.resume`. */
  write(chunk: Uint8Array): boolean
  /** `trailers` are the fields behind the body (RFC 9110 section 6.5). */
  end(trailers?: Headers): void
  fail(error: Error): void
}

/** A streaming body. Push-based, because a promise per chunk would dominate the cost of a stream. */
export type BodySource = {
  /** Starts the flow into `sink`. Must be called exactly once. */
  start(sink: BodySink): void
  /** Continues after `write` returned false. */
  resume(): void
  /** Discards the rest and releases the connection; the sink receives no more calls. Idempotent. */
  cancel(): void
  /** Memory budget for buffering; without it, only the limit of the reader applies. */
  readonly budget?: BodyBudget | undefined
}

/** A buffered body, a streaming body, or none. */
export type Body = Uint8Array | BodySource | undefined

export function isSource(body: Body): body is BodySource {
  return body !== undefined && !(body instanceof Uint8Array)
}

/** Returns a body as a source, also one that is buffered or absent. */
export function sourceOf(body: Body): BodySource {
  if (isSource(body)) return body
  return {
    start(sink) {
      if (body !== undefined) sink.write(body)
      sink.end()
    },
    resume() {},
    cancel() {},
  }
}

/** A step between source and sink that reads, changes, delays or ends the stream. */
export type BodyTransform = (sink: BodySink) => BodySink

/** Returns the source with a transform applied. */
export function withTransform(source: BodySource, transform: BodyTransform): BodySource {
  return {
    start: (sink) => source.start(transform(sink)),
    resume: () => source.resume(),
    cancel: () => source.cancel(),
    budget: source.budget,
  }
}

const nothing = Buffer.alloc(0)

/**
 * Reads a complete body. Rejects with `tooLarge` above `maxBytes` and with `overloaded` above its budget, and
 * cancels the source; forwards the source's own failure.
 */
export function readAll(body: Body, maxBytes: number, tooLarge: GatewayErrorCode): Promise<Buffer> {
  if (!isSource(body)) {
    if (body !== undefined && body.byteLength > maxBytes) return Promise.reject(overLimit(tooLarge, maxBytes))
    return Promise.resolve(
      body === undefined ? nothing : Buffer.from(body.buffer, body.byteOffset, body.byteLength),
    )
  }
  return new Promise((resolve, reject) => {
    const list = createChunkList()
    let size = 0
    let settled = false

    body.start({
      write(chunk) {
        if (settled) return true
        size += chunk.byteLength
        if (size > maxBytes) {
          settled = true
          body.cancel()
          reject(overLimit(tooLarge, maxBytes))
          return true
        }
        if (body.budget?.acquire(chunk.byteLength) === false) {
          settled = true
          body.cancel()
          reject(overBudget())
          return true
        }
        list.add(chunk)
        return true
      },
      end() {
        settled = true
        const chunks = list.close()
        const only = chunks.length === 1 ? chunks[0] : undefined
        resolve(
          only ? Buffer.from(only.buffer, only.byteOffset, only.byteLength) : Buffer.concat(chunks, size),
        )
      },
      fail(error) {
        settled = true
        reject(error)
      },
    })
  })
}

/** Error of a body without memory budget. */
export function overBudget(): GatewayError {
  return new GatewayError('overloaded', 'memory for request bodies is exhausted: try again later')
}

function overLimit(code: GatewayErrorCode, maxBytes: number): GatewayError {
  return new GatewayError(code, `body is larger than ${maxBytes} bytes`)
}
