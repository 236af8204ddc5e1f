import { Readable } from 'node:stream'
import type { BodySource } from '../http/body.ts'

/** Read-ahead limit in bytes; above it the source pauses. */
const maxAheadBytes = 64 * 1024

/**
 * Body source as a stream for the client library. The source starts when a connection is available, and is
 * cancelled when the stream is destroyed before its end, after an early response or a failed connection.
 */
export function requestStream(source: BodySource): Readable {
  let started = false
  let full = false
  let over = false

  const stream = new Readable({
    highWaterMark: maxAheadBytes,
    read() {
      if (!started) {
        started = true
        source.start(sink)
        return
      }
      if (!full) return
      full = false
      source.resume()
    },
    destroy(error, callback) {
      if (!over) {
        over = true
        source.cancel()
      }
      callback(error)
    },
  })
  const sink = {
    write(chunk: Uint8Array) {
      if (over) return true
      full = !stream.push(chunk)
      return !full
    },
    end() {
      over = true
      stream.push(null)
    },
    fail(error: Error) {
      over = true
      stream.destroy(error)
    },
  }
  // The call reports the error; a stream without a listener would end the process.
  stream.on('error', () => {})
  return stream
}
