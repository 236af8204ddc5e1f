import { GatewayError } from '../../../lib/gateway-error.ts'
import type { BodySource } from '../../../net/http/body.ts'
import { parseDataLine, type StreamWatch } from './stream-watch.ts'

/** Turns the upstream's events into the client's where their APIs differ; takes whole lines. Throws `GatewayError`. */
export type StreamConversion = (lines: Buffer) => string

export type RelayOptions = {
  watch: StreamWatch
  conversion: StreamConversion | undefined
  /** The event that ends a stream that broke, in the client API's own shape. */
  errorEvent(error: Error): string
  onFirstByte(): void
  onFailure(error: Error): void
}

/** Bound on one line of a stream; more is no event but an attack or a defect. */
export const maxLineBytes = 1024 * 1024

/**
 * The client's side of an upstream's event stream. Whole lines go on as they come; a line that is not complete waits, so
 * that a stream that breaks can always be ended by an event of its own. A stream that broke never looks complete.
 */
export function relayStream(source: BodySource, options: RelayOptions): BodySource {
  const { watch, conversion, errorEvent, onFirstByte, onFailure } = options
  let over = false
  return {
    resume: () => source.resume(),
    cancel() {
      over = true
      source.cancel()
    },
    start(sink) {
      const held = createLineBuffer()
      let started = false
      let last = ''

      function forward(lines: Buffer, text: string): boolean {
        return emit(lines, text, watch.read(text))
      }

      function emit(lines: Buffer, text: string, kept: string): boolean {
        last = text
        if (!started) {
          started = true
          onFirstByte()
        }
        if (conversion) {
          const converted = conversion(lines)
          return converted === '' || sink.write(Buffer.from(converted))
        }
        if (kept.length === 0) return true
        return sink.write(kept.length === text.length ? lines : Buffer.from(kept, 'latin1'))
      }

      /** The upstream has nothing more to say. */
      function finish(error: Error | undefined): void {
        if (over) return
        if (watch.state === 'open') {
          breakOff(error ?? truncatedStream())
          return
        }
        try {
          // Without its closing empty line the last event would be none.
          if (!endsEvent(last)) emit(lineFeed, '\n', '\n')
        } catch (unreadableEvent) {
          reject(unreadableEvent)
          return
        }
        over = true
        if (watch.state === 'failed') onFailure(upstreamReportedError)
        sink.end()
      }

      function breakOff(error: Error): void {
        over = true
        onFailure(error)
        sink.write(Buffer.from(errorEvent(error)))
        sink.end()
      }

      /** The upstream says something it should not: nothing more is wanted of it. */
      function reject(error: unknown): void {
        source.cancel()
        breakOff(error instanceof GatewayError ? error : invalidStream(error))
      }

      source.start({
        write(chunk) {
          if (over) return true
          const bytes = asBuffer(chunk)
          const text = bytes.toString('latin1')
          const newline = text.lastIndexOf('\n')
          const lineBytes = held.size + (newline === -1 ? text.length : text.indexOf('\n'))
          if (lineBytes > maxLineBytes) {
            reject(lineTooLong)
            return true
          }
          try {
            if (held.size === 0 && newline === text.length - 1) return forward(bytes, text)
            if (newline === -1) {
              held.add(bytes)
              return true
            }
            const lines = held.take(bytes.subarray(0, newline + 1))
            held.add(bytes.subarray(newline + 1))
            return forward(lines, lines.toString('latin1'))
          } catch (error) {
            reject(error)
            return true
          }
        },
        end() {
          if (over) return
          try {
            if (held.size > 0) {
              // A line without its end was cut, unless its data is whole all the same.
              const lines = held.take(lineFeed)
              const text = lines.toString('latin1')
              if (isWholeData(text)) forward(lines, text)
            }
          } catch (error) {
            reject(error)
            return
          }
          finish(undefined)
        },
        fail: finish,
      })
    },
  }
}

function isWholeData(line: string): boolean {
  return parseDataLine(line) !== undefined || /^data: ?\[DONE\]\s*$/.test(line)
}

function endsEvent(lines: string): boolean {
  return lines === '\n' || lines === '\r\n' || lines.endsWith('\n\n') || lines.endsWith('\n\r\n')
}

/** The beginning of a line whose end has not come. */
type LineBuffer = {
  readonly size: number
  add(bytes: Buffer): void
  /** What was held, followed by `rest`; nothing is held any more. */
  take(rest: Buffer): Buffer
}

/** Copies into a buffer that doubles, so that a line in tiny pieces costs no more than one in large ones. */
function createLineBuffer(): LineBuffer {
  let buffer = emptyBuffer
  let size = 0
  return {
    get size() {
      return size
    },
    add(bytes) {
      const needed = size + bytes.length
      if (needed > buffer.length) {
        const larger = Buffer.allocUnsafe(needed * 2)
        buffer.copy(larger, 0, 0, size)
        buffer = larger
      }
      bytes.copy(buffer, size)
      size = needed
    },
    take(rest) {
      if (size === 0) return rest
      const taken = Buffer.concat([buffer.subarray(0, size), rest])
      buffer = emptyBuffer
      size = 0
      return taken
    },
  }
}

const lineTooLong = new GatewayError(
  'upstream_too_large',
  `a line of the stream is larger than ${maxLineBytes} bytes`,
)
/** Not made beforehand: an error costs more than all else that the end of a stream does. */
function truncatedStream(): GatewayError {
  return new GatewayError('upstream_reset', 'upstream ended the stream before it was complete')
}

const upstreamReportedError = new GatewayError('upstream_invalid', 'upstream reported an error in its stream')

function invalidStream(cause: unknown): GatewayError {
  return new GatewayError('upstream_invalid', 'upstream stream cannot be read', { cause })
}

const emptyBuffer = Buffer.alloc(0)
const lineFeed = Buffer.from('\n')

function asBuffer(chunk: Uint8Array): Buffer {
  return Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
}
