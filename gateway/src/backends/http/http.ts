import type { Clock } from '../../lib/clock.ts'
import { longestTimerMs, milliseconds } from '../../lib/duration.ts'
import { GatewayError } from '../../lib/gateway-error.ts'
import { type Body, isSource } from '../../net/http/body.ts'
import type { Reply, Send } from '../../net/http-client/send.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import { refuse } from '../../pipeline/errors.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import type { Backend } from '../../pipeline/policy.ts'
import { type BackendPolicies, findBackend, type NamedBackend } from '../../upstream/config.ts'
import {
  compileDestination,
  compileNamedDestination,
  type Destination,
  missingBackend,
} from '../../upstream/destination.ts'
import type { Health } from '../../upstream/health.ts'
import { bufferBody, declaredLength } from './buffered-body.ts'
import { type Choose, compileChoice } from './choice.ts'
import type { ForwardingPolicies, MirrorConfig, RouteBackend } from './config.ts'
import { forward } from './forward.ts'
import { createMirror, type Mirror } from './mirror.ts'
import { backoffOf, compileRetry, isRetriedError, isRetriedReply, pause, type RetryRule } from './retry.ts'

export type HttpBackendOptions<B extends RouteBackend, N extends NamedBackend> = {
  /** The `backends` section. */
  named: readonly N[]
  /** Policies of the route. Its `backendTLS` and `backendAuth` are the defaults of its backends. */
  policies: ForwardingPolicies & Pick<BackendPolicies, 'backendTLS' | 'backendAuth'>
  /** Compiles an entry of another kind: `mcp` or `ai`, inline or from the `backends` section. */
  compileOther(entry: B, named: N | undefined): Backend
}

/** A destination of requests of the route. */
type Entry = DestinationEntry | OtherEntry
type DestinationEntry = {
  readonly kind: 'destination'
  readonly weight: number
  readonly health: Health | undefined
  readonly destination: Destination
}
type OtherEntry = {
  readonly kind: 'other'
  readonly weight: number
  readonly health: undefined
  readonly backend: Backend
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
  const compiled = entries.map((entry) => compileEntry(entry, context, options))
  const weighted = compiled.filter(({ weight }) => weight > 0)
  if (weighted.length === 0) return refuseAll
  const forwarder: Forwarder = {
    choose: compileChoice(weighted, context.random),
    chooseAgain: compileChoice(weighted.filter(isDestination), context.random),
    requestTimeoutMs: durationOf(policies.timeout?.requestTimeout),
    backendTimeoutMs: durationOf(policies.timeout?.backendRequestTimeout),
    mirror: policies.requestMirror && compileMirror(policies.requestMirror, named, context),
    send: context.send,
    clock: context.clock,
    random: context.random,
  }
  const retry = compileRetry(policies.retry)
  return (exchange) => {
    if (exchange.facts.request.method === 'TRACE') return refuseTrace(exchange)
    return retry ? forwardWithRetry(exchange, forwarder, retry) : forwardOnce(exchange, forwarder)
  }
}

function compileEntry<B extends RouteBackend, N extends NamedBackend>(
  entry: B,
  context: CompileContext,
  { named, policies: { backendTLS, backendAuth }, compileOther }: HttpBackendOptions<B, N>,
): Entry {
  const weight = entry.weight ?? 1
  const found = entry.backend === undefined ? undefined : findBackend(entry.backend, named)
  if (entry.backend !== undefined && found === undefined)
    throw new Error(missingBackend(entry.backend, undefined))
  const host = found ? found.host : entry.host
  if (host === undefined) {
    return { kind: 'other', weight, health: undefined, backend: compileOther(entry, found) }
  }
  // Other policies of the route have run already.
  const policies = [entry.policies, found?.policies, { backendTLS, backendAuth }]
  const destination = compileDestination({ host, node: found ?? entry, name: found?.name, policies }, context)
  return { kind: 'destination', weight, health: destination.health, destination }
}

function compileMirror(
  { backend, percentage }: MirrorConfig,
  named: readonly NamedBackend[],
  context: CompileContext,
): Mirror {
  const destination =
    backend.host === undefined
      ? compileNamedDestination(backend.backend, named, context)
      : compileDestination({ host: backend.host, node: backend, policies: [] }, context)
  return createMirror({ destination, share: percentage ?? 1, random: context.random, send: context.send })
}

function isDestination(entry: Entry): entry is DestinationEntry {
  return entry.kind === 'destination'
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
  readonly choose: Choose<Entry>
  /** For retries: entries of other kinds require an unread body. */
  readonly chooseAgain: Choose<DestinationEntry>
  readonly requestTimeoutMs: number | undefined
  readonly backendTimeoutMs: number | undefined
  readonly mirror: Mirror | undefined
  readonly send: Send
  readonly clock: Clock
  readonly random: () => number
}

function forwardOnce(exchange: Exchange, forwarder: Forwarder): Reply | Promise<Reply> {
  const entry = forwarder.choose()
  if (entry === undefined) return refuseAll(exchange)
  if (entry.kind === 'other') return entry.backend(exchange)
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

function mirrored(exchange: Exchange, body: Body, { mirror }: Forwarder): Body {
  return mirror ? mirror(exchange, body) : body
}

/** The body to send: buffered if small, streamed otherwise. */
function gather({ body, facts }: Exchange): Body | Promise<Body> {
  if (!isSource(body)) return body
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
  const { choose, chooseAgain, send, random } = forwarder
  const { method } = exchange.facts.request
  const first = choose()
  if (first === undefined) return refuseAll(exchange)
  if (first.kind === 'other') return first.backend(exchange)
  const body = mirrored(exchange, await bufferForRetry(exchange, forwarder), forwarder)
  const tried = new Set<DestinationEntry>()
  for (let retries = 0; ; retries += 1) {
    const entry = (retries === 0 ? undefined : chooseAgain(tried)) ?? first
    tried.add(entry)
    // A streamed body and an upgraded connection cannot be repeated.
    const isLast = retries === rule.attempts || isSource(body) || exchange.upgrade !== undefined
    const backoffMs = backoffOf(rule, retries + 1, random)
    // Without time for the backoff, the current result is final.
    const isFinal = () => isLast || backoffMs >= (timeLeft(exchange, forwarder) ?? Infinity)
    try {
      const timeoutMs = timeLimit(exchange, entry.destination, forwarder)
      const reply = await forward(exchange, entry.destination, { body, timeoutMs, retries }, send)
      if (!isRetriedReply(rule, method, reply) || isFinal()) return reply
      if (isSource(reply.body)) reply.body.cancel()
    } catch (error) {
      if (!isRetriedError(rule, method, error) || isFinal()) throw error
    }
    await pause(backoffMs, exchange.cancellation)
  }
}
