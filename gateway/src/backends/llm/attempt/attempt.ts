import { GatewayError } from '../../../lib/gateway-error.ts'
import { firstHeader, type Headers } from '../../../net/http/headers.ts'
import type { OutgoingRequest, Reply } from '../../../net/http-client/send.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import { type Refusal, refuse } from '../../../pipeline/errors.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import type { Candidate } from '../models/models.ts'
import type { Target } from '../models/target.ts'
import { answer, cancel } from '../reply/reply.ts'
import { type Call, releaseRequest } from '../request/call.ts'
import { clientCredential, clientHeaders, prepare, type TimeLimits } from './provider-request.ts'

export type AttemptOptions = { context: CompileContext; maxReplyBytes: number; timeLimits: TimeLimits }

/**
 * Asks the candidates in order until one answers. A failed connection, a time limit, a broken or unreadable answer, 5xx
 * and 429 lead to the next one, as long as the client has been sent nothing; the last one's outcome stands.
 */
export async function attempt(exchange: Exchange, call: Call, options: AttemptOptions): Promise<Reply> {
  const { context, maxReplyBytes, timeLimits } = options
  const last = call.candidates.length - 1
  let refusal: Refusal | undefined
  let failure: GatewayError | undefined
  for (const [index, candidate] of call.candidates.entries()) {
    const preparing = prepare(exchange, call, candidate, { timeLimits, workQueue: context.workQueue })
    const prepared = preparing instanceof Promise ? await preparing : preparing
    if (prepared.kind === 'refused') {
      refusal ??= prepared.refusal
      continue
    }
    const { request, translation } = prepared
    if (index === last) releaseRequest(call)
    try {
      const reply = await ask(exchange, call, candidate, request)
      noteStatus(candidate.target, reply, context)
      if (index === last || !isFailure(reply.status)) {
        const answering = { exchange, call, candidate, translation, maxReplyBytes, context }
        return await answer(answering, reply)
      }
      cancel(reply)
      failure = new GatewayError('upstream_invalid', `upstream answered with status ${reply.status}`)
    } catch (error) {
      forget(exchange, call)
      if (!isUpstreamFailure(error)) throw error
      candidate.target.meter.upstreamError(error.code)
      markUnhealthy(candidate.target, defaultUnhealthyMs, context)
      failure = error
    }
  }
  if (failure) throw failure
  if (refusal) return refuse(exchange, refusal)
  throw new GatewayError('internal', 'no model to ask')
}

function ask(exchange: Exchange, call: Call, candidate: Candidate, request: OutgoingRequest): Promise<Reply> {
  const { facts, cancellation } = exchange
  if (cancellation.cancelled) throw new GatewayError('request_aborted', 'the client closed the connection')
  const { target } = candidate
  if (facts.llm) {
    facts.llm.configuredModel = target.configuredModel
    facts.llm.provider = target.provider.name
  }
  call.served = candidate
  call.asked = true
  if (target.authorize) {
    target.authorize(request.headers, exchange.auth.credential)
    return target.send(request)
  }
  const credential = credentialFor(exchange, target)
  if (credential !== undefined) {
    const signing = target.provider.authorize(request, credential)
    if (signing) return signing.then(() => target.send(request))
  }
  return target.send(request)
}

function credentialFor(
  exchange: Exchange,
  { credential, forwardsCredential: passesCredential }: Target,
): string | undefined {
  if (credential !== undefined) return credential
  const used = passesCredential ? exchange.auth.credential : undefined
  return used ?? clientCredential(clientHeaders(exchange))
}

/** What an attempt that failed has reported does not count. */
function forget({ facts, llm }: Exchange, call: Call): void {
  call.answered = false
  call.hasOutput = false
  if (llm?.message) llm.message.answer = undefined
  call.usage = undefined
  facts.usage = undefined
  if (facts.llm) facts.llm.responseModel = undefined
}

function isFailure(status: number): boolean {
  return status >= 500 || status === 429
}

function isUpstreamFailure(error: unknown): error is GatewayError {
  return error instanceof GatewayError && error.code.startsWith('upstream_')
}

const defaultUnhealthyMs = 3_000
const maxUnhealthyMs = 300_000

function noteStatus(target: Target, { status, headers }: Reply, context: CompileContext): void {
  if (!isFailure(status)) {
    target.cooldown.until = 0
    return
  }
  target.meter.upstreamError(`status_${status}`)
  markUnhealthy(target, retryAfterMs(headers, context.clock.now()) ?? defaultUnhealthyMs, context)
}

/** Failover asks it last for a while. */
function markUnhealthy({ cooldown: health }: Target, forMs: number, { clock }: CompileContext): void {
  health.until = clock.monotonic() + Math.min(forMs, maxUnhealthyMs)
}

/** RFC 9110 section 10.2.3: seconds or a date. */
function retryAfterMs(headers: Headers, now: number): number | undefined {
  const value = firstHeader(headers, 'retry-after')
  if (value === undefined) return undefined
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - now
  return Number.isFinite(ms) && ms > 0 ? ms : undefined
}
