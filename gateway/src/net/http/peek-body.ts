import { type Body, type BodySink, type BodySource, overBudget } from './body.ts'
import { createChunkList } from './chunk-list.ts'
import type { Headers } from './headers.ts'

/** Start of a body, and the body to use instead of the source. */
export type PeekedBody =
  | { readonly kind: 'complete'; readonly bytes: Uint8Array; readonly body: Body }
  /** `start` is the first `maxBytes` of `body`. */
  | { readonly kind: 'partial'; readonly start: Uint8Array; readonly body: BodySource }

type End =
  | { readonly kind: 'end'; readonly trailers?: Headers | undefined }
  | { readonly kind: 'fail'; readonly error: Error }

/**
 * Reads a body up to `maxBytes`. A longer body is `partial`, paused, and continues from its first byte. The
 * body of a complete one is its bytes, or a source if it has trailers. Rejects if the source fails, and with
 * `overloaded` above its budget.
 */
export function peekBody(source: BodySource, maxBytes: number): Promise<PeekedBody> {
  return new Promise((resolve, reject) => {
    const list = createChunkList()
    let size = 0
    let rest: BodySink | undefined
    let isRejected = false

    source.start({
      write(chunk) {
        if (rest) return rest.write(chunk)
        if (isRejected) return true
        if (source.budget?.acquire(chunk.byteLength) === false) {
          isRejected = true
          source.cancel()
          reject(overBudget())
          return true
        }
        list.add(chunk)
        size += chunk.byteLength
        if (size <= maxBytes) return true
        const chunks = list.close()
        const start = Buffer.concat(chunks, size).subarray(0, maxBytes)
        const replay = createReplay(source, chunks)
        rest = replay.sink
        resolve({ kind: 'partial', start, body: replay.body })
        return false
      },
      end(trailers) {
        if (rest) {
          rest.end(trailers)
          return
        }
        const chunks = list.close()
        const [only] = chunks
        const bytes = only !== undefined && chunks.length === 1 ? only : Buffer.concat(chunks, size)
        if (trailers === undefined) {
          resolve({ kind: 'complete', bytes, body: bytes })
          return
        }
        const replay = createReplay(source, chunks)
        replay.sink.end(trailers)
        resolve({ kind: 'complete', bytes, body: replay.body })
      },
      fail(error) {
        if (rest) rest.fail(error)
        else reject(error)
      },
    })
  })
}

/** A body of the chunks that were read and those that the sink receives later. */
function createReplay(source: BodySource, chunks: Uint8Array[]): { sink: BodySink; body: BodySource } {
  let target: BodySink | undefined
  let end: End | undefined

  function flush(to: BodySink): void {
    for (let chunk = chunks.shift(); chunk; chunk = chunks.shift()) if (!to.write(chunk)) return
    // A cancelled body makes no more calls.
    if (target !== to) return
    if (end?.kind === 'end') to.end(end.trailers)
    else if (end) to.fail(end.error)
    else source.resume()
  }

  return {
    sink: {
      write(chunk) {
        if (target && chunks.length === 0) return target.write(chunk)
        chunks.push(chunk)
        return false
      },
      end(trailers) {
        if (target && chunks.length === 0) target.end(trailers)
        else end = { kind: 'end', trailers }
      },
      fail(error) {
        if (target && chunks.length === 0) target.fail(error)
        else end = { kind: 'fail', error }
      },
    },
    body: {
      start(sink) {
        target = sink
        flush(sink)
      },
      resume() {
        if (target && (chunks.length > 0 || end !== undefined)) flush(target)
        else source.resume()
      },
      cancel() {
        chunks.length = 0
        target = undefined
        source.cancel()
      },
      budget: source.budget,
    },
  }
}
