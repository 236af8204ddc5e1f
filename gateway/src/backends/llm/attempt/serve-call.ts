import { GatewayError } from '../../../lib/gateway-error.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import { type Refusal, refuse } from '../../../pipeline/errors.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import { recordWait } from '../../../pipeline/recording/recording.ts'
import { type Call, releaseRequest } from '../request/call.ts'
import { type AttemptOptions, attemptCandidate, finishFailed, type Outcome, type Turn } from './attempt.ts'
import { recordSkipped } from './attempt-record.ts'
import { type CandidateQueue, createCandidateQueue } from './candidate-queue.ts'
import { attemptHedged, type HedgeOptions } from './hedge.ts'

/**
 * Serves a call with its candidates, in order, until one succeeds. A failed connection, a time limit, an
 * invalid response, a stream that fails before its first content, 5xx, 429 and responses that `health` counts
 * as failures lead to the next candidate. Evicted and occupied targets are tried last. Once the response to
 * the client has started, there is no failover. The outcome of the last candidate is final.
 */
export async function serveCall(exchange: Exchange, call: Call, options: AttemptOptions): Promise<Reply> {
  const queue = createCandidateQueue(exchange, call.candidates, options.context.clock)
  const hedge = hedgeOf(exchange, call, queue)
  let refusal: Refusal | undefined
  let failed: Exclude<Outcome, { kind: 'reply' | 'refused' }> | undefined
  let hasWaited = false
  for (let turn = queue.next(); turn !== undefined; turn = queue.next()) {
    if (turn.waits && !(await acquireSlot(exchange, turn, { ...options, mayWait: !hasWaited }))) {
      hasWaited = true
      refusal = busy(turn)
      continue
    }
    const hedged = turn.isLast || call.attempt !== undefined ? undefined : hedge
    const outcome = await (hedged
      ? attemptHedged(exchange, call, turn, { ...options, ...hedged })
      : attemptCandidate(exchange, call, turn, options))
    if (outcome.kind === 'reply') {
      releaseRequest(call)
      return outcome.reply
    }
    if (outcome.kind === 'refused') {
      refusal ??= outcome.refusal
      continue
    }
    failed = outcome
    if (outcome.kind === 'tooLong') queue.requireLarger(turn.candidate.contextWindow)
  }
  releaseRequest(call)
  if (failed?.kind === 'failed' && failed.error) return finishFailed(failed.error, options)
  if (failed) throw failed.failure
  if (refusal) return refuse(exchange, refusal)
  throw new GatewayError('internal', 'the call has no candidates')
}

/** The race of streamed calls, whose first byte precedes most of their cost. */
function hedgeOf(
  { facts }: Exchange,
  { failover, unchanged, endpoint }: Call,
  queue: CandidateQueue,
): Pick<HedgeOptions, 'delayMs' | 'takeNext'> | undefined {
  const delayMs = failover?.hedgeDelayMs
  if (delayMs === undefined || facts.llm?.streaming !== true) return undefined
  return unchanged || endpoint === 'passthrough' || endpoint === 'realtime'
    ? undefined
    : { delayMs, takeNext: queue.takeReady }
}

/** Acquires a slot of an occupied target. A call waits once, for the first of them. */
async function acquireSlot(
  exchange: Exchange,
  { candidate }: Turn,
  { context, mayWait }: AttemptOptions & { mayWait: boolean },
): Promise<boolean> {
  const { slots, meter } = candidate.target
  if (slots === undefined || slots.tryAcquire()) return true
  const { clock } = context
  const times = exchange.recording?.times
  const startedAt = times && clock.monotonic()
  const isAcquired = mayWait && (await slots.wait(exchange.cancellation))
  if (times) recordWait(times, 'model queue', startedAt, clock)
  meter.queued(isAcquired ? 'served' : 'refused')
  if (!isAcquired) recordSkipped(exchange, candidate, busyCode, clock)
  return isAcquired
}

const busyCode = 'model_busy'

function busy({ candidate: { target } }: Turn): Refusal {
  return {
    status: 503,
    code: busyCode,
    message: `model "${target.configuredModel}" has reached its limit of ${target.slots?.max} concurrent requests; try again later`,
    headers: { 'retry-after': '1' },
  }
}
