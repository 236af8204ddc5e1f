import type { Cancellation } from '../../../lib/cancellation.ts'
import { GatewayError } from '../../../lib/gateway-error.ts'
import { isEventStream } from '../../../net/http/sse.ts'
import type { OutgoingRequest, Reply } from '../../../net/http-client/send.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { Refusal } from '../../../pipeline/errors.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import { type AttemptRecord, recordFailure, recordHead } from '../../../pipeline/recording/recording.ts'
import { sendTraced } from '../../../pipeline/tracing/trace.ts'
import { callerOf } from '../../../upstream/credentials/caller.ts'
import { sendAuthorized } from '../../../upstream/credentials/credentials.ts'
import type { Candidate } from '../models/candidate.ts'
import { isFailure } from '../models/eviction/eviction.ts'
import type { Target } from '../models/target.ts'
import { openRealtime, type RealtimeOptions } from '../realtime/realtime.ts'
import { readError, readFailedAttempt, recordError } from '../reply/error-reply.ts'
import { awaitContent } from '../reply/held-stream.ts'
import { endpointOf, recordLatency, recordOutcome } from '../reply/record.ts'
import { convertReply } from '../reply/reply.ts'
import type { ReplyOptions } from '../reply/reply-body.ts'
import { type Attempt, type Call, createAttempt, makeLatest, releaseRequest } from '../request/call.ts'
import { isTooLong, mayBeTooLong } from '../translate/context-error.ts'
import { recordSkip, startRecord } from './attempt-record.ts'
import { prepareRequest, type TimeLimits } from './provider-request.ts'
import { checkSwitch } from './realtime-request.ts'
import { clientCredential, clientHeaders } from './request-headers.ts'

export type AttemptOptions = ReplyOptions & RealtimeOptions & { timeLimits: TimeLimits }

/** Result of one candidate: the reply for the client, or the reason for the next candidate. */
export type Outcome =
  | { readonly kind: 'reply'; readonly reply: Reply }
  /** The target does not support the request. */
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  | Failed
  /** The prompt is too long for the target, and another candidate may accept it. */
  | { readonly kind: 'tooLong'; readonly failure: GatewayError }

/** `error` is the response of the provider, if any. */
export type Failed = {
  readonly kind: 'failed'
  readonly failure: GatewayError
  readonly error?: FailedReply | undefined
}

/** An error of a provider, which is read while other candidates are tried. */
export type FailedReply = { readonly attempt: Attempt; readonly reply: Promise<Reply> }

/** Position of a candidate. Its slot is acquired, if its target has slots. */
export type Turn = {
  readonly candidate: Candidate
  readonly isLast: boolean
  /** Whether a later candidate may accept a prompt that is too long for this one. */
  hasLarger(): boolean
}

/** A request among several of one call. */
export type Race = { readonly cancellation: Cancellation; attempt: Attempt | undefined }

/** Code of an attempt that another one has overtaken. */
export const lostRace = 'hedge_lost'

/** A response that may be sent to the client. */
export type Opened = {
  readonly kind: 'opened'
  readonly attempt: Attempt
  readonly reply: Reply
  readonly record: AttemptRecord | undefined
}

/**
 * Sends a call to one candidate. The outcome of the last one is a reply or an error. Throws errors that
 * another candidate cannot avoid.
 */
export async function attemptCandidate(
  exchange: Exchange,
  call: Call,
  turn: Turn,
  options: AttemptOptions,
): Promise<Outcome> {
  const opened = await openCandidate(exchange, call, turn, options)
  return opened.kind === 'opened' ? finishCandidate(opened, options) : opened
}

/** Sends a call to one candidate up to its usable response. Releases the slot without one. */
export function openCandidate(
  exchange: Exchange,
  call: Call,
  turn: Turn,
  options: AttemptOptions & { race?: Race },
): Promise<Opened | Exclude<Outcome, { kind: 'reply' }>> {
  const opening = openPrepared(exchange, call, turn, options)
  const { slots } = turn.candidate.target
  if (slots === undefined) return opening
  return opening.then(
    (opened) => {
      if (opened.kind !== 'opened') slots.release()
      return opened
    },
    (error: unknown) => {
      slots.release()
      throw error
    },
  )
}

async function openPrepared(
  exchange: Exchange,
  call: Call,
  turn: Turn,
  options: AttemptOptions & { race?: Race },
): Promise<Opened | Exclude<Outcome, { kind: 'reply' }>> {
  const { candidate } = turn
  const { context, timeLimits, race } = options
  const { eviction } = candidate.target
  const preparing = prepareRequest(exchange, call, candidate, { timeLimits, workQueue: context.workQueue })
  const prepared = preparing instanceof Promise ? await preparing : preparing
  const record = startRecord(exchange, candidate, context.clock)
  if (prepared.kind === 'refused') {
    eviction.undecided()
    if (record) recordSkip(record, prepared.refusal.code, context.clock)
    return prepared
  }
  if (turn.isLast) releaseRequest(call)
  const attempt = createAttempt(exchange, call, candidate, prepared)
  if (race) {
    race.attempt = attempt
    prepared.request.cancellation = race.cancellation
  }
  try {
    const reply = readReply(attempt, await sendAttempt(attempt, prepared.request, options))
    if (call.endpoint === 'realtime') checkSwitch(prepared.request, reply)
    if (record) recordHead(record, reply, context.clock)
    return await receive(attempt, reply, { ...options, turn, record })
  } catch (error) {
    return failAttempt(attempt, error, { record, context, cancellation: race?.cancellation })
  }
}

/** Converts the response of a candidate. Keeps the slot until the end of the reply. */
export async function finishCandidate(
  { attempt, reply, record }: Opened,
  options: AttemptOptions,
): Promise<Outcome> {
  const { target } = attempt.candidate
  const isSuccess = isSuccessStatus(reply.status)
  try {
    const converted =
      reply.status === 101
        ? openRealtime(attempt, reply, options)
        : await convertReply(attempt, reply, options)
    // The outcome of a stream is its end.
    if (isSuccess && isStreamed(attempt, reply)) target.eviction.undecided()
    else if (isSuccess) recordOutcome(attempt, reply)
    target.editReplyHeaders?.(converted.headers)
    attempt.slots = target.slots
    return { kind: 'reply', reply: converted }
  } catch (error) {
    target.slots?.release()
    return failAttempt(attempt, error, { record, context: options.context, cancellation: undefined })
  }
}

/** The error of the provider in the shape of the client, in place of the failure of a call. */
export async function finishFailed({ attempt, reply }: FailedReply, options: AttemptOptions): Promise<Reply> {
  makeLatest(attempt)
  describeAttempt(attempt)
  const converted = await convertReply(attempt, await reply, options)
  attempt.candidate.target.editReplyHeaders?.(converted.headers)
  return converted
}

function isStreamed({ call }: Attempt, reply: Reply): boolean {
  return call.endpoint !== 'passthrough' && isEventStream(reply.headers)
}

type FailureOptions = {
  record: AttemptRecord | undefined
  context: CompileContext
  /** Of a race, in which the other request may have won. */
  cancellation: Cancellation | undefined
}

/** The failure for the next candidate. Throws errors that another candidate cannot avoid. */
function failAttempt(
  { exchange, candidate }: Attempt,
  error: unknown,
  { record, context, cancellation = exchange.cancellation }: FailureOptions,
): Failed {
  const isLost = cancellation.cancelled && !exchange.cancellation.cancelled
  if (record) recordFailure(record, isLost ? lostRace : codeOf(error), context.clock)
  const failure = countFailure(cancellation, candidate.target, error)
  if (failure) return { kind: 'failed', failure }
  throw error
}

type ReceiveOptions = ReplyOptions & { turn: Turn; record: AttemptRecord | undefined }

type Received = Opened | Failed | { kind: 'tooLong'; failure: GatewayError }

async function receive(attempt: Attempt, reply: Reply, options: ReceiveOptions): Promise<Received> {
  const { turn, record, context } = options
  const isSuccess = isSuccessStatus(reply.status)
  // A success is counted after its conversion, which may fail.
  const hasFailed = !isSuccess && recordOutcome(attempt, reply)
  if (!turn.isLast && (hasFailed || isFailure(reply.status))) {
    const error = { attempt, reply: readFailedAttempt(attempt, reply) }
    const failure = fail(`status_${reply.status}`, `upstream answered with status ${reply.status}`)
    return { kind: 'failed', failure, error }
  }
  let final = turn.isLast ? reply : await awaitContent(attempt, reply)
  if (attempt.call.failover?.contextFallback === true && mayBeTooLong(reply.status) && turn.hasLarger()) {
    const error = await readError(reply, options.maxReplyBytes)
    if (isTooLong(error.body)) {
      recordError(attempt, error.body)
      return {
        kind: 'tooLong',
        failure: fail('context_length', 'the prompt is too long for the model'),
      }
    }
    final = error
  }
  if (isSuccess && !isEventStream(reply.headers)) recordLatency(attempt, 'whole', context.clock.monotonic())
  return { kind: 'opened', attempt, reply: final, record }

  function fail(code: string, message: string): GatewayError {
    if (record) recordFailure(record, code, context.clock)
    return new GatewayError('upstream_invalid', message)
  }
}

/** 101 opens a connection of realtime; other upgrades are not requested. */
function isSuccessStatus(status: number): boolean {
  return status === 101 || (status >= 200 && status <= 299)
}

/** Counts an error of a target. Returns the error if another candidate may avoid it. */
function countFailure(
  cancellation: Cancellation,
  { eviction, meter }: Target,
  error: unknown,
): GatewayError | undefined {
  const isUpstream = error instanceof GatewayError && error.code.startsWith('upstream_')
  // A disconnect of the client ends the request to the target, too, and so does a lost race.
  if (isUpstream && !cancellation.cancelled) {
    meter.upstreamError(error.code)
    eviction.failed()
    return error
  }
  eviction.undecided()
  // A credential may be missing for one user only: the target continues to serve the others.
  return error instanceof GatewayError && error.code === 'credential_unavailable' ? error : undefined
}

function codeOf(error: unknown): string {
  return error instanceof GatewayError ? error.code : 'internal'
}

/** Stores the model of an attempt in the facts of the request. */
export function describeAttempt({ exchange: { facts }, candidate: { target } }: Attempt): void {
  if (!facts.llm) return
  facts.llm.configuredModel = target.configuredModel
  facts.llm.provider = target.provider.name
  facts.llm.responseModel = undefined
}

/** The response in the forms that the gateway reads: some services have their own form of streams. */
function readReply(attempt: Attempt, reply: Reply): Reply {
  const { readReply: convert } = attempt.candidate.target.provider
  if (convert === undefined || reply.status < 200 || reply.status > 299) return reply
  const endpoint = endpointOf(attempt)
  return endpoint === 'passthrough' ? reply : convert(endpoint, reply)
}

function sendAttempt(attempt: Attempt, request: OutgoingRequest, { context }: ReplyOptions): Promise<Reply> {
  const { exchange, call, candidate } = attempt
  if (request.cancellation?.cancelled === true)
    throw new GatewayError('request_aborted', 'the client closed the connection')
  const { target } = candidate
  describeAttempt(attempt)
  call.attempt = attempt
  if (target.latency) attempt.sentAt = context.clock.monotonic()
  if (attempt.previous) exchange.log.attempts = (exchange.log.attempts ?? 1) + 1
  if (target.authorize) {
    const sent = { request, caller: callerOf(exchange) }
    return sendAuthorized(target.authorize, sent, () => send(attempt, request))
  }
  const credential = credentialFor(exchange, target)
  if (credential !== undefined) target.provider.authorize(request, credential)
  target.more?.applyMore?.(request)
  return send(attempt, request)
}

/** The credentials of the gateway in a request. */
function credentialsIn(request: OutgoingRequest, target: Target): readonly string[] {
  const { authorize, more, configuredKey } = target
  const placed = (authorize ?? more)?.placed?.(request) ?? []
  return configuredKey === undefined ? placed : [...placed, configuredKey]
}

function send(attempt: Attempt, request: OutgoingRequest): Promise<Reply> {
  const { exchange, candidate } = attempt
  const { trace } = exchange
  const { target } = candidate
  attempt.credentials = credentialsIn(request, target)
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
