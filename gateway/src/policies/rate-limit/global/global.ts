import type { GrpcCall } from '../../../net/grpc-client.ts'
import type { Headers } from '../../../net/headers.ts'
import type { Reply } from '../../../net/send.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { Exchange, LimitStanding, LimitTally } from '../../../pipeline/exchange.ts'
import { forwardingOf } from '../../../pipeline/forwarding.ts'
import type { Policy } from '../../../pipeline/policy.ts'
import { chargeTokens, giveBackClaims, showStanding, spendsTokens, tallyOf } from '../tally.ts'
import { type GlobalRateLimitConfig, timeoutOf } from './config.ts'
import { type CompiledDescriptor, compileDescriptor } from './descriptors.ts'
import { type GlobalLimitState, globalLimitState, labelOf } from './state.ts'
import { limiterTarget } from './target.ts'
import { type Verdict, verdictOf } from './verdict.ts'
import {
  type Answer,
  type Descriptor,
  decodeAnswer,
  encodeRequest,
  type Hit,
  shouldRateLimit,
} from './wire.ts'

/** The global limits of one place as up to two steps of a route. */
export type GlobalRateLimit = {
  /** What is counted as requests come. */
  beforeBody: Policy | undefined
  /** Tokens, and requests whose values need the body. */
  afterBody: Policy | undefined
}

export type GlobalRateLimitOptions = {
  /** Where the limits are configured. */
  place: string
  /** Whether what passes has tokens; limits on tokens mean nothing elsewhere. */
  hasTokens: boolean
}

/** Limits that a service counts for several gateways (specification, "Rate limit rules" 1). */
export function compileGlobalRateLimit(
  config: GlobalRateLimitConfig,
  context: CompileContext,
  { place, hasTokens }: GlobalRateLimitOptions,
): GlobalRateLimit {
  const limiter: Limiter = {
    label: labelOf(config, place),
    domain: config.domain,
    call: context.grpc.method(limiterTarget(config, context), shouldRateLimit),
    deadlineMs: timeoutOf(config),
    failsOpen: config.failureMode === 'failOpen' || config.failureMode === 'FailOpen',
    state: globalLimitState(config, place, context),
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

/** One place's limits at one service. */
type Limiter = {
  readonly label: string
  readonly domain: string
  readonly call: GrpcCall
  readonly deadlineMs: number
  readonly failsOpen: boolean
  readonly state: GlobalLimitState
}

function requestPolicy(limiter: Limiter, descriptors: readonly CompiledDescriptor[]): Policy {
  return {
    name: 'global request limits',
    onRequest: (exchange) => askForRequest(limiter, descriptors, exchange),
    onReply: showStanding,
  }
}

/**
 * Requests and tokens are asked for apart: services that know no counts by descriptor count the same for all of a
 * call. Tokens come first, because asking for them uses nothing up.
 */
function latePolicy(
  limiter: Limiter,
  requests: readonly CompiledDescriptor[],
  tokens: readonly CompiledDescriptor[],
): Policy {
  return {
    name: 'global token limits',
    onRequest(exchange) {
      const refused = askForTokens(limiter, tokens, exchange)
      if (refused === undefined) return askForRequest(limiter, requests, exchange)
      return refused.then((reply) => reply ?? askForRequest(limiter, requests, exchange))
    },
    onReply: showStanding,
    onEnd: chargeTokens,
  }
}

/** Counts the request where it counts for anything; a reply refuses it. */
function askForRequest(
  limiter: Limiter,
  descriptors: readonly CompiledDescriptor[],
  exchange: Exchange,
): Promise<Reply | undefined> | undefined {
  const hits: Hit[] = []
  for (const { describe, costOfRequest } of descriptors) {
    const descriptor = describe(exchange.facts)
    if (descriptor !== undefined) hits.push({ descriptor, hits: costOfRequest(exchange.facts) })
  }
  return hits.length === 0 ? undefined : ask(limiter, { hits, counts: 'requests' }, exchange)
}

/** Asks whether there are tokens left, and promises to tell how many were used. */
function askForTokens(
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
  const hits = described.map(({ descriptor }) => ({ descriptor, hits: 0 }))
  return ask(limiter, { hits, counts: 'tokens' }, exchange).then((refusal) => {
    if (refusal === undefined) {
      tallyOf(exchange).claims.push({
        giveBack() {},
        charge: (totalTokens) => report(limiter, described, exchange, totalTokens),
      })
    }
    return refusal
  })
}

type Described = { compiled: CompiledDescriptor; descriptor: Descriptor }

function report(
  { state, call, domain }: Limiter,
  described: readonly Described[],
  { facts }: Exchange,
  totalTokens: number,
): void {
  const hits = described
    .map(({ compiled, descriptor }) => ({ descriptor, hits: compiled.costOfTokens(facts, totalTokens) }))
    .filter((hit) => hit.hits > 0)
  if (hits.length > 0) state.reports.push(call, encodeRequest(domain, hits, mostOf(hits)))
}

function mostOf(hits: readonly Hit[]): number {
  return hits.reduce((most, hit) => Math.max(most, hit.hits), 0)
}

type Question = { hits: readonly Hit[]; counts: 'requests' | 'tokens' }

async function ask(
  limiter: Limiter,
  { hits, counts }: Question,
  exchange: Exchange,
): Promise<Reply | undefined> {
  const { call, domain, deadlineMs, state } = limiter
  let answer: Answer
  try {
    answer = decodeAnswer(await call(encodeRequest(domain, hits, mostOf(hits)), { deadlineMs }))
  } catch (error) {
    return failed(limiter, exchange, error)
  }
  const verdict = verdictOf(answer)
  const tally = tallyOf(exchange)
  if (verdict.refusal !== undefined) {
    state.meter.checked('refused')
    giveBackClaims(tally)
    // The reply says where the service sees the request; the other limits did not refuse it.
    tally.shown = true
    exchange.refusedBy = `rate-limit: ${limiter.label}`
    return verdict.refusal
  }
  state.meter.checked('allowed')
  takeOver(verdict, exchange, tally)
  if (verdict.standing !== undefined) tally[counts] = closer(tally[counts], verdict.standing)
  return undefined
}

function takeOver({ replyHeaders, requestHeaders }: Verdict, exchange: Exchange, tally: LimitTally): void {
  if (hasAny(replyHeaders)) tally.headers = { ...tally.headers, ...replyHeaders }
  if (hasAny(requestHeaders)) {
    forwardingOf(exchange).headerEdits.push((headers) => {
      Object.assign(headers, requestHeaders)
    })
  }
}

function hasAny(headers: Headers): boolean {
  for (const _ in headers) return true
  return false
}

function closer(known: LimitStanding | undefined, other: LimitStanding): LimitStanding {
  return known !== undefined && known.remaining <= other.remaining ? known : other
}

const failureText = 'rate limit failed'

function failed({ failsOpen, state, label }: Limiter, exchange: Exchange, error: unknown): Reply | undefined {
  state.meter.checked(failsOpen ? 'failed_open' : 'failed_closed')
  state.failing(error)
  if (failsOpen) return undefined
  const tally = tallyOf(exchange)
  giveBackClaims(tally)
  tally.shown = true
  exchange.failure ??= error
  exchange.refusedBy = `rate-limit: ${label} failed`
  return {
    status: 500,
    headers: { 'content-type': 'text/plain' },
    body: Buffer.from(failureText),
  }
}
