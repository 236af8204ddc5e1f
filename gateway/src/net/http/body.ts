import { GatewayError, type GatewayErrorCode } from '../../lib/gateway-error.ts'
import type { BodyBudget } from './body-budget.ts'
import type { Headers } from './headers.ts'

/** Takes a body piece by piece. After `end` or `fail` nothing more is called. */
export type BodySink = {
  /** Returns false when full: the source stops until `BodySource.resume` is called. */
  write(chunk: Uint8Array): boolean
  /** `trailers` are fields that came behind the body (RFC 9110 section 6.5). */
  end(trailers?: Headers): void
  fail(error: Error): void
}

/** A body that is still to come. Push-based, because a promise per chunk would dominate the cost of a stream. */
export type BodySource = {
  /** Starts the flow into `sink`. Called exactly once. */
  start(sink: BodySink): void
  /** Goes on after `write` returned false. */
  resume(): void
  /** Discards the rest and frees the connection; the sink hears nothing more. Harmless when called twice. */
  cancel(): void
  /** Memory for those who collect the body; without it, their own bound is the only one. */
  readonly budget?: BodyBudget | undefined
}

/** A whole body at hand, one still to come, or none. */
export type Body = Uint8Array | BodySource | undefined

export function isSource(body: Body): body is BodySource {
  return body !== undefined && !(body instanceof Uint8Array)
}

/** A step between a source and a sink: reads, changes, holds back or ends the stream. */
export type BodyTransform = (sink: BodySink) => BodySink

/** The source as seen through a transform. */
export function withTransform(source: BodySource, transform: BodyTransform): BodySource {
  return {
    start: (sink) => source.start(transform(sink)),
    resume: () => source.resume(),
    cancel: () => source.cancel(),
    budget: source.budget,
  }
}

const nothing = Buffer.alloc(0)

/** A chunk keeps alive the buffer it was cut out of, so small ones are copied together: a body may come byte by byte. */
const smallChunkBytes = 1024
const blockBytes = 16 * 1024

/**
 * Reads a body to its end.
 * Rejects with `tooLarge` as soon as it exceeds `maxBytes`, and with `overloaded` as soon as its budget is used up, and cancels the source;
 * passes on the source's own failure.
 */
export function readAll(body: Body, maxBytes: number, tooLarge: GatewayErrorCode): Promise<Buffer> {
  if (!isSource(body)) {
    if (body !== undefined && body.byteLength > maxBytes) return Promise.reject(overLimit(tooLarge, maxBytes))
    return Promise.resolve(
      body === undefined ? nothing : Buffer.from(body.buffer, body.byteOffset, body.byteLength),
    )
  }
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = []
    let block = nothing
    let blockSize = 0
    let size = 0
    let settled = false

    function closeBlock() {
      if (blockSize > 0) chunks.push(block.subarray(0, blockSize))
      block = nothing
      blockSize = 0
    }

    function copy(chunk: Uint8Array) {
      if (blockSize + chunk.byteLength > block.byteLength) {
        closeBlock()
        block = Buffer.allocUnsafe(blockBytes)
      }
      block.set(chunk, blockSize)
      blockSize += chunk.byteLength
    }

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
        if (chunks.length > 0 && chunk.byteLength < smallChunkBytes) copy(chunk)
        else {
          closeBlock()
          chunks.push(chunk)
        }
        return true
      },
      end() {
        settled = true
        closeBlock()
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

/** The failure of a body for which there is no memory now. */
export function overBudget(): GatewayError {
  return new GatewayError('overloaded', 'the gateway collects too many request bodies: try again later')
}

function overLimit(code: GatewayErrorCode, maxBytes: number): GatewayError {
  return new GatewayError(code, `body is larger than ${maxBytes} bytes`)
}
