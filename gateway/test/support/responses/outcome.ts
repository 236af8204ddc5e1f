import type { Headers } from '../../../src/net/http/headers.ts'
import {
  createResponseParser,
  endOfConnection,
  expectResponse,
  parse,
  resume,
} from '../../../src/net/http1-client/parser/parser.ts'

/** Result of parsing the bytes of a connection up to the end of the first final response. */
export type Outcome = {
  kind: 'complete' | 'incomplete' | 'refused'
  /** Informational heads and the final one. */
  heads: { status: number; headers: Headers; persistent: boolean }[]
  body: string
  trailers: Headers | undefined
  /** Violation of a refused response. */
  reason: string
}

export type Delivery = {
  method: string
  upgrade?: boolean
  /** The sink pauses at every piece of the body. */
  pauses?: boolean
}

/** Parses pieces with the client's parser, then ends the connection. */
export function parsePieces(
  pieces: readonly Buffer[],
  { method, upgrade = false, pauses = false }: Delivery,
): Outcome {
  const outcome: Outcome = { kind: 'incomplete', heads: [], body: '', trailers: undefined, reason: '' }
  const parser = createResponseParser({
    head({ status, headers, persistent }) {
      outcome.heads.push({ status, headers, persistent })
    },
    data(bytes) {
      outcome.body += bytes.toString('latin1')
      parser.paused = pauses
    },
    end(trailers) {
      outcome.kind = 'complete'
      outcome.trailers = trailers
    },
  })
  expectResponse(parser, { method, upgrade })
  for (const piece of pieces) {
    let violation = parse(parser, piece)
    while (violation === undefined && parser.paused) violation = resume(parser)
    // Bytes behind a response are a violation of the connection, not of the response.
    if (outcome.kind === 'complete') return outcome
    if (violation !== undefined) return { ...outcome, kind: 'refused', reason: violation.message }
  }
  endOfConnection(parser)
  return outcome
}
