import { GatewayError } from '../../../../lib/gateway-error.ts'
import type { BodySink, BodySource } from '../../../../net/http/body.ts'
import type { Headers } from '../../../../net/http/headers.ts'
import { createLineBuffer } from '../../reply/line-buffer.ts'

/** Returns the line to forward, without its end. Undefined input is a line beyond the limit. */
export type CheckLine = (line: Buffer | undefined) => Promise<Buffer>

type State = {
  /** Complete lines that wait for their check: at most those of a chunk. */
  readonly lines: (Buffer | undefined)[]
  /** The source has ended, with trailers or an error. */
  end: { readonly trailers?: Headers | undefined; readonly error?: Error } | undefined
  isChecking: boolean
  /** The client reads slowly. */
  isFull: boolean
  isOver: boolean
}

/**
 * Checks the lines of a body one after another before they are forwarded. The source pauses meanwhile, so
 * that memory contains one chunk and one line. A failed check ends the body with its error.
 */
export function checkLines(source: BodySource, check: CheckLine, maxLineBytes: number): BodySource {
  const state: State = { lines: [], end: undefined, isChecking: false, isFull: false, isOver: false }
  let pump = () => {}
  return {
    start(sink) {
      const advance = createPump(state, { source, sink, check })
      pump = () => void advance()
      source.start(createLineSink(state, pump, maxLineBytes))
    },
    resume() {
      state.isFull = false
      pump()
    },
    cancel() {
      state.isOver = true
      source.cancel()
    },
    budget: source.budget,
  }
}

/** Splits the body into lines. */
function createLineSink(state: State, pump: () => void, maxLineBytes: number): BodySink {
  const buffer = createLineBuffer()
  let isTooLong = false

  function add(rest: Buffer): void {
    const line = buffer.flush(rest)
    state.lines.push(isTooLong || line.length > maxLineBytes ? undefined : line)
    isTooLong = false
  }

  return {
    write(chunk) {
      if (state.isOver) return true
      const bytes = Buffer.from(chunk)
      let start = 0
      for (let end = bytes.indexOf(lineFeed); end !== -1; end = bytes.indexOf(lineFeed, start)) {
        add(bytes.subarray(start, end))
        start = end + 1
      }
      const rest = bytes.subarray(start)
      if (buffer.size + rest.length <= maxLineBytes) buffer.add(rest)
      else {
        isTooLong = true
        buffer.flush(noBytes)
      }
      pump()
      return !state.isChecking && state.lines.length === 0
    },
    end(trailers) {
      if (buffer.size > 0 || isTooLong) add(noBytes)
      state.end = { trailers }
      pump()
    },
    fail(error) {
      state.end = { error }
      pump()
    },
  }
}

type Ends = { readonly source: BodySource; readonly sink: BodySink; readonly check: CheckLine }

function createPump(state: State, { source, sink, check }: Ends): () => Promise<void> {
  function finish(): void {
    if (state.end === undefined) {
      source.resume()
      return
    }
    state.isOver = true
    const { error, trailers } = state.end
    if (error) sink.fail(error)
    else sink.end(trailers)
  }

  return async () => {
    if (state.isChecking || state.isOver) return
    state.isChecking = true
    try {
      while (state.lines.length > 0 && !state.isFull) {
        const checked = await check(state.lines.shift())
        if (state.isOver) return
        state.isFull = !sink.write(Buffer.concat([checked, lineEnd]))
      }
    } catch (error) {
      if (state.isOver) return
      state.isOver = true
      source.cancel()
      sink.fail(error instanceof Error ? error : new GatewayError('internal', 'the check of a line failed'))
      return
    } finally {
      state.isChecking = false
    }
    if (!state.isFull && !state.isOver) finish()
  }
}

const lineFeed = 0x0a
const lineEnd = Buffer.from('\n')
const noBytes = Buffer.alloc(0)
