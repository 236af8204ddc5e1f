import type { Headers } from '../../http/headers.ts'
import { type Block, createBlock, readBlock } from './block.ts'
import { type ChunkLine, createChunkLine, nextChunkLine, readChunkLine } from './chunks.ts'
import { readFields } from './fields.ts'
import { chunked, parseHead, type RequestFacts, type ResponseHead, untilClose } from './head.ts'
import { malformed, type Violation } from './violation.ts'

/** Receiver of a response. Its functions may call `pause` and `stop`. */
export type ResponseSink = {
  /**
   * Called for informational responses (1xx) as well. After a 101, `parser.rest` has the new protocol's
   * bytes.
   */
  head(head: ResponseHead): void
  data(bytes: Buffer): void
  end(trailers: Headers | undefined): void
}

/**
 * Strict parser of HTTP/1.1 responses (RFC 9112) of one connection. Anything that two recipients may
 * interpret differently is a violation.
 */
export type ResponseParser = {
  readonly sink: ResponseSink
  readonly block: Block
  readonly line: ChunkLine
  /**
   * `idle`: no response is expected; `complete`: the body has arrived, its end is not reported yet;
   * `stopped`: all further bytes are discarded.
   */
  state:
    | 'idle'
    | 'head'
    | 'length'
    | 'untilClose'
    | 'chunkLine'
    | 'chunk'
    | 'chunkCr'
    | 'chunkLf'
    | 'trailers'
    | 'trailerFields'
    | 'lastLf'
    | 'complete'
    | 'stopped'
  request: RequestFacts
  /** Bytes to come of the body or the chunk. */
  left: number
  trailers: Headers | undefined
  paused: boolean
  /** Bytes received while paused, or of another protocol. */
  rest: Buffer
}

const nothing = Buffer.alloc(0)
const noRequest: RequestFacts = { method: '', upgrade: false }
const statusLineStart = 'HTTP/1.'

export function createResponseParser(sink: ResponseSink): ResponseParser {
  return {
    sink,
    block: createBlock(),
    line: createChunkLine(),
    state: 'idle',
    request: noRequest,
    left: 0,
    trailers: undefined,
    paused: false,
    rest: nothing,
  }
}

/** Expects the response to a request. */
export function expectResponse(parser: ResponseParser, request: RequestFacts): void {
  parser.request = request
  parser.state = 'head'
}

/** Discards all further bytes. */
export function stop(parser: ResponseParser): void {
  parser.state = 'stopped'
  parser.rest = nothing
}

/**
 * Parses received bytes. While paused, they are stored and parsed by `resume`. After a violation the
 * connection is unusable.
 */
export function parse(parser: ResponseParser, bytes: Buffer): Violation | undefined {
  let at = 0
  while (!parser.paused && (at < bytes.length || parser.state === 'complete')) {
    if (parser.state === 'stopped') return undefined
    const next = step(parser, bytes, at)
    if (typeof next !== 'number') return next
    at = next
  }
  if (at < bytes.length && parser.state !== 'stopped') keepRest(parser, bytes, at)
  return undefined
}

function keepRest(parser: ResponseParser, bytes: Buffer, from: number): void {
  const rest = from === 0 ? bytes : bytes.subarray(from)
  parser.rest = parser.rest.length === 0 ? rest : Buffer.concat([parser.rest, rest])
}

/** Continues after a pause. */
export function resume(parser: ResponseParser): Violation | undefined {
  const { rest } = parser
  parser.paused = false
  parser.rest = nothing
  return parse(parser, rest)
}

/** Reports the end of the connection. Returns whether it completes a response. */
export function endOfConnection(parser: ResponseParser): boolean {
  if (parser.state !== 'untilClose') return false
  complete(parser)
  return true
}

/** Parses one element at position `at`; returns the position behind it. */
function step(parser: ResponseParser, bytes: Buffer, at: number): number | Violation {
  switch (parser.state) {
    case 'head':
      return parseBlock(parser, bytes, at)
    case 'length':
      return readLength(parser, bytes, at)
    case 'chunkLine':
      return readLine(parser, bytes, at)
    case 'chunk':
      return readChunk(parser, bytes, at)
    case 'chunkCr':
      return expectByte(parser, bytes[at] === 0x0d, 'chunkLf') ?? at + 1
    case 'chunkLf':
      nextChunkLine(parser.line)
      return expectByte(parser, bytes[at] === 0x0a, 'chunkLine') ?? at + 1
    case 'trailers':
      parser.state = bytes[at] === 0x0d ? 'lastLf' : 'trailerFields'
      return parser.state === 'lastLf' ? at + 1 : at
    case 'trailerFields':
      return readTrailers(parser, bytes, at)
    case 'lastLf':
      return expectByte(parser, bytes[at] === 0x0a, 'complete') ?? at + 1
    case 'untilClose':
      parser.sink.data(at === 0 ? bytes : bytes.subarray(at))
      return bytes.length
    case 'complete':
      complete(parser)
      return at
    case 'idle':
      return malformed('bytes without a request')
    case 'stopped':
      return bytes.length
  }
}

function parseBlock(parser: ResponseParser, bytes: Buffer, at: number): number | Violation {
  const block = readBlock(parser.block, bytes, at)
  if (block === undefined) return checkStatusLine(parser.block) ?? bytes.length
  if (block.kind === 'violation') return block
  const head = parseHead(block.text, parser.request)
  if (head.kind === 'violation') return head
  if (head.status === 101) {
    parser.state = 'stopped'
    parser.rest = bytes.subarray(block.next)
  } else if (head.status >= 200) startBody(parser, head.length)
  parser.sink.head(head)
  return block.next
}

/** Another protocol is refused at its first bytes, not when the wait for the head ends. */
function checkStatusLine({ bytes, size }: Block): Violation | undefined {
  const start = bytes.toString('latin1', 0, Math.min(size, statusLineStart.length))
  return statusLineStart.startsWith(start) ? undefined : malformed('invalid status line')
}

function startBody(parser: ResponseParser, length: number): void {
  if (length === chunked) {
    nextChunkLine(parser.line)
    parser.line.extensionBytes = 0
    parser.state = 'chunkLine'
  } else if (length === untilClose) parser.state = 'untilClose'
  else if (length === 0) parser.state = 'complete'
  else {
    parser.state = 'length'
    parser.left = length
  }
}

function readLength(parser: ResponseParser, bytes: Buffer, at: number): number {
  const end = Math.min(bytes.length, at + parser.left)
  parser.left -= end - at
  if (parser.left === 0) parser.state = 'complete'
  parser.sink.data(at === 0 && end === bytes.length ? bytes : bytes.subarray(at, end))
  return end
}

function readLine(parser: ResponseParser, bytes: Buffer, from: number): number | Violation {
  const { line } = parser
  for (let at = from; at < bytes.length; at++) {
    const ended = readChunkLine(line, bytes[at] ?? 0)
    if (ended === false) continue
    if (ended !== true) return ended
    parser.left = line.size
    parser.state = line.size === 0 ? 'trailers' : 'chunk'
    return at + 1
  }
  return bytes.length
}

function readChunk(parser: ResponseParser, bytes: Buffer, at: number): number {
  const end = Math.min(bytes.length, at + parser.left)
  parser.left -= end - at
  if (parser.left === 0) parser.state = 'chunkCr'
  parser.sink.data(bytes.subarray(at, end))
  return end
}

function expectByte(
  parser: ResponseParser,
  isExpected: boolean,
  next: ResponseParser['state'],
): Violation | undefined {
  if (!isExpected) return malformed('invalid end of a chunk')
  parser.state = next
  return undefined
}

function readTrailers(parser: ResponseParser, bytes: Buffer, at: number): number | Violation {
  const block = readBlock(parser.block, bytes, at)
  if (block === undefined) return bytes.length
  if (block.kind === 'violation') return block
  const trailers: Headers = {}
  const violation = readFields(block.text, 0, trailers)
  if (violation !== undefined) return violation
  parser.trailers = trailers
  parser.state = 'complete'
  return block.next
}

function complete(parser: ResponseParser): void {
  const { trailers } = parser
  parser.state = 'idle'
  parser.trailers = undefined
  parser.sink.end(trailers)
}
