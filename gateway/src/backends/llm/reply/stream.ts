import { GatewayError } from '../../../lib/gateway-error.ts'
import type { BodySink, BodySource } from '../../../net/http/body.ts'
import { createLineBuffer } from './line-buffer.ts'
import { parseDataLine, type StreamWatch } from './stream-watch.ts'

/** Converts events of the provider's API to the client's. Throws `GatewayError`. */
export type StreamConversion = {
  /** Events for complete lines. */
  convert(lines: Buffer): string
  /** Closing events of a complete stream; empty if they were returned before. */
  end(): string
}

export type RelayOptions = {
  /** Limit of one line, beyond which it is an attack or a defect. */
  maxLineBytes: number
  watch: StreamWatch
  conversion: StreamConversion | undefined
  /** The event that ends a failed stream, in the shape of the client's API. */
  errorEvent(error: Error): string
  onFirstByte(): void
  /** The stream is complete, or the client has cancelled it. */
  onSuccess(): void
  onFailure(error: Error): void
}

/** Limit of a line of text. */
export const maxLineBytes = 1024 * 1024

/** Limit of a line with an image in base64: three times the largest that services send. */
export const maxMediaLineBytes = 32 * 1024 * 1024

/** Shared by both sides of a relay. `over`: the client's stream ended or was cancelled. */
type RelayState = { over: boolean }

/**
 * The client's side of a provider's event stream. Complete lines are forwarded on arrival; an incomplete line
 * is buffered, so that an error event can follow at any time. A truncated stream never looks complete.
 */
export function relayStream(source: BodySource, options: RelayOptions): BodySource {
  const state: RelayState = { over: false }
  return {
    resume: () => source.resume(),
    cancel() {
      if (!state.over) options.onSuccess()
      state.over = true
      source.cancel()
    },
    start(sink) {
      const output = createLineOutput(sink, options)
      const ending = createStreamEnding(state, { source, sink, output, options })
      source.start(createLineInput(state, output, { ...ending, maxLineBytes: options.maxLineBytes }))
    },
  }
}

/** Writes complete lines to the client, converted if the APIs differ. */
type LineOutput = {
  /** `text` is `lines` with one character per byte. Returns false if the client's buffer is full. */
  write(lines: Buffer, text: string): boolean
  /** Closes the last event if its empty line is missing; without one it would be no event. */
  endEvent(): void
  /** Writes the closing events of a complete stream. */
  end(): void
}

function createLineOutput(sink: BodySink, { watch, conversion, onFirstByte }: RelayOptions): LineOutput {
  let started = false
  let last = ''

  function emit(lines: Buffer, text: string, visible: string): boolean {
    last = text
    if (!started) {
      started = true
      onFirstByte()
    }
    if (conversion) {
      const converted = conversion.convert(lines)
      return converted === '' || sink.write(Buffer.from(converted))
    }
    if (visible.length === 0) return true
    return sink.write(visible.length === text.length ? lines : Buffer.from(visible, 'latin1'))
  }

  return {
    write: (lines, text) => emit(lines, text, watch.read(text)),
    endEvent() {
      if (!endsEvent(last)) emit(lineFeed, '\n', '\n')
    },
    end() {
      const closing = conversion?.end() ?? ''
      if (closing !== '') sink.write(Buffer.from(closing))
    },
  }
}

type StreamEnding = {
  /** Ends the stream after the last byte of the upstream or its failure. */
  finish(error: Error | undefined): void
  /** Cancels the upstream after an invalid line or event, and ends the stream with an error event. */
  reject(error: unknown): void
}

type Relay = { source: BodySource; sink: BodySink; output: LineOutput; options: RelayOptions }

function createStreamEnding(state: RelayState, { source, sink, output, options }: Relay): StreamEnding {
  const { watch, errorEvent, onSuccess, onFailure } = options

  function fail(error: Error): void {
    state.over = true
    onFailure(error)
    sink.write(Buffer.from(errorEvent(error)))
    sink.end()
  }

  function reject(error: unknown): void {
    source.cancel()
    fail(error instanceof GatewayError ? error : invalidStream(error))
  }

  return {
    reject,
    finish(error) {
      if (state.over) return
      if (watch.state === 'open') {
        fail(error ?? truncatedStream())
        return
      }
      try {
        output.endEvent()
        if (watch.state === 'ended') output.end()
      } catch (invalidEvent) {
        reject(invalidEvent)
        return
      }
      state.over = true
      if (watch.state === 'failed') onFailure(upstreamReportedError)
      else onSuccess()
      sink.end()
    },
  }
}

/** Receives the provider's chunks and splits them into complete lines. */
function createLineInput(
  state: RelayState,
  output: LineOutput,
  ending: StreamEnding & { maxLineBytes: number },
): BodySink {
  const { maxLineBytes: limit } = ending
  const pending = createLineBuffer()

  function writeLines(bytes: Buffer): boolean {
    const text = bytes.toString('latin1')
    const newline = text.lastIndexOf('\n')
    const lineBytes = pending.size + (newline === -1 ? text.length : text.indexOf('\n'))
    if (lineBytes > limit) throw lineTooLong(limit)
    if (pending.size === 0 && newline === text.length - 1) return output.write(bytes, text)
    if (newline === -1) {
      pending.add(bytes)
      return true
    }
    const lines = pending.flush(bytes.subarray(0, newline + 1))
    pending.add(bytes.subarray(newline + 1))
    return output.write(lines, lines.toString('latin1'))
  }

  /** A last line without a line end counts as truncated unless its data is complete. */
  function writeLastLine(): void {
    if (pending.size === 0) return
    const lines = pending.flush(lineFeed)
    const text = lines.toString('latin1')
    if (isCompleteData(text)) output.write(lines, text)
  }

  return {
    write(chunk) {
      if (state.over) return true
      try {
        return writeLines(asBuffer(chunk))
      } catch (error) {
        ending.reject(error)
        return true
      }
    },
    end() {
      if (state.over) return
      try {
        writeLastLine()
      } catch (error) {
        ending.reject(error)
        return
      }
      ending.finish(undefined)
    },
    fail: (error) => ending.finish(error),
  }
}

function isCompleteData(line: string): boolean {
  return parseDataLine(line) !== undefined || /^data: ?\[DONE\]\s*$/.test(line)
}

function endsEvent(lines: string): boolean {
  return lines === '\n' || lines === '\r\n' || lines.endsWith('\n\n') || lines.endsWith('\n\r\n')
}

function lineTooLong(limit: number): GatewayError {
  return new GatewayError('upstream_too_large', `a line of the stream is larger than ${limit} bytes`)
}

/** Created on demand: an error costs more than everything else at the end of a stream. */
function truncatedStream(): GatewayError {
  return new GatewayError('upstream_reset', 'upstream ended the stream before it was complete')
}

const upstreamReportedError = new GatewayError('upstream_invalid', 'upstream reported an error in its stream')

function invalidStream(cause: unknown): GatewayError {
  return new GatewayError('upstream_invalid', 'upstream stream cannot be read', { cause })
}

const lineFeed = Buffer.from('\n')

function asBuffer(chunk: Uint8Array): Buffer {
  return Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
}
