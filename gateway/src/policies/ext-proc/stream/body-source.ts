import { type BodySink, type BodySource, isSource } from '../../../net/http/body.ts'
import type { Headers } from '../../../net/http/headers.ts'

/** Size of the messages of a buffered body. */
const chunkBytes = 64 * 1024

/** A body as a stream of chunks of limited size. */
export function sourceOf(body: Uint8Array | BodySource, trailers?: Headers): BodySource {
  return isSource(body) ? body : sourceOfBytes(body, trailers)
}

function sourceOfBytes(body: Uint8Array, trailers: Headers | undefined): BodySource {
  let position = 0
  let sink: BodySink | undefined
  let phase: 'waiting' | 'writing' | 'over' = 'waiting'

  function write() {
    if (phase !== 'waiting' || sink === undefined) return
    phase = 'writing'
    let accepts = true
    while (accepts && position < body.byteLength && phase === 'writing') {
      const chunk = body.subarray(position, position + chunkBytes)
      position += chunk.byteLength
      accepts = sink.write(chunk)
    }
    if (phase !== 'writing') return
    phase = 'waiting'
    if (position < body.byteLength) return
    phase = 'over'
    sink.end(trailers)
  }

  return {
    start(reader) {
      sink = reader
      write()
    },
    resume: write,
    cancel() {
      phase = 'over'
    },
  }
}
