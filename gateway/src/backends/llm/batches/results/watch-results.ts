import { type JsonObject, parseJsonObject } from '../../../../lib/json/json.ts'
import { type BodySource, withTransform } from '../../../../net/http/body.ts'
import { createLineBuffer } from '../../reply/line-buffer.ts'
import { maxMediaLineBytes } from '../../reply/stream.ts'

/** Receives the results of a batch. */
export type ResultWatch = {
  /** Undefined for a line that is not a JSON object, or is too long. */
  result(value: JsonObject | undefined): void
  /** After the last result of a complete body. */
  end(): void
}

/** Reads results as they are forwarded, one line in memory. */
export function watchResults(source: BodySource, watch: ResultWatch): BodySource {
  return withTransform(source, (sink) => {
    const buffer = createLineBuffer()
    let isTooLong = false

    function read(line: Buffer): void {
      const complete = buffer.flush(line)
      if (isTooLong) watch.result(undefined)
      else if (complete.some(isNotSpace)) watch.result(parseJsonObject(complete.toString()))
      isTooLong = false
    }

    function append(rest: Buffer): void {
      if (buffer.size + rest.length <= maxMediaLineBytes) {
        buffer.add(rest)
        return
      }
      isTooLong = true
      buffer.flush(rest)
    }

    return {
      write(chunk) {
        const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
        let start = 0
        for (let end = bytes.indexOf(lineFeed); end !== -1; end = bytes.indexOf(lineFeed, start)) {
          read(bytes.subarray(start, end))
          start = end + 1
        }
        if (start < bytes.length) append(bytes.subarray(start))
        return sink.write(chunk)
      },
      end(trailers) {
        read(Buffer.alloc(0))
        watch.end()
        sink.end(trailers)
      },
      fail: (error) => sink.fail(error),
    }
  })
}

const lineFeed = 0x0a

function isNotSpace(byte: number): boolean {
  return byte > 0x20
}
