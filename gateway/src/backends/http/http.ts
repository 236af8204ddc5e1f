import type { Clock } from '../../lib/clock.ts'
import { longestTimerMs, milliseconds } from '../../lib/duration.ts'
import { GatewayError } from '../../lib/gateway-error.ts'
import { type Body, isSource } from '../../net/http/body.ts'
import type { Reply, Send } from '../../net/http-client/send.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import { refuse } from '../../pipeline/errors.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import type { Backend } from '../../pipeline/policy.ts'
import type { NamedBackend } from '../../upstream/config.ts'
import { compileDestination, type Destination } from '../../upstream/destination.ts'
import { compileNamedServers } from '../../upstream/endpoints.ts'
import { bufferBody, declaredLength } from './buffered-body.ts'
import { type ForwardingPolicies, type MirrorConfig, mirrorsOf, type RouteBackend } from './config.ts'
import { type Choices, compileEntries, type DestinationEntry, type EntryOptions } from './entries.ts'
import { forward } from './forward.ts'
import { createMirror, type Mirror } from './mirror.ts'
import { backoffOf, compileRetry, isRetriedError, isRetriedReply, pause, type RetryRule } from './retry.ts'

export type HttpBackendOptions<B extends RouteBackend, N extends NamedBackend> = EntryOptions<B, N> & {
  /** Policies of the route. Its `backendTLS` and `backendAuth` are the defaults of its backends. */
  policies: ForwardingPolicies
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
    mirror: compileMirrors(policies.requestMirror, named, context),
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

function compileMirrors(
  configured: ForwardingPolicies['requestMirror'],
  named: readonly NamedBackend[],
  context: CompileContext,
): Mirror | undefined {
  const configs = mirrorsOf(configured)
  if (configs.length === 0) return undefined
  const targets = configs.map(({ backend, percentage = 1 }) => ({
    choose: compileMirrorTarget(backend, named, context),
    share: percentage,
  }))
  return createMirror({ targets, random: context.random, send: context.send })
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
  const entry = forwarder.choices().choose()
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
  const { send, random } = forwarder
  const { method } = exchange.facts.request
  const first = forwarder.choices().choose()
  if (first === undefined) return refuseAll(exchange)
  if (first.kind === 'other') return first.backend(exchange)
  const body = mirrored(exchange, await bufferForRetry(exchange, forwarder), forwarder)
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
