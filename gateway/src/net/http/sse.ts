import { GatewayError } from '../../lib/gateway-error.ts'
import { firstHeader, type Headers } from './headers.ts'

/**
 * One event of an event stream. `event`, `id` and `retry` are present only where this very event carried
 * them.
 */
export type SseEvent = { event?: string; data: string; id?: string; retry?: number }

export type SseParser = {
  /** Takes the next bytes; every event they complete is reported before the call returns. */
  push(chunk: Uint8Array): void
  /**
   * Ends the stream. What is still incomplete is discarded, as the standard says, and nothing is reported any
   * more.
   */
  end(): void
}

export type SseParserOptions = {
  /**
   * Bound on the bytes of one event, line ends not counted; also on a single line that is no part of an
   * event.
   */
  maxEventBytes: number
  onEvent(event: SseEvent): void
  /**
   * Told of `id` and `retry` that come without data: no event to anybody, but what a reader reconnects with.
   */
  onMark?(mark: { id?: string; retry?: number }): void
  /**
   * Told once, with `upstream_too_large`, after which the parser ignores everything. Without it `push`
   * throws.
   */
  onError?(error: GatewayError): void
}

const lineFeed = 10
const carriageReturn = 13
const colon = 58
const space = 32

/**
 * Parses an event stream from chunks that may be cut anywhere, also inside a UTF-8 sequence or a CR LF pair.
 * Time is linear in the input, memory at most one event. https://html.spec.whatwg.org/multipage/server-sent-events.html
 */
export function createSseParser({ maxEventBytes, onEvent, onMark, onError }: SseParserOptions): SseParser {
  /**
   * Pieces of the line that is not complete yet. Lines, not chunks, are decoded, so a character is never cut
   * in two.
   */
  let pieces: Buffer[] = []
  let pieceBytes = 0
  let eventBytes = 0
  let atStart = true
  let skipLineFeed = false
  let done = false
  /** Lines of data: the first one, and those behind it, which most events do not have. */
  let data: string | undefined
  let moreData: string[] = []
  /** What came with it. Most events are nothing but data. */
  let fields: Omit<SseEvent, 'data'> | undefined

  return {
    push(chunk) {
      if (done || chunk.byteLength === 0) return
      const bytes = Buffer.isBuffer(chunk)
        ? chunk
        : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
      let start = 0
      if (skipLineFeed) {
        skipLineFeed = false
        if (bytes[0] === lineFeed) start = 1
      }
      let nextLineFeed = bytes.indexOf(lineFeed, start)
      let nextReturn = bytes.indexOf(carriageReturn, start)
      while (!done) {
        const byReturn = nextReturn !== -1 && (nextLineFeed === -1 || nextReturn < nextLineFeed)
        const lineEnd = byReturn ? nextReturn : nextLineFeed
        if (lineEnd === -1) break
        takeLine(bytes, start, lineEnd)
        start = lineEnd + 1
        if (byReturn) {
          if (start === bytes.length) skipLineFeed = true
          else if (bytes[start] === lineFeed) start += 1
          nextReturn = bytes.indexOf(carriageReturn, start)
        }
        if (nextLineFeed !== -1 && nextLineFeed < start) nextLineFeed = bytes.indexOf(lineFeed, start)
      }
      if (!done && start < bytes.length) keepPiece(bytes, start)
    },
    end() {
      done = true
      pieces = []
      data = undefined
      moreData = []
    },
  }

  function keepPiece(bytes: Buffer, start: number): void {
    pieceBytes += bytes.length - start
    if (eventBytes + pieceBytes > maxEventBytes) {
      tooLarge()
      return
    }
    // A copy: the chunk belongs to whoever delivered it and may be reused.
    pieces.push(Buffer.from(bytes.subarray(start)))
  }

  function takeLine(bytes: Buffer, start: number, end: number): void {
    const lineBytes = pieceBytes + end - start
    if (eventBytes + lineBytes > maxEventBytes) {
      tooLarge()
      return
    }
    if (pieces.length === 0) {
      readLine(bytes, start, end)
      return
    }
    pieces.push(bytes.subarray(start, end))
    const line = Buffer.concat(pieces, lineBytes)
    pieces = []
    pieceBytes = 0
    readLine(line, 0, line.length)
  }

  /** Reads the line in `[from, end)`. Lines of data are not cut out first: a stream consists of them. */
  function readLine(bytes: Buffer, from: number, end: number): void {
    const start = atStart && hasByteOrderMark(bytes, from, end) ? from + 3 : from
    atStart = false
    if (start === end) {
      dispatch()
      return
    }
    if (bytes[start] === colon) return
    eventBytes += end - start
    if (isData(bytes, start, end)) {
      takeData(bytes.toString('utf8', valueAt(bytes, start + 5, end), end))
      return
    }
    const line = bytes.subarray(start, end)
    const nameEnd = line.indexOf(colon)
    if (nameEnd === -1) {
      takeField(line.toString(), '')
      return
    }
    takeField(
      line.toString('latin1', 0, nameEnd),
      line.toString('utf8', valueAt(line, nameEnd + 1, line.length)),
    )
  }

  function takeData(value: string): void {
    if (data === undefined) data = value
    else moreData.push(value)
  }

  function takeField(name: string, value: string): void {
    if (name === 'data') takeData(value)
    else if (name === 'event') fields = { ...fields, event: value }
    else if (name === 'id' && !value.includes('\0')) fields = { ...fields, id: value }
    else if (name === 'retry' && /^[0-9]+$/.test(value)) fields = { ...fields, retry: Number(value) }
  }

  function dispatch(): void {
    const text = moreData.length === 0 || data === undefined ? data : `${data}\n${moreData.join('\n')}`
    const named = fields
    eventBytes = 0
    data = undefined
    if (moreData.length > 0) moreData = []
    fields = undefined
    if (named === undefined) {
      if (text !== undefined) onEvent({ data: text })
      return
    }
    const { event, ...rest } = named
    if (text === undefined) {
      if (rest.id !== undefined || rest.retry !== undefined) onMark?.(rest)
      return
    }
    onEvent({ ...(event ? { event } : undefined), data: text, ...rest })
  }

  function tooLarge(): void {
    done = true
    pieces = []
    data = undefined
    moreData = []
    const error = new GatewayError(
      'upstream_too_large',
      `an event of the stream is larger than ${maxEventBytes} bytes`,
    )
    if (onError === undefined) throw error
    onError(error)
  }
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

/** Where a value starts: one space behind the colon is not part of it. */
function valueAt(bytes: Buffer, start: number, end: number): number {
  return start < end && bytes[start] === space ? start + 1 : start
}

/** Whether the media type of a body is `text/event-stream`. */
export function isEventStream(headers: Headers): boolean {
  return firstHeader(headers, 'content-type')?.toLowerCase().startsWith('text/event-stream') === true
}

/** The event as it goes over the wire, closing empty line included. */
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

/** A line end inside a field would start a field of its own. */
function singleLine(value: string): string {
  return /[\r\n\0]/.test(value) ? value.replaceAll(/[\r\n\0]/g, '') : value
}
