import { createRequire } from 'node:module'
import type { Headers } from '../../../src/net/http/headers.ts'
import type { Outcome } from './outcome.ts'

/** The parser of Node, an independent implementation of HTTP/1.1. */
type NativeParser = {
  initialize(type: number, resource: object, maxHeaderSize: number, leniency: number): void
  execute(bytes: Buffer): number | Error
  finish(): unknown
  [callback: number]: unknown
}

type NativeParserClass = {
  new (): NativeParser
  RESPONSE: number
  kOnHeaders: number
  kOnHeadersComplete: number
  kOnBody: number
  kOnMessageComplete: number
}

const { HTTPParser }: { HTTPParser: NativeParserClass } = createRequire(import.meta.url)('node:_http_common')

/**
 * Creates a function that parses the bytes of a whole connection up to the end of the first final response.
 * It uses one parser, because their native memory is not collected.
 */
export function createLlhttp(): (bytes: Buffer, method: string) => Outcome {
  const parser = new HTTPParser()
  return (bytes, method) => parseWith(parser, bytes, method)
}

function parseWith(parser: NativeParser, bytes: Buffer, method: string): Outcome {
  const outcome: Outcome = { kind: 'incomplete', heads: [], body: '', trailers: undefined, reason: '' }
  let lines: string[] = []
  let isFinal = false
  parser.initialize(HTTPParser.RESPONSE, {}, 10_000_000, 0)
  parser[HTTPParser.kOnHeaders] = (more: string[]) => {
    lines.push(...more)
  }
  parser[HTTPParser.kOnHeadersComplete] = (...facts: unknown[]) => {
    const [, , received, , , status, , , persistent] = facts as [
      number,
      number,
      string[] | undefined,
      unknown,
      unknown,
      number,
      string,
      boolean,
      boolean,
    ]
    if (outcome.kind === 'complete') return 0
    const headers = fieldsOf([...lines, ...(received ?? [])])
    lines = []
    isFinal = status >= 200
    outcome.heads.push({ status, headers, persistent })
    return method === 'HEAD' ? 1 : 0
  }
  parser[HTTPParser.kOnBody] = (piece: Buffer) => {
    if (outcome.kind !== 'complete') outcome.body += piece.toString('latin1')
  }
  parser[HTTPParser.kOnMessageComplete] = () => {
    if (outcome.kind === 'complete' || !isFinal) return
    if (lines.length > 0) outcome.trailers = fieldsOf(lines)
    outcome.kind = 'complete'
  }
  const result = parser.execute(bytes)
  if (!(result instanceof Error)) parser.finish()
  else if (outcome.kind !== 'complete') {
    outcome.kind = 'refused'
    outcome.reason = 'reason' in result ? String(result.reason) : result.message
  }
  return outcome
}

function fieldsOf(lines: readonly string[]): Headers {
  const headers = new Map<string, string | string[]>()
  for (let at = 0; at < lines.length; at += 2) {
    const name = (lines[at] ?? '').toLowerCase()
    const value = lines[at + 1] ?? ''
    const present = headers.get(name)
    if (present === undefined) headers.set(name, value)
    else if (typeof present === 'string') headers.set(name, [present, value])
    else present.push(value)
  }
  return Object.fromEntries(headers)
}
