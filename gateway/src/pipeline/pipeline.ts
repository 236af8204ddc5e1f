import { randomUUID } from 'node:crypto'
import type { LedgerSink } from '../ledger/sink.ts'
import type { Clock } from '../lib/clock.ts'
import type { PathVariants } from '../lib/path-variants.ts'
import { parseRequestTarget, type RequestTarget } from '../lib/request-target.ts'
import { isSource } from '../net/http/body.ts'
import type { Delivery, IncomingRequest, PendingExchange } from '../net/http/incoming-request.ts'
import { discard, type Reply } from '../net/http-client/send.ts'
import type { LiveMeter } from '../telemetry/live/live-counts.ts'
import type { LogSink } from '../telemetry/log.ts'
import type { RouteMeter } from '../telemetry/metrics/routes.ts'
import { accessLine, createTimestamp } from './access-log.ts'
import { acceptSocket } from './connection/accept-socket.ts'
import type { CallParts } from './connection/connection-calls.ts'
import { refuse, replyToError } from './errors.ts'
import type { Exchange } from './exchange.ts'
import { recordResponse } from './facts/response-facts.ts'
import type { Policy } from './policy.ts'
import { createExplainer } from './recording/explanation.ts'
import { isRecorded, ledgerEntry } from './recording/ledger-entry.ts'
import { createRecording, type Explain, recordWait } from './recording/recording.ts'
import { createRequestIds } from './recording/request-id.ts'
import { compileStandardAttributes, type StandardAttributes } from './recording/standard-attributes.ts'
import { createExchange, readHost, readSender } from './request-exchange.ts'
import type { HttpListener, Listener, Route } from './snapshot.ts'
import type { AccessTimes } from './tracing/configured-access-log.ts'
import type { RequestTelemetry } from './tracing/tracing.ts'

export type PipelineOptions = {
  /**
   * Returns the current listener. Called once per request, so that a reload does not affect a request in
   * progress.
   */
  listener(): Listener | undefined
  log: LogSink
  /** Receives an entry for each LLM request and MCP call; undefined without a ledger. */
  ledger?: LedgerSink | undefined
  clock: Clock
  /** Counts requests that matched no route. */
  unrouted: RouteMeter
  /** Counts all requests but those of the console. */
  live?: Pick<LiveMeter, 'request'> | undefined
  /** The resource that is pending before requests may be served, because rules are incomplete without it. */
  unavailable?: (() => string | undefined) | undefined
  /** Requests whose entry has an explanation; `errors` by default. */
  explain?: Explain | undefined
  /** User and group of entries; undefined for the default attributes. */
  attributes?: StandardAttributes | undefined
}

/**
 * The request path of every HTTP listener: exchange -> route -> policies in order -> backend -> entered
 * policies in reverse -> [bytes] -> ends -> log and metrics.
 */
export function createPipeline(options: PipelineOptions): (request: IncomingRequest) => PendingExchange {
  const { log, clock, unrouted, live, ledger, explain = 'errors' } = options
  const { attributes = compileStandardAttributes({}) } = options
  const timestamp = createTimestamp(clock.now)
  const explanationOf = createExplainer(clock)
  const nextRequestId = createRequestIds(clock.now, randomUUID)

  const callParts: CallParts = {
    clock,
    listener: options.listener,
    nextRequestId,
    createRecording: () => (ledger === undefined ? undefined : createRecording(explain)),
    startTelemetry,
    end(call, delivery, { route, listener, entered }) {
      for (const policy of entered) endPolicy(policy, call)
      finish(call, delivery, { meter: route.meter, listener, entered })
    },
  }

  return (request) => {
    const target = parseRequestTarget(request.target)
    const host = readHost(request)
    const listener = options.listener()
    const clients = listener?.kind === 'http' ? listener.clients : undefined
    const sender = readSender(request, host ?? '', clients)
    const exchange = createExchange(request, target, { sender, clock })
    const telemetry = listener?.telemetry
    if (telemetry !== undefined) startTelemetry(telemetry, exchange)
    const missing = options.unavailable?.()
    const found =
      missing === undefined && target && host !== undefined && listener?.kind === 'http'
        ? listener.match(exchange.facts.request, request.connection)
        : undefined
    if (!found) {
      const refusal =
        missing === undefined ? refuseUnrouted(exchange, target, host) : refuseUnavailable(exchange, missing)
      const end = (delivery: Delivery) =>
        finish(exchange, delivery, { meter: unrouted, listener, entered: none })
      return { reply: Promise.resolve(refusal), end }
    }
    const route = found.target
    exchange.route = found
    exchange.facts.route = route
    if (route.traffic !== undefined) {
      exchange.requestId = nextRequestId()
      if (ledger !== undefined) exchange.recording = createRecording(explain)
    }
    exchange.errorFormat = route.errorFormat(exchange.facts.request)
    if (request.upgrade !== undefined && route.traffic === 'llm')
      acceptSocket(exchange, { route, listener, calls: callParts })
    if (target?.variants !== undefined && route.allowsAmbiguousPaths !== true && listener?.kind === 'http') {
      const refusal = checkPathVariants(exchange, target.variants, listener)
      if (refusal) {
        setRequestId(exchange, refusal)
        const end = (delivery: Delivery) =>
          finish(exchange, delivery, { meter: route.meter, listener, entered: none })
        return { reply: Promise.resolve(refusal), end }
      }
    }
    const entered: Policy[] = []
    return {
      reply: run(exchange, route, { entered, clock }),
      end(delivery) {
        for (const policy of entered) endPolicy(policy, exchange)
        exchange.mcp?.onDelivered?.(delivery)
        finish(exchange, delivery, { meter: route.meter, listener, entered })
      },
    }
  }

  function finish(exchange: Exchange, delivery: Delivery, { meter, listener, entered }: Handled): void {
    const endedAt = clock.monotonic()
    const { startedAt } = exchange
    exchange.log.failure ??= delivery.failure
    const firstByteMs = delivery.firstByteAt === undefined ? undefined : delivery.firstByteAt - startedAt
    // 499: the client disconnected before a response was sent.
    const status = delivery.status ?? 499
    meter.done(status, endedAt - startedAt, firstByteMs, exchange.metricLabels?.(), exchange.trace)
    if (isTraffic(exchange)) live?.request(status, endedAt - startedAt)
    const time = timestamp()
    const telemetry = listener?.telemetry
    const line =
      telemetry === undefined
        ? accessLine(exchange, delivery, time, endedAt)
        : reportRequest(telemetry, exchange, delivery, { time, endedAt })
    if (line !== undefined) log.writeLine(line)
    if (ledger === undefined || exchange.recording === undefined || !isRecorded(exchange)) return
    const entry = ledgerEntry(exchange, delivery, { endedAt, completedAt: clock.now(), attributes })
    const cold = {
      entry,
      entered,
      listener: listener?.kind === 'http' ? listener : undefined,
      delivery,
      endedAt,
    }
    const explanation = explanationOf(exchange, cold)
    const { details } = entry
    ledger.record(explanation === undefined ? entry : { ...entry, details: { ...details, explanation } })
  }
}

/** Starts the trace of a request, and selects the facts that it retains for expressions. */
function startTelemetry({ tracing, retains, labels }: RequestTelemetry, exchange: Exchange): void {
  if (labels !== undefined) exchange.metricLabels = labels(exchange)
  if (tracing !== undefined) exchange.trace = tracing.start(exchange)
  exchange.retains = exchange.trace?.isSampled === true ? retains.sampled : retains.always
}

/**
 * Exports spans and returns the access log line. A defect of telemetry is reported in the line and ends no
 * request.
 */
function reportRequest(
  { tracing, accessLog }: RequestTelemetry,
  exchange: Exchange,
  delivery: Delivery,
  at: AccessTimes,
): string | undefined {
  try {
    tracing?.end(exchange, delivery, at.endedAt)
    if (accessLog !== undefined) return accessLog.line(exchange, delivery, at)
  } catch (error) {
    exchange.log.failure ??= error
  }
  return accessLine(exchange, delivery, at.time, at.endedAt)
}

/** Meter, listener and entered policies of a request at its end. */
type Handled = {
  readonly meter: RouteMeter
  readonly listener: Listener | undefined
  readonly entered: readonly Policy[]
}

const none: readonly Policy[] = []

/** Whether live figures count a request: streams of MCP sessions stay open for hours. */
function isTraffic({ route, facts }: Exchange): boolean {
  if (route === undefined) return true
  const { isConsole, traffic } = route.target
  return isConsole !== true && (traffic !== 'mcp' || facts.request.method !== 'GET')
}

/** Replaces an id of the upstream, which the ledger stores beside the gateway's. */
function setRequestId({ requestId }: Exchange, reply: Reply): void {
  if (requestId !== undefined) reply.headers['x-request-id'] = requestId
}

function endPolicy(policy: Policy, exchange: Exchange): void {
  try {
    policy.onEnd?.(exchange)
  } catch (error) {
    exchange.log.failure ??= error
  }
}

/** `entered` receives the entered policies. */
type Running = { readonly entered: Policy[]; readonly clock: Clock }

async function run(exchange: Exchange, route: Route, { entered, clock }: Running): Promise<Reply> {
  const times = exchange.recording?.times
  let reply: Reply | undefined
  try {
    for (const configured of route.policies) {
      const policy = configured.select === undefined ? configured : configured.select(exchange)
      if (policy === undefined) continue
      entered.push(policy)
      if (!policy.onRequest) continue
      const outcome = policy.onRequest(exchange)
      if (outcome instanceof Promise) {
        const from = times && clock.monotonic()
        reply = await outcome
        if (times) recordWait(times, policy.name, from, clock)
      } else reply = outcome
      if (reply) break
    }
    if (times && !reply) times.backendAt = clock.monotonic()
    if (reply) discardBody(exchange)
    else reply = await route.backend(exchange)
  } catch (error) {
    reply = replyToError(exchange, error)
  }
  if (times) {
    times.repliedAt = clock.monotonic()
    if (times.backendAt === undefined) times.stoppedBy = entered.at(-1)?.name
  }
  for (let index = entered.length - 1; index >= 0; index--) {
    const policy = entered[index]
    if (!policy?.onReply) continue
    try {
      const changed = policy.onReply(exchange, reply)
      if (changed instanceof Promise) {
        const from = times && clock.monotonic()
        reply = await changed
        if (times) recordWait(times, `${policy.name} of the reply`, from, clock)
      } else reply = changed
    } catch (error) {
      // Fail closed: discard the backend's response.
      discard(reply)
      reply = replyToError(exchange, error)
    }
  }
  if (times) times.readyAt = clock.monotonic()
  if (exchange.retains?.response === true) recordResponse(exchange, reply)
  setRequestId(exchange, reply)
  return reply
}

/** A policy may have read a part of the body: without a reader, the rest would stop the connection. */
function discardBody({ body }: Exchange): void {
  if (isSource(body)) body.cancel()
}

function refuseUnavailable(exchange: Exchange, missing: string): Reply {
  return refuse(exchange, {
    status: 503,
    code: 'not_ready',
    message: `the gateway is not ready: ${missing} is pending`,
    headers: { 'retry-after': '1' },
  })
}

function refuseUnrouted(
  exchange: Exchange,
  target: RequestTarget | undefined,
  host: string | undefined,
): Reply {
  if (!target)
    return refuse(exchange, { status: 400, code: 'bad_request', message: 'malformed request target' })
  if (host === undefined)
    return refuse(exchange, { status: 400, code: 'bad_request', message: 'missing or malformed host header' })
  return refuse(exchange, { status: 404, code: 'route_not_found', message: 'no route matches this path' })
}

/**
 * Records the other paths that lenient servers derive from the request path. Returns a refusal if one of them
 * is unsafe or belongs to another route.
 */
function checkPathVariants(
  exchange: Exchange,
  variants: PathVariants,
  listener: HttpListener,
): Reply | undefined {
  if (variants.kind === 'unsafe') {
    return refuseAmbiguous(exchange, `with escapes and parameters decoded it has ${variants.reason}`)
  }
  const { connection, facts, route } = exchange
  for (const path of variants.paths) {
    if (listener.match({ ...facts.request, path }, connection)?.target !== route?.target) {
      return refuseAmbiguous(exchange, 'with escapes and parameters decoded it belongs to another route')
    }
  }
  exchange.pathVariants = variants.paths
  return undefined
}

function refuseAmbiguous(exchange: Exchange, ambiguity: string): Reply {
  return refuse(exchange, {
    status: 400,
    code: 'ambiguous_path',
    message: `ambiguous request path: ${ambiguity}`,
  })
}
