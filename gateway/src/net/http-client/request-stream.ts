import { Readable } from 'node:stream'
import type { BodySource } from '../http/body.ts'

/** Bytes read ahead of the connection; more pauses the source. */
const maxAheadBytes = 64 * 1024

/**
 * A source as the stream the client library reads. It is started when there is a connection to write it to, and cancelled
 * when the stream is destroyed before its end: an answer that came early, or a connection that broke.
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
  // Whoever asked hears of it from the call; a stream without a listener would end the process.
  stream.on('error', () => {})
  return stream
}
