import { isDeepStrictEqual } from 'node:util'
import { createLlhttp } from './llhttp.ts'
import { type Outcome, parsePieces } from './outcome.ts'
import { type Random, randomResponse, seededRandom } from './random-responses.ts'

export type Comparison = {
  cases: number
  /** Responses that both parsers accept, both refuse or leave incomplete, and only llhttp accepts. */
  accepted: number
  refused: number
  stricter: number
}

/** Violations of responses that llhttp accepts: their length or meaning depends on the recipient. */
const stricterReasons: ReadonlySet<string> = new Set([
  'unsupported transfer-encoding',
  'tab in transfer-encoding',
  'transfer-encoding in HTTP/1.0',
  'unexpected protocol upgrade',
  'informational response closes the connection',
  'informational response with a body',
  'invalid status line',
  'invalid chunk extension',
  'content-length has too many digits',
])

/**
 * Compares the client's parser with llhttp on random responses. Whatever it accepts, llhttp accepts with the
 * same status, fields, body and end; whatever it refuses alone is one of the documented violations. The
 * result is independent of the division into pieces. Throws an error with the response at the first
 * difference.
 */
export function compareResponses({ seed, cases }: { seed: number; cases: number }): Comparison {
  const random = seededRandom(seed)
  const parseWithLlhttp = createLlhttp()
  const comparison: Comparison = { cases, accepted: 0, refused: 0, stricter: 0 }
  for (let index = 0; index < cases; index++) {
    const text = randomResponse(random)
    const method = random.oneOf(['GET', 'GET', 'GET', 'POST', 'HEAD'])
    const bytes = Buffer.from(text, 'latin1')
    const ours = parsePieces([bytes], { method })
    const theirs = parseWithLlhttp(bytes, method)
    const problem = difference(ours, theirs) ?? divisionProblem(bytes, { method, random }, ours)
    if (problem !== undefined) {
      throw new Error(`${problem}: ${method} ${JSON.stringify(text)}\n${JSON.stringify({ ours, theirs })}`)
    }
    if (ours.kind === 'complete') comparison.accepted += 1
    else if (theirs.kind === 'complete') comparison.stricter += 1
    else comparison.refused += 1
  }
  return comparison
}

function difference(ours: Outcome, theirs: Outcome): string | undefined {
  if (ours.kind === 'complete') {
    if (theirs.kind !== 'complete') return 'accepted, but llhttp does not'
    return isEqual(ours, theirs) ? undefined : 'different content'
  }
  if (theirs.kind !== 'complete') return undefined
  if (ours.kind === 'incomplete') return 'incomplete, but llhttp accepts it'
  return stricterReasons.has(ours.reason) ? undefined : 'refused, but llhttp accepts it'
}

function isEqual(ours: Outcome, theirs: Outcome): boolean {
  const content = ({ heads, body, trailers }: Outcome) => ({
    heads: heads.map(({ status, headers }) => ({ status, headers: { ...headers } })),
    body,
    trailers: trailers && { ...trailers },
  })
  if (!isDeepStrictEqual(content(ours), content(theirs))) return false
  const [our, their] = [ours.heads.at(-1), theirs.heads.at(-1)]
  // llhttp has no persistent connections behind responses that never have a body but announce one.
  return our?.persistent !== true || their?.persistent === true || ours.body === ''
}

/** Parses random pieces, single bytes, and with pauses. */
function divisionProblem(
  bytes: Buffer,
  { method, random }: { method: string; random: Random },
  whole: Outcome,
): string | undefined {
  const size = random.oneOf([1, 2, 7, 30])
  const pieces: Buffer[] = []
  for (let at = 0; at < bytes.length; ) {
    const end = at + 1 + random.below(size)
    pieces.push(bytes.subarray(at, end))
    at = end
  }
  const divided = parsePieces(pieces, { method, pauses: random.below(2) === 0 })
  if (divided.kind !== whole.kind) {
    // A refusal may come at an earlier byte, when an incomplete head cannot become valid.
    return `division into pieces changes the result to ${divided.kind} ${divided.reason}`
  }
  return isDeepStrictEqual({ ...divided, reason: '' }, { ...whole, reason: '' })
    ? undefined
    : 'division into pieces changes the content'
}
