import { GatewayError } from '../../lib/gateway-error.ts'
import { firstHeader, type Headers } from './headers.ts'

/** One event of an event stream. `event`, `id` and `retry` are present only if the event has these fields. */
export type SseEvent = { event?: string; data: string; id?: string; retry?: number }

export type SseParser = {
  /** Parses the next bytes; reports every completed event before the call returns. */
  push(chunk: Uint8Array): void
  /** Ends the stream. An incomplete event is discarded, as the standard requires. */
  end(): void
}

export type SseParserOptions = {
  /** Limit of the bytes of one event without line ends, and of a single line outside of an event. */
  maxEventBytes: number
  onEvent(event: SseEvent): void
  /** Receives `id` and `retry` without data: not an event, but parameters of a reconnect. */
  onMark?(mark: { id?: string; retry?: number }): void
  /** Receives `upstream_too_large`, once; later input is ignored. Without it `push` throws. */
  onError?(error: GatewayError): void
}

/** State between two chunks. */
type ParserState = {
  /**
   * `start`: the first line, which may begin with a byte order mark; `after-return`: a line feed that belongs
   * to the previous line end may follow; `done`: input is ignored.
   */
  phase: 'start' | 'lines' | 'after-return' | 'done'
  line: PartialLine
  event: PendingEvent
}

/** Pieces of an incomplete line. Lines, not chunks, are decoded: a character is never cut in two. */
type PartialLine = { pieces: Buffer[]; bytes: number }

type PendingEvent = {
  bytes: number
  /** First line of data, and further lines, which most events do not have. */
  data: string | undefined
  moreData: string[]
  /** Other fields. Most events have only data. */
  fields: Omit<SseEvent, 'data'> | undefined
}

const lineFeed = 10
const carriageReturn = 13
const colon = 58
const space = 32

/**
 * Parses an event stream from chunks that may be cut anywhere, also inside a UTF-8 sequence or a CR LF pair.
 * Time is linear in the input, memory at most one event.
 * https://html.spec.whatwg.org/multipage/server-sent-events.html
 */
export function createSseParser(options: SseParserOptions): SseParser {
  const state: ParserState = {
    phase: 'start',
    line: { pieces: [], bytes: 0 },
    event: { bytes: 0, data: undefined, moreData: [], fields: undefined },
  }
  return {
    push(chunk) {
      if (isDone(state) || chunk.byteLength === 0) return
      const bytes = Buffer.isBuffer(chunk)
        ? chunk
        : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
      const rest = readLines(state, options, bytes)
      if (!isDone(state) && rest < bytes.length) storePiece(state, options, bytes, rest)
    },
    end: () => stop(state),
  }
}

function isDone({ phase }: ParserState): boolean {
  return phase === 'done'
}

function stop(state: ParserState): void {
  state.phase = 'done'
  state.line.pieces = []
  state.event.data = undefined
  state.event.moreData = []
}

function refuseTooLarge(state: ParserState, { maxEventBytes, onError }: SseParserOptions): void {
  stop(state)
  const message = `an event of the stream is larger than ${maxEventBytes} bytes`
  const error = new GatewayError('upstream_too_large', message)
  if (onError === undefined) throw error
  onError(error)
}

/** Reads the complete lines of a chunk; returns the start of the incomplete one. */
function readLines(state: ParserState, options: SseParserOptions, bytes: Buffer): number {
  let start = 0
  if (state.phase === 'after-return') {
    state.phase = 'lines'
    if (bytes[0] === lineFeed) start = 1
  }
  let nextLineFeed = bytes.indexOf(lineFeed, start)
  let nextReturn = bytes.indexOf(carriageReturn, start)
  while (!isDone(state)) {
    const byReturn = nextReturn !== -1 && (nextLineFeed === -1 || nextReturn < nextLineFeed)
    const lineEnd = byReturn ? nextReturn : nextLineFeed
    if (lineEnd === -1) break
    completeLine(state, options, bytes, start, lineEnd)
    start = lineEnd + 1
    if (byReturn) {
      if (bytes[start] === lineFeed) start += 1
      else if (start === bytes.length && !isDone(state)) state.phase = 'after-return'
      nextReturn = bytes.indexOf(carriageReturn, start)
    }
    if (nextLineFeed !== -1 && nextLineFeed < start) nextLineFeed = bytes.indexOf(lineFeed, start)
  }
  return start
}

function storePiece(state: ParserState, options: SseParserOptions, bytes: Buffer, start: number): void {
  const { line, event } = state
  line.bytes += bytes.length - start
  if (event.bytes + line.bytes > options.maxEventBytes) refuseTooLarge(state, options)
  // A copy: the owner of the chunk may reuse it.
  else line.pieces.push(Buffer.from(bytes.subarray(start)))
}

function completeLine(
  state: ParserState,
  options: SseParserOptions,
  bytes: Buffer,
  start: number,
  end: number,
): void {
  const { line, event } = state
  const lineBytes = line.bytes + end - start
  if (event.bytes + lineBytes > options.maxEventBytes) {
    refuseTooLarge(state, options)
    return
  }
  if (line.pieces.length === 0) {
    readLine(state, options, bytes, start, end)
    return
  }
  line.pieces.push(bytes.subarray(start, end))
  const whole = Buffer.concat(line.pieces, lineBytes)
  line.pieces = []
  line.bytes = 0
  readLine(state, options, whole, 0, whole.length)
}

/** Reads the line in `[from, end)`. Lines of data, the usual ones, are decoded without a slice. */
function readLine(
  state: ParserState,
  options: SseParserOptions,
  bytes: Buffer,
  from: number,
  end: number,
): void {
  const { event } = state
  const start = state.phase === 'start' && hasByteOrderMark(bytes, from, end) ? from + 3 : from
  state.phase = 'lines'
  if (start === end) {
    completeEvent(event, options)
    return
  }
  if (bytes[start] === colon) return
  event.bytes += end - start
  if (isData(bytes, start, end)) {
    addData(event, bytes.toString('utf8', valueAt(bytes, start + 5, end), end))
    return
  }
  const line = bytes.subarray(start, end)
  const nameEnd = line.indexOf(colon)
  if (nameEnd === -1) {
    addField(event, line.toString(), '')
    return
  }
  const value = line.toString('utf8', valueAt(line, nameEnd + 1, line.length))
  addField(event, line.toString('latin1', 0, nameEnd), value)
}

function addData(event: PendingEvent, value: string): void {
  if (event.data === undefined) event.data = value
  else event.moreData.push(value)
}

function addField(event: PendingEvent, name: string, value: string): void {
  if (name === 'data') addData(event, value)
  else if (name === 'event') fieldsOf(event).event = value
  else if (name === 'id' && !value.includes('\0')) fieldsOf(event).id = value
  else if (name === 'retry' && /^[0-9]+$/.test(value)) fieldsOf(event).retry = Number(value)
}

function fieldsOf(event: PendingEvent): Omit<SseEvent, 'data'> {
  event.fields ??= {}
  return event.fields
}

/** Reports the event of an empty line, and resets it first: a listener may end the parser. */
function completeEvent(pending: PendingEvent, { onEvent, onMark }: SseParserOptions): void {
  const { data: first, moreData, fields } = pending
  const data = moreData.length === 0 || first === undefined ? first : `${first}\n${moreData.join('\n')}`
  pending.bytes = 0
  pending.data = undefined
  if (moreData.length > 0) pending.moreData = []
  pending.fields = undefined
  if (fields === undefined) {
    if (data !== undefined) onEvent({ data })
    return
  }
  if (data !== undefined) {
    const complete: SseEvent = fields.event ? { event: fields.event, data } : { data }
    setMarks(complete, fields)
    onEvent(complete)
    return
  }
  if (fields.id === undefined && fields.retry === undefined) return
  const mark = {}
  setMarks(mark, fields)
  onMark?.(mark)
}

function setMarks(target: { id?: string; retry?: number }, { id, retry }: Omit<SseEvent, 'data'>): void {
  if (id !== undefined) target.id = id
  if (retry !== undefined) target.retry = retry
}

function hasByteOrderMark(bytes: Buffer, start: number, end: number): boolean {
  return end - start >= 3 && bytes[start] === 0xef && bytes[start + 1] === 0xbb && bytes[start + 2] === 0xbf
}

/** Whether a line starts with `data:`. */
function isData(bytes: Buffer, start: number, end: number): boolean {
  return (
    end - start >= 5 &&
    bytes[start] === 0x64 &&
    bytes[start + 1] === 0x61 &&
    bytes[start + 2] === 0x74 &&
    bytes[start + 3] === 0x61 &&
    bytes[start + 4] === colon
  )
}

/** Start of a value: one space after the colon is not part of it. */
function valueAt(bytes: Buffer, start: number, end: number): number {
  return start < end && bytes[start] === space ? start + 1 : start
}

/** Whether the media type of a body is `text/event-stream`. */
export function isEventStream(headers: Headers): boolean {
  return firstHeader(headers, 'content-type')?.toLowerCase().startsWith('text/event-stream') === true
}

/** Serializes an event, with the empty line at its end. */
export function formatSseEvent({ event, data, id, retry }: SseEvent): string {
  let text = ''
  if (event !== undefined) text += `event: ${singleLine(event)}\n`
  if (id !== undefined) text += `id: ${singleLine(id)}\n`
  if (retry !== undefined) text += `retry: ${retry}\n`
  // Translated events are single-line JSON, so the common case is a search and one concatenation.
  if (!data.includes('\n') && !data.includes('\r')) return `${text}data: ${data}\n\n`
  for (const line of data.split(/\r\n|\r|\n/)) text += `data: ${line}\n`
  return `${text}\n`
}

/** Removes line ends: the rest of the value would be read as another field. */
function singleLine(value: string): string {
  return /[\r\n\0]/.test(value) ? value.replaceAll(/[\r\n\0]/g, '') : value
}
