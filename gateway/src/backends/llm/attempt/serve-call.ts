import { GatewayError } from '../../../lib/gateway-error.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import { type Refusal, refuse } from '../../../pipeline/errors.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import { type Call, releaseRequest } from '../request/call.ts'
import { type AttemptOptions, attemptCandidate } from './attempt.ts'
import { createCandidateQueue } from './candidate-queue.ts'

/**
 * Serves a call with its candidates, in order, until one succeeds. A failed connection, a time limit, an
 * invalid response, a stream that fails before its first content, 5xx, 429 and responses that `health` counts
 * as failures lead to the next candidate. Evicted targets are tried last. Once the response to the client has
 * started, there is no failover. The outcome of the last candidate is final.
 */
export async function serveCall(exchange: Exchange, call: Call, options: AttemptOptions): Promise<Reply> {
  const queue = createCandidateQueue(exchange, call.candidates, options.context.clock)
  let refusal: Refusal | undefined
  let failure: GatewayError | undefined
  for (let turn = queue.next(); turn !== undefined; turn = queue.next()) {
    const outcome = await attemptCandidate(exchange, call, turn, options)
    if (outcome.kind === 'reply') return outcome.reply
    if (outcome.kind === 'refused') {
      refusal ??= outcome.refusal
      continue
    }
    failure = outcome.failure
    if (outcome.kind === 'tooLong') queue.requireLarger(turn.candidate.contextWindow)
  }
  releaseRequest(call)
  if (failure) throw failure
  if (refusal) return refuse(exchange, refusal)
  throw new GatewayError('internal', 'the call has no candidates')
}
