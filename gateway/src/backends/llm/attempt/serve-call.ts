import { GatewayError } from '../../../lib/gateway-error.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import { type Refusal, refuse } from '../../../pipeline/errors.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import type { Candidate } from '../models/candidate.ts'
import { type Call, releaseRequest } from '../request/call.ts'
import { type AttemptOptions, attemptCandidate } from './attempt.ts'
import { recordSkipped } from './attempt-record.ts'

/**
 * Serves a call with its candidates, in order, until one succeeds. A failed connection, a time limit, an
 * invalid response, a stream that fails before its first content, 5xx, 429 and responses that `health` counts
 * as failures lead to the next candidate. Evicted targets are tried last. Once the response to the client has
 * started, there is no failover. The outcome of the last candidate is final.
 */
export async function serveCall(exchange: Exchange, call: Call, options: AttemptOptions): Promise<Reply> {
  const queue = createQueue(exchange, call.candidates, options)
  let refusal: Refusal | undefined
  let failure: GatewayError | undefined
  for (let next = queue.next(); next !== undefined; next = queue.next()) {
    const { candidate, isLast } = next
    const outcome = await attemptCandidate(exchange, call, candidate, { ...options, isLast })
    if (outcome.kind === 'reply') return outcome.reply
    if (outcome.kind === 'refused') refusal ??= outcome.refusal
    else failure = outcome.failure
  }
  releaseRequest(call)
  if (failure) throw failure
  if (refusal) return refuse(exchange, refusal)
  throw new GatewayError('internal', 'the call has no candidates')
}

type Queued = { readonly candidate: Candidate; readonly isLast: boolean }

/** Candidates in order, those with evicted targets after the others. */
function createQueue(
  exchange: Exchange,
  candidates: readonly Candidate[],
  { context }: AttemptOptions,
): { next(): Queued | undefined } {
  let deferred: Candidate[] | undefined
  let index = 0

  function isLast(): boolean {
    return index === candidates.length + (deferred?.length ?? 0)
  }

  return {
    next() {
      while (index < candidates.length) {
        const candidate = candidates[index]
        index += 1
        if (candidate === undefined) continue
        if (isLast() || candidate.target.eviction.admits()) return { candidate, isLast: isLast() }
        recordSkipped(exchange, candidate, 'evicted', context.clock)
        deferred ??= []
        deferred.push(candidate)
      }
      const candidate = deferred?.[index - candidates.length]
      if (candidate === undefined) return undefined
      index += 1
      return { candidate, isLast: isLast() }
    },
  }
}
