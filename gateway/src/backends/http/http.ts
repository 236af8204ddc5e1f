import type { Clock } from '../../lib/clock.ts'
import { longestTimerMs, milliseconds } from '../../lib/duration.ts'
import { GatewayError } from '../../lib/gateway-error.ts'
import { type Body, isSource } from '../../net/http/body.ts'
import type { Reply, Send } from '../../net/http-client/send.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import { refuse } from '../../pipeline/errors.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import { clearResponse } from '../../pipeline/facts/response-facts.ts'
import { type AttemptResult, attemptThrough, copyForwarding } from '../../pipeline/forwarding/attempt.ts'
import type { Backend } from '../../pipeline/policy.ts'
import { hasClientLength } from '../../pipeline/request-edits.ts'
import { type BackendPolicies, findBackend, type NamedBackend } from '../../upstream/config.ts'
import { compileAuthorize } from '../../upstream/credentials/credentials.ts'
import { compileDestination, type Destination } from '../../upstream/destination.ts'
import { compileNamedServers } from '../../upstream/endpoints.ts'
import { bufferBody, declaredLength } from './buffered-body.ts'
import { type ForwardingPolicies, type MirrorConfig, mirrorsOf, type RouteBackend } from './config.ts'
import {
  type Choices,
  compileEntries,
  type DestinationEntry,
  type EntryOptions,
  resolveEntry,
} from './entries.ts'
import { forward } from './forward.ts'
import { createMirror, type Mirror, type MirrorOptions } from './mirror.ts'
import { backoffOf, compileRetry, isRetriedError, isRetriedReply, pause, type RetryRule } from './retry.ts'

export type HttpBackendOptions<B extends RouteBackend, N extends NamedBackend> = EntryOptions<B, N> & {
  /** Policies of the route. Its `backendTLS` and `backendAuth` are the defaults of its backends. */
  policies: ForwardingPolicies & Pick<BackendPolicies, 'backendAuth'>
}

/** Bodies of a declared length up to this one are read before sending, which costs less than a stream. */
const maxGatheredBytes = 16 * 1024
/** Bodies up to this length can be retried. */
const maxBufferedBytes = 64 * 1024

/**
 * Compiles the backend of a route, which forwards requests to one of `entries`. Throws on an unknown name or
 * an unreadable file. Without a positive weight, requests receive 503.
 */
export function compileHttpBackend<B extends RouteBackend, N extends NamedBackend>(
  entries: readonly B[],
  context: CompileContext,
  options: HttpBackendOptions<B, N>,
): Backend {
  const { policies, named } = options
  const choices = compileEntries(entries, context, options)
  if (choices === undefined) return refuseAll
  const forwarder: Forwarder = {
    choices,
    requestTimeoutMs: durationOf(policies.timeout?.requestTimeout),
    backendTimeoutMs: durationOf(policies.timeout?.backendRequestTimeout),
    mirror: compileMirrors(policies.requestMirror, named, context, {
      backendAuths: entries.flatMap((entry) => authsOf(entry, policies, named)),
    }),
    send: context.send,
    clock: context.clock,
    random: context.random,
  }
  const retry = compileRetry(policies.retry)
  return (exchange) => {
    if (exchange.facts.request.method === 'TRACE') return refuseTrace(exchange)
    const isRetried = retry !== undefined && retry.permits?.(exchange) !== false
    return isRetried ? forwardWithRetry(exchange, forwarder, retry) : forwardOnce(exchange, forwarder)
  }
}

export type CopyOptions = Pick<MirrorOptions, 'withheld'> & {
  /** Authentication to the backends of the requests. */
  backendAuths?: readonly BackendPolicies['backendAuth'][]
}

/**
 * Compiles mirrors; undefined without any. Copies have none of the `withheld` headers, and none of the tokens
 * that `backendAuths` exchange.
 */
export function compileMirrors(
  configured: ForwardingPolicies['requestMirror'],
  named: readonly NamedBackend[],
  context: CompileContext,
  { withheld, backendAuths = [] }: CopyOptions = {},
): Mirror | undefined {
  const configs = mirrorsOf(configured)
  if (configs.length === 0) return undefined
  const targets = configs.map(({ backend, percentage = 1 }) => ({
    choose: compileMirrorTarget(backend, named, context),
    share: percentage,
  }))
  const auths = backendAuths.flatMap((config) => compileAuthorize(config, context) ?? [])
  return createMirror({ targets, random: context.random, send: context.send, withheld, auths })
}

/** The ways of authentication to an entry, of which the most specific applies. */
function authsOf(
  { backend, policies: own }: RouteBackend,
  { backendAuth }: Pick<BackendPolicies, 'backendAuth'>,
  named: readonly NamedBackend[],
): BackendPolicies['backendAuth'][] {
  const found = backend === undefined ? undefined : findBackend(backend, named)
  return [own?.backendAuth ?? found?.policies?.backendAuth ?? backendAuth]
}

function compileMirrorTarget(
  backend: MirrorConfig['backend'],
  named: readonly NamedBackend[],
  context: CompileContext,
): () => Destination | undefined {
  if (backend.host === undefined) return compileNamedServers(backend.backend, named, context).choose
  const destination = compileDestination({ host: backend.host, node: backend, policies: [] }, context)
  return () => destination
}

/** As in the Gateway API, 0 disables the limit. */
function durationOf(text: string | undefined): number | undefined {
  return milliseconds(text) || undefined
}

function refuseAll(exchange: Exchange): Reply {
  return refuse(exchange, {
    status: 503,
    code: 'no_backend',
    message: 'no backend serves this route: it has none with a weight above 0',
  })
}

/** RFC 9110 section 9.3.8: the response would reveal the gateway's own credentials. */
function refuseTrace(exchange: Exchange): Reply {
  return refuse(exchange, {
    status: 405,
    code: 'method_not_allowed',
    message: 'TRACE is not served',
    headers: { allow: 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS' },
  })
}

type Forwarder = {
  readonly choices: () => Choices
  readonly requestTimeoutMs: number | undefined
  readonly backendTimeoutMs: number | undefined
  readonly mirror: Mirror | undefined
  readonly send: Send
  readonly clock: Clock
  readonly random: () => number
}

function forwardOnce(exchange: Exchange, forwarder: Forwarder): Reply | Promise<Reply> {
  const entry = resolveEntry(forwarder.choices().choose(), exchange)
  if (entry === undefined) return refuseAll(exchange)
  if (entry.kind === 'other') return entry.backend(exchange)
  if (entry.policies !== undefined) return forwardBehindPolicies(exchange, entry, forwarder)
  const { destination } = entry
  const gathered = gather(exchange)
  if (!(gathered instanceof Promise)) return send(gathered)
  return withTimeout(gathered, exchange, forwarder).then(send)

  function send(received: Body) {
    const body = mirrored(exchange, received, forwarder)
    const timeoutMs = timeLimit(exchange, destination, forwarder)
    return forward(exchange, destination, { body, timeoutMs, retries: 0 }, forwarder.send)
  }
}

/** Forwards a request once, with the policies of the backend. Copies have none of their changes. */
async function forwardBehindPolicies(
  exchange: Exchange,
  entry: DestinationEntry,
  forwarder: Forwarder,
): Promise<Reply> {
  let release: (() => void) | undefined
  if (forwarder.mirror) {
    // Gathered first, because a policy may replace the body without reading it.
    const gathered = gather(exchange)
    const body = gathered instanceof Promise ? await withTimeout(gathered, exchange, forwarder) : gathered
    const copies = forwarder.mirror(unchanged(exchange), body)
    exchange.body = copies.body
    release = copies.release
  }
  const { reply } = await attempt(exchange, entry, { retries: 0, release }, forwarder)
  return reply
}

/** A view of the exchange without later changes of the forwarded request. */
function unchanged(exchange: Exchange): Exchange {
  return { ...exchange, forwarding: copyForwarding(exchange.forwarding) }
}

type AttemptPlan = {
  readonly retries: number
  /** Sends the copies of the request; called once the policies of the backend have permitted it. */
  readonly release: (() => void) | undefined
}

/** Sends `exchange.body` to an entry, with the policies of the backend. */
function attempt(
  exchange: Exchange,
  { destination, policies }: DestinationEntry,
  { retries, release }: AttemptPlan,
  forwarder: Forwarder,
): Promise<AttemptResult> {
  if (policies === undefined) return sendBody(exchange.body).then((reply) => ({ kind: 'replied', reply }))
  return attemptThrough(policies, exchange, async () => {
    const gathered = gather(exchange)
    return sendBody(gathered instanceof Promise ? await withTimeout(gathered, exchange, forwarder) : gathered)
  })

  function sendBody(body: Body): Promise<Reply> {
    release?.()
    const timeoutMs = timeLimit(exchange, destination, forwarder)
    return forward(exchange, destination, { body, timeoutMs, retries }, forwarder.send)
  }
}

function mirrored(exchange: Exchange, body: Body, { mirror }: Forwarder): Body {
  if (mirror === undefined) return body
  const copies = mirror(exchange, body)
  copies.release()
  return copies.body
}

/** The body to send: buffered if small, streamed otherwise. */
function gather({ body, facts, forwarding }: Exchange): Body | Promise<Body> {
  if (!isSource(body) || !hasClientLength(forwarding)) return body
  const length = declaredLength(facts.request.headers)
  return length === undefined || length > maxGatheredBytes ? body : bufferBody(body, maxGatheredBytes)
}

function bufferForRetry(exchange: Exchange, forwarder: Forwarder): Body | Promise<Body> {
  const body = bufferBody(exchange.body, maxBufferedBytes)
  return body instanceof Promise ? withTimeout(body, exchange, forwarder) : body
}

/** Applies the request timeout to buffering the body of a slow client. */
function withTimeout(pending: Promise<Body>, exchange: Exchange, forwarder: Forwarder): Promise<Body> {
  const left = timeLeft(exchange, forwarder)
  if (left === undefined) return pending
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => {
        reject(new GatewayError('upstream_timeout', 'the body of the request took too long to arrive'))
        if (isSource(exchange.body)) exchange.body.cancel()
      },
      Math.min(left, longestTimerMs),
    )
    pending.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}

/** The shortest timeout of one attempt. Throws if no time remains. */
function timeLimit(
  exchange: Exchange,
  { requestTimeoutMs: ofDestination }: Destination,
  forwarder: Forwarder,
): number | undefined {
  const { backendTimeoutMs } = forwarder
  // The more specific limit applies.
  const ofAttempt = backendTimeoutMs ?? ofDestination
  const left = timeLeft(exchange, forwarder)
  if (left === undefined) return ofAttempt
  if (left <= 0) throw new GatewayError('upstream_timeout', 'upstream call timeout')
  return ofAttempt === undefined ? left : Math.min(left, ofAttempt)
}

/** The remaining time of a request; undefined without a limit. */
function timeLeft({ startedAt }: Exchange, { requestTimeoutMs, clock }: Forwarder): number | undefined {
  return requestTimeoutMs === undefined ? undefined : startedAt + requestTimeoutMs - clock.monotonic()
}

/** Retries until a response is acceptable, the attempts are exhausted, or the request cannot be repeated. */
async function forwardWithRetry(exchange: Exchange, forwarder: Forwarder, rule: RetryRule): Promise<Reply> {
  const { random } = forwarder
  const method = exchange.forwarding?.method ?? exchange.facts.request.method
  const first = resolveEntry(forwarder.choices().choose(), exchange)
  if (first === undefined) return refuseAll(exchange)
  if (first.kind === 'other') return first.backend(exchange)
  const received = await bufferForRetry(exchange, forwarder)
  const copies = forwarder.mirror?.(unchanged(exchange), received)
  const body = copies ? copies.body : received
  const { forwarding } = exchange
  const { chooseAgain } = forwarder.choices()
  const tried = new Set<DestinationEntry>()
  for (let retries = 0; ; retries += 1) {
    const entry = (retries === 0 ? undefined : chooseAgain(tried)) ?? first
    tried.add(entry)
    // A streamed body and an upgraded connection cannot be repeated.
    const isLast = retries === rule.attempts || isSource(body) || exchange.upgrade !== undefined
    const backoffMs = backoffOf(rule, retries + 1, random)
    // Without time for the backoff, the current result is final.
    const isFinal = () => isLast || backoffMs >= (timeLeft(exchange, forwarder) ?? Infinity)
    clearResponse(exchange)
    try {
      // Changes by policies of a backend are those of one attempt.
      exchange.forwarding = entry.policies === undefined ? forwarding : copyForwarding(forwarding)
      exchange.body = body
      const { kind, reply } = await attempt(exchange, entry, { retries, release: copies?.release }, forwarder)
      if (kind === 'refused' || !isRetriedReply(rule, method, reply, exchange) || isFinal()) return reply
      if (isSource(reply.body)) reply.body.cancel()
    } catch (error) {
      if (!isRetriedError(rule, method, error) || isFinal()) throw error
    }
    await pause(backoffMs, exchange.cancellation)
  }
}
