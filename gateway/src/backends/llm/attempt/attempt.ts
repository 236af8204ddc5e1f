import type { Clock } from '../../../lib/clock.ts'
import { GatewayError } from '../../../lib/gateway-error.ts'
import type { OutgoingRequest, Reply } from '../../../net/http-client/send.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import { type Refusal, refuse } from '../../../pipeline/errors.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import {
  type AttemptRecord,
  recordAttempt,
  recordFailure,
  recordHead,
} from '../../../pipeline/recording/recording.ts'
import { sendTraced } from '../../../pipeline/tracing/trace.ts'
import { callerOf } from '../../../upstream/credentials/caller.ts'
import { retryAfterMs } from '../../../upstream/retry-after.ts'
import type { Candidate } from '../models/candidate.ts'
import type { Target } from '../models/target.ts'
import { readFailedAttempt } from '../reply/error-reply.ts'
import { convertReply } from '../reply/reply.ts'
import type { ReplyOptions } from '../reply/reply-body.ts'
import { type Attempt, type Call, createAttempt, releaseRequest } from '../request/call.ts'
import { clientCredential, clientHeaders, prepareRequest, type TimeLimits } from './provider-request.ts'

export type AttemptOptions = ReplyOptions & { timeLimits: TimeLimits }

/**
 * Serves a call with its candidates, in order, until one succeeds. A failed connection, a time limit, an
 * invalid response, 5xx and 429 lead to the next candidate. Once the response to the client has started,
 * there is no failover. The outcome of the last candidate is final.
 */
export async function serveCall(exchange: Exchange, call: Call, options: AttemptOptions): Promise<Reply> {
  const { context, timeLimits } = options
  const last = call.candidates.length - 1
  let refusal: Refusal | undefined
  let failure: GatewayError | undefined
  for (const [index, candidate] of call.candidates.entries()) {
    const preparing = prepareRequest(exchange, call, candidate, { timeLimits, workQueue: context.workQueue })
    const prepared = preparing instanceof Promise ? await preparing : preparing
    const record = startRecord(exchange, candidate, context.clock)
    if (prepared.kind === 'refused') {
      refusal ??= prepared.refusal
      if (record) recordSkip(record, prepared.refusal.code, context.clock)
      continue
    }
    if (index === last) releaseRequest(call)
    const attempt = createAttempt(exchange, call, candidate, prepared)
    try {
      const reply = await sendAttempt(attempt, prepared.request)
      if (record) recordHead(record, reply, context.clock)
      recordStatus(exchange, candidate.target, reply, context)
      if (index === last || !isFailure(reply.status)) {
        const converted = await convertReply(attempt, reply, options)
        candidate.target.editReplyHeaders?.(converted.headers)
        return converted
      }
      readFailedAttempt(attempt, reply)
      if (record) recordFailure(record, `status_${reply.status}`, context.clock)
      failure = new GatewayError('upstream_invalid', `upstream answered with status ${reply.status}`)
    } catch (error) {
      if (record) recordFailure(record, codeOf(error), context.clock)
      if (!isUpstreamFailure(error)) throw error
      failure = error
      // A credential may be missing for one user only: the target continues to serve the others.
      if (error.code === 'credential_unavailable') continue
      candidate.target.meter.upstreamError(error.code)
      startCooldown(candidate.target, defaultCooldownMs, context)
    }
  }
  if (failure) throw failure
  if (refusal) return refuse(exchange, refusal)
  throw new GatewayError('internal', 'the call has no candidates')
}

function startRecord(
  { recording }: Exchange,
  { target, model }: Candidate,
  clock: Clock,
): AttemptRecord | undefined {
  if (recording === undefined) return undefined
  const fields = {
    target: target.configuredModel,
    provider: target.provider.name,
    model,
    session: undefined,
  }
  return recordAttempt(recording, fields, clock)
}

function recordSkip(record: AttemptRecord, code: string, clock: Clock): void {
  record.sent = false
  recordFailure(record, code, clock)
}

function codeOf(error: unknown): string {
  return error instanceof GatewayError ? error.code : 'internal'
}

function sendAttempt(attempt: Attempt, request: OutgoingRequest): Promise<Reply> {
  const { exchange, call, candidate } = attempt
  const { facts, cancellation } = exchange
  if (cancellation.cancelled) throw new GatewayError('request_aborted', 'the client closed the connection')
  const { target } = candidate
  if (facts.llm) {
    facts.llm.configuredModel = target.configuredModel
    facts.llm.provider = target.provider.name
    facts.llm.responseModel = undefined
  }
  call.attempt = attempt
  if (target.authorize) {
    const authorizing = target.authorize.apply(request, callerOf(exchange))
    return authorizing ? authorizing.then(() => send(attempt, request)) : send(attempt, request)
  }
  const credential = credentialFor(exchange, target)
  if (credential !== undefined) target.provider.authorize(request, credential)
  return send(attempt, request)
}

function send(
  { exchange: { trace }, candidate: { target } }: Attempt,
  request: OutgoingRequest,
): Promise<Reply> {
  if (trace === undefined) return target.send(request)
  return sendTraced(trace, request, target.send, [
    ['tollgate.llm.provider', target.provider.name],
    ['tollgate.llm.model', target.configuredModel],
  ])
}

function credentialFor(exchange: Exchange, { credential, forwardsCredential }: Target): string | undefined {
  if (credential !== undefined) return credential
  const accepted = forwardsCredential ? exchange.auth.credential : undefined
  return accepted ?? clientCredential(clientHeaders(exchange))
}

function isFailure(status: number): boolean {
  return status >= 500 || status === 429
}

/** Another candidate may have other credentials. */
function isUpstreamFailure(error: unknown): error is GatewayError {
  if (!(error instanceof GatewayError)) return false
  return error.code.startsWith('upstream_') || error.code === 'credential_unavailable'
}

const defaultCooldownMs = 3_000
const maxCooldownMs = 300_000

function recordStatus({ facts }: Exchange, target: Target, reply: Reply, context: CompileContext): void {
  const { status, headers } = reply
  if (target.health) {
    const failed = target.health.responded(reply, facts)
    if (failed) target.meter.upstreamError(`status_${status}`)
    target.cooldown.until = failed ? target.health.ejectedUntil() : 0
    return
  }
  if (!isFailure(status)) {
    target.cooldown.until = 0
    return
  }
  target.meter.upstreamError(`status_${status}`)
  startCooldown(target, retryAfterMs(headers, context.clock.now()) ?? defaultCooldownMs, context)
}

function startCooldown({ cooldown, health }: Target, durationMs: number, { clock }: CompileContext): void {
  if (health) {
    health.failed()
    cooldown.until = health.ejectedUntil()
    return
  }
  cooldown.until = clock.monotonic() + Math.min(durationMs, maxCooldownMs)
}
