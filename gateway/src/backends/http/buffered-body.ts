import { type Body, type BodySink, type BodySource, isSource } from '../../net/http/body.ts'
import type { Headers } from '../../net/http/headers.ts'

/**
 * Buffers a body of at most `maxBytes`, so that it can be sent again. A larger body, or one that exceeds its
 * budget, is returned as a stream that starts with the buffered chunks. Rejects if the body fails before
 * either.
 */
export function bufferBody(body: Body, maxBytes: number): Body | Promise<Body> {
  if (!isSource(body)) return body
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = []
    let size = 0
    /** The reader of a larger body; events before its start are retained. */
    let sink: BodySink | undefined
    let over: ((sink: BodySink) => void) | undefined
    let larger = false

    const rest: BodySource = {
      start(reader) {
        sink = reader
        let full = false
        for (const chunk of chunks.splice(0)) full = !reader.write(chunk) || full
        if (over) over(reader)
        else if (!full) body.resume()
      },
      resume: () => body.resume(),
      cancel: () => body.cancel(),
    }

    body.start({
      write(chunk) {
        if (sink) return sink.write(chunk)
        chunks.push(chunk)
        size += chunk.byteLength
        if (size <= maxBytes && body.budget?.acquire(chunk.byteLength) !== false) return true
        if (!larger) {
          larger = true
          resolve(rest)
        }
        return false
      },
      end(trailers) {
        if (sink) sink.end(trailers)
        else if (larger) over = (reader) => reader.end(trailers)
        else if (size === 0) resolve(undefined)
        else resolve(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks, size))
      },
      fail(error) {
        if (sink) sink.fail(error)
        else if (larger) over = (reader) => reader.fail(error)
        else reject(error)
      },
    })
  })
}

/** The declared length of a body; undefined with chunked coding. */
export function declaredLength(headers: Headers): number | undefined {
  const length = headers['content-length']
  if (typeof length !== 'string' || headers['transfer-encoding'] !== undefined) return undefined
  return Number(length)
}

export type ObservedBody = {
  readonly body: BodySource
  /** The reader has consumed all received data, and the body is incomplete. */
  waitsForClient(): boolean
}

/** Observes whether a body waits for its reader or its sender. */
export function observeBody(source: BodySource): ObservedBody {
  let waits = false
  return {
    body: {
      start(sink) {
        waits = true
        source.start({
          write(chunk) {
            waits = sink.write(chunk)
            return waits
          },
          end(trailers) {
            waits = false
            sink.end(trailers)
          },
          fail: (error) => sink.fail(error),
        })
      },
      resume() {
        waits = true
        source.resume()
      },
      cancel: () => source.cancel(),
    },
    waitsForClient: () => waits,
  }
}

/** Passes a body through and copies it for `onCopy` after its end, within `maxBytes` and its budget. */
export function copyBody(
  source: BodySource,
  maxBytes: number,
  onCopy: (copy: Uint8Array) => void,
): BodySource {
  return {
    start(sink) {
      let chunks: Uint8Array[] | undefined = []
      let size = 0
      source.start({
        write(chunk) {
          size += chunk.byteLength
          if (size > maxBytes) chunks = undefined
          else if (chunks && source.budget?.acquire(chunk.byteLength) === false) chunks = undefined
          else chunks?.push(chunk)
          return sink.write(chunk)
        },
        end(trailers) {
          sink.end(trailers)
          if (chunks) onCopy(Buffer.concat(chunks, size))
        },
        fail: (error) => sink.fail(error),
      })
    },
    resume: () => source.resume(),
    cancel: () => source.cancel(),
  }
}
