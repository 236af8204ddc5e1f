import type { Clock } from '../../../lib/clock.ts'
import { type GrpcCall, GrpcError } from '../../../net/grpc-client.ts'
import type { Headers } from '../../../net/http/headers.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import type { LimitStatus, RequestLimits } from '../../../pipeline/limits/limits.ts'
import type { Policy } from '../../../pipeline/policy.ts'
import { recordLimit } from '../../../pipeline/recording/recording.ts'
import { forwardingOf } from '../../../pipeline/request-edits.ts'
import type { ServiceCall } from '../../../pipeline/tracing/service-calls.ts'
import type { RequestTrace } from '../../../pipeline/tracing/trace.ts'
import { type Breaker, createBreaker } from '../../../upstream/grpc-service/breaker.ts'
import { compileGrpcService } from '../../../upstream/grpc-service/grpc-service.ts'
import { isLimitHeader } from '../headers.ts'
import {
  chargeTokens,
  releaseReservations,
  reportLimits,
  requestLimitsOf,
  spendsTokens,
} from '../request-limits.ts'
import { type GlobalRateLimitConfig, timeoutOf } from './config.ts'
import { type CompiledDescriptor, compileDescriptor } from './descriptors.ts'
import { type GlobalLimitState, globalLimitState, labelOf } from './state.ts'
import { type Verdict, verdictOf } from './verdict.ts'
import {
  checkRateLimit,
  type Descriptor,
  type DescriptorStatus,
  decodeResponse,
  encodeRequest,
  type Hit,
  type LimitResponse,
  reportUsage,
  shouldRateLimit,
} from './wire.ts'

/** Global limits of one scope as up to two steps of a route. */
export type GlobalRateLimit = {
  /** Limits counted on arrival. */
  beforeBody: Policy | undefined
  /** Token limits, and request limits whose descriptors need the body. */
  afterBody: Policy | undefined
}

export type GlobalRateLimitOptions = {
  /** Name of the scope that configures the limits. */
  scope: string
  /** Whether the requests have tokens; token limits are ignored otherwise. */
  hasTokens: boolean
}

/** Compiles limits that a service counts for several gateways (specification, "Rate limit rules" 1). */
export function compileGlobalRateLimit(
  config: GlobalRateLimitConfig,
  context: CompileContext,
  { scope, hasTokens }: GlobalRateLimitOptions,
): GlobalRateLimit {
  const service = compileGrpcService(config, context)
  const own = config.protocol === 'kuadrant'
  const breakerName = `service/breaker/${service.key}`
  const limiter: Limiter = {
    label: labelOf(config, scope),
    domain: config.domain,
    countRequest: service.method(shouldRateLimit),
    checkTokens: service.method(own ? checkRateLimit : shouldRateLimit),
    reportTokens: service.method(own ? reportUsage : shouldRateLimit),
    checksByDescriptor: own,
    deadlineMs: timeoutOf(config),
    clock: context.clock,
    breaker: context.retained(breakerName, () => createBreaker(context.memory, breakerName, context.clock)),
    failsOpen: config.failureMode === 'failOpen' || config.failureMode === 'FailOpen',
    state: globalLimitState(config, scope, context),
  }
  const descriptors = config.descriptors.map(compileDescriptor)
  const ofRequests = descriptors.filter(({ counts }) => counts === 'requests')
  const early = ofRequests.filter(({ needsBody }) => !needsBody)
  const late = ofRequests.filter(({ needsBody }) => needsBody)
  const tokens = hasTokens ? descriptors.filter(({ counts }) => counts === 'tokens') : []
  return {
    beforeBody: early.length === 0 ? undefined : requestPolicy(limiter, early),
    afterBody: tokens.length + late.length === 0 ? undefined : latePolicy(limiter, late, tokens),
  }
}

/** Limits of one scope at one service. */
type Limiter = {
  readonly label: string
  readonly domain: string
  readonly countRequest: ServiceCall
  /** Checks with hit count 0. */
  readonly checkTokens: ServiceCall
  readonly reportTokens: GrpcCall
  /** Limitador identifies descriptors by their index in the call, which is 0 in reports. */
  readonly checksByDescriptor: boolean
  readonly deadlineMs: number
  readonly clock: Clock
  /** Shared by all limits at the service. */
  readonly breaker: Breaker
  readonly failsOpen: boolean
  readonly state: GlobalLimitState
}

function requestPolicy(limiter: Limiter, descriptors: readonly CompiledDescriptor[]): Policy {
  return {
    name: 'global request limits',
    onRequest: (exchange) => checkRequests(limiter, descriptors, exchange),
    onReply: reportLimits,
  }
}

/**
 * Checks requests and tokens in separate calls, because services without hit counts per descriptor count the
 * same for all descriptors of a call. Tokens come first, because their check consumes nothing.
 */
function latePolicy(
  limiter: Limiter,
  requests: readonly CompiledDescriptor[],
  tokens: readonly CompiledDescriptor[],
): Policy {
  return {
    name: 'global token limits',
    onRequest(exchange) {
      const refused = checkTokens(limiter, tokens, exchange)
      if (refused === undefined) return checkRequests(limiter, requests, exchange)
      return refused.then((reply) => reply ?? checkRequests(limiter, requests, exchange))
    },
    onReply: reportLimits,
    onEnd: chargeTokens,
  }
}

/** Counts the request if a descriptor applies; returns the reply of a refusal. */
function checkRequests(
  limiter: Limiter,
  descriptors: readonly CompiledDescriptor[],
  exchange: Exchange,
): Promise<Reply | undefined> | undefined {
  if (exchange.llm?.isCommitted === true) return undefined
  const hits: Hit[] = []
  for (const { describe, costOfRequest } of descriptors) {
    const descriptor = describe(exchange.facts)
    if (descriptor !== undefined) hits.push({ descriptor, hits: costOfRequest(exchange.facts) })
  }
  return hits.length === 0 ? undefined : check(limiter, { hits, counts: 'requests' }, exchange)
}

/** Checks the remaining tokens and reserves the later report of their usage. */
function checkTokens(
  limiter: Limiter,
  descriptors: readonly CompiledDescriptor[],
  exchange: Exchange,
): Promise<Reply | undefined> | undefined {
  if (!spendsTokens(exchange)) return undefined
  const { facts } = exchange
  const described: Described[] = []
  for (const compiled of descriptors) {
    const descriptor = compiled.describe(facts)
    if (descriptor !== undefined) described.push({ compiled, descriptor })
  }
  if (described.length === 0) return undefined
  const reserve = () => {
    requestLimitsOf(exchange).reservations.push({
      release() {},
      charge: (totalTokens) => report(limiter, described, exchange, totalTokens),
    })
  }
  if (exchange.llm?.isCommitted === true) {
    reserve()
    return undefined
  }
  return checkBudgets(
    limiter,
    described.map(({ descriptor }) => ({ descriptor, hits: 0 })),
    exchange,
  ).then((refusal) => {
    if (refusal === undefined) reserve()
    return refusal
  })
}

async function checkBudgets(
  limiter: Limiter,
  hits: readonly Hit[],
  exchange: Exchange,
): Promise<Reply | undefined> {
  if (!limiter.checksByDescriptor) return check(limiter, { hits, counts: 'tokens' }, exchange)
  for (const hit of hits) {
    const refusal = await check(limiter, { hits: [hit], counts: 'tokens' }, exchange)
    if (refusal !== undefined) return refusal
  }
  return undefined
}

type Described = { compiled: CompiledDescriptor; descriptor: Descriptor }

/**
 * Sends one report per descriptor, because services without hit counts per descriptor count the same for all
 * of a call.
 */
function report(
  { state, reportTokens, domain }: Limiter,
  described: readonly Described[],
  { facts }: Exchange,
  totalTokens: number,
): void {
  for (const { compiled, descriptor } of described) {
    const hits = compiled.costOfTokens(facts, totalTokens)
    if (hits > 0) state.reports.push(reportTokens, encodeRequest(domain, [{ descriptor, hits }], hits))
  }
}

function mostOf(hits: readonly Hit[]): number {
  return hits.reduce((most, hit) => Math.max(most, hit.hits), 0)
}

type ServiceCheck = { hits: readonly Hit[]; counts: 'requests' | 'tokens' }

async function check(
  limiter: Limiter,
  question: ServiceCheck,
  exchange: Exchange,
): Promise<Reply | undefined> {
  const { hits, counts } = question
  const { state } = limiter
  const limits = requestLimitsOf(exchange)
  const { trace } = exchange
  let answer: LimitResponse
  try {
    answer = await callService(limiter, question, { limits, trace })
    if (answer.code === 'ok' && counts === 'tokens' && answer.statuses.some(isUsedUp)) {
      const { statuses } = answer
      const confirming = hits.map((hit, index) => ({ ...hit, hits: isUsedUp(statuses[index]) ? 1 : 0 }))
      answer = await callService(limiter, { counts, hits: confirming }, { limits, trace })
    }
  } catch (error) {
    return failed(limiter, exchange, error)
  }
  const verdict = verdictOf(answer)
  recordAnswer(exchange, limiter.label, counts, answer)
  if (verdict.refusal !== undefined) {
    state.meter.checked('refused')
    releaseReservations(limits)
    // The reply has the limit status of the service; the other limits did not refuse the request.
    limits.headersSent = true
    exchange.log.refusedBy = `rate-limit: ${limiter.label}`
    return verdict.refusal
  }
  state.meter.checked('allowed')
  applyHeaders(verdict, exchange, limits)
  if (verdict.status !== undefined) limits[counts] = closer(limits[counts], verdict.status)
  return undefined
}

/** Records the limits of a response for the ledger. Their keys are values of clients. */
function recordAnswer(
  { recording }: Exchange,
  limit: string,
  unit: 'requests' | 'tokens',
  { statuses }: LimitResponse,
): void {
  if (recording === undefined) return
  for (const { code, limit: rate, remaining, resetSeconds = 0 } of statuses) {
    if (rate === undefined) continue
    const status = { limit: rate.requestsPerUnit, remaining, resetSeconds }
    recordLimit(recording, { limit, unit, refused: code === 'overLimit' }, status)
  }
}

/**
 * Whether a budget is exhausted: it admits hit count 0 but must not admit a request. A second check with hit
 * count 1 decides, because a service in Envoy's `shadow_mode` allows it.
 */
function isUsedUp(status: DescriptorStatus | undefined): boolean {
  return status?.limit !== undefined && status.remaining === 0
}

/**
 * Calls the service. Throws without a call while the breaker is open or after the request has used its
 * timeout.
 */
async function callService(
  limiter: Limiter,
  { hits, counts }: ServiceCheck,
  { limits, trace }: { limits: RequestLimits; trace: RequestTrace | undefined },
): Promise<LimitResponse> {
  const { breaker, clock, domain } = limiter
  const deadlineMs = limiter.deadlineMs - (limits.waitedMs ?? 0)
  if (deadlineMs <= 0) throw new Error('the timeout of this request was spent on earlier checks')
  if (!breaker.admits()) throw new Error('not called: the last calls had no response')
  const call = counts === 'tokens' ? limiter.checkTokens : limiter.countRequest
  const startedAt = clock.monotonic()
  try {
    const bytes = await call(encodeRequest(domain, hits, mostOf(hits)), { deadlineMs, trace })
    breaker.succeeded()
    return decodeResponse(bytes)
  } catch (error) {
    if (isUnanswered(error)) breaker.failed()
    else breaker.succeeded()
    throw error
  } finally {
    limits.waitedMs = (limits.waitedMs ?? 0) + clock.monotonic() - startedAt
  }
}

/** DEADLINE_EXCEEDED or UNAVAILABLE; every other status is a response. */
function isUnanswered(error: unknown): boolean {
  return error instanceof GrpcError && (error.status === 4 || error.status === 14)
}

function applyHeaders(
  { replyHeaders, requestHeaders }: Verdict,
  exchange: Exchange,
  limits: RequestLimits,
): void {
  if (hasAny(replyHeaders))
    limits.headers = { ...withoutLimits(limits.headers, replyHeaders), ...replyHeaders }
  if (hasAny(requestHeaders)) {
    forwardingOf(exchange).headerEdits.push((headers) => {
      Object.assign(headers, requestHeaders)
    })
  }
}

/** Removes limit headers if the next response has its own, so that they all describe one limit. */
function withoutLimits(known: Headers | undefined, next: Headers): Headers | undefined {
  if (known === undefined || !Object.keys(next).some(isLimitHeader)) return known
  return Object.fromEntries(Object.entries(known).filter(([name]) => !isLimitHeader(name)))
}

function hasAny(headers: Headers): boolean {
  for (const _ in headers) return true
  return false
}

function closer(current: LimitStatus | undefined, other: LimitStatus): LimitStatus {
  return current !== undefined && current.remaining <= other.remaining ? current : other
}

const failureText = 'rate limit failed'

function failed({ failsOpen, state, label }: Limiter, exchange: Exchange, error: unknown): Reply | undefined {
  state.meter.checked(failsOpen ? 'failed_open' : 'failed_closed')
  state.recordFailure(error)
  if (failsOpen) return undefined
  const limits = requestLimitsOf(exchange)
  releaseReservations(limits)
  limits.headersSent = true
  exchange.log.failure ??= error
  exchange.log.refusedBy = `rate-limit: ${label} failed`
  exchange.log.errorCode ??= 'rate_limit_failed'
  return {
    status: 500,
    headers: { 'content-type': 'text/plain' },
    body: Buffer.from(failureText),
  }
}
