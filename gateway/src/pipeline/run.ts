import type { Clock } from '../lib/clock.ts'
import { parseRequestTarget, type RequestTarget } from '../lib/request-target.ts'
import type { Headers } from '../net/headers.ts'
import type { Delivery, ExchangeHandler, IncomingRequest } from '../net/http-server.ts'
import type { Reply } from '../net/send.ts'
import { accessLine, createTimestamp } from './access-log.ts'
import { refuse, replyToError } from './errors.ts'
import type { Exchange } from './exchange.ts'
import type { LogSink } from './log.ts'
import type { RouteMeter } from './metrics.ts'
import type { Policy } from './policy.ts'
import type { Listener, Route } from './snapshot.ts'

export type PipelineOptions = {
  /** The listener as it is now: read once per request, so a reload never changes a request half-way. */
  listener(): Listener | undefined
  log: LogSink
  clock: Clock
  /** Counts requests that matched no route. */
  unrouted: RouteMeter
}

/**
 * The request path of every HTTP listener:
 * exchange -> route -> policies in order -> backend -> entered policies in reverse -> [bytes] -> ends -> log and metrics.
 */
export function createPipeline(options: PipelineOptions): (request: IncomingRequest) => ExchangeHandler {
  const { log, clock, unrouted } = options
  const timestamp = createTimestamp(clock.now)

  return (request) => {
    const target = parseRequestTarget(request.target)
    const exchange = createExchange(request, target)
    const listener = options.listener()
    const found =
      target && listener?.kind === 'http'
        ? listener.match(exchange.facts.request, request.serverName)
        : undefined
    if (!found) {
      return {
        reply: Promise.resolve(refuseUnrouted(exchange, target)),
        end: (delivery) => finish(delivery, unrouted),
      }
    }
    const route = found.target
    exchange.routeName = route.name
    exchange.matchedPrefix = found.prefix
    exchange.errorFormat = route.errorFormat(exchange.facts.request)
    const entered: Policy[] = []
    return {
      reply: run(exchange, route, entered),
      end(delivery) {
        for (const policy of entered) endPolicy(policy)
        finish(delivery, route.meter)
      },
    }

    function endPolicy(policy: Policy) {
      try {
        policy.onEnd?.(exchange)
      } catch (error) {
        exchange.failure ??= error
      }
    }

    function finish(delivery: Delivery, meter: RouteMeter) {
      const endedAt = clock.monotonic()
      const { startedAt } = exchange
      exchange.failure ??= delivery.failure
      const firstByteMs = delivery.firstByteAt === undefined ? undefined : delivery.firstByteAt - startedAt
      // 499: the client left before an answer could be sent.
      meter.done(delivery.status ?? 499, endedAt - startedAt, firstByteMs)
      log.writeLine(accessLine(exchange, delivery, timestamp(), endedAt))
    }
  }
}

async function run(exchange: Exchange, route: Route, entered: Policy[]): Promise<Reply> {
  let reply: Reply | undefined
  try {
    for (const policy of route.policies) {
      entered.push(policy)
      if (!policy.onRequest) continue
      const outcome = policy.onRequest(exchange)
      reply = outcome instanceof Promise ? await outcome : outcome
      if (reply) break
    }
    reply ??= await route.backend(exchange)
  } catch (error) {
    reply = replyToError(exchange, error)
  }
  for (let index = entered.length - 1; index >= 0; index--) {
    const policy = entered[index]
    if (!policy?.onReply) continue
    try {
      const changed = policy.onReply(exchange, reply)
      reply = changed instanceof Promise ? await changed : changed
    } catch (error) {
      // A check that fails denies: the backend's answer is not sent.
      reply = replyToError(exchange, error)
    }
  }
  return reply
}

function refuseUnrouted(exchange: Exchange, target: RequestTarget | undefined): Reply {
  if (!target)
    return refuse(exchange, { status: 400, code: 'bad_request', message: 'malformed request target' })
  return refuse(exchange, { status: 404, code: 'route_not_found', message: 'no route matches this path' })
}

function createExchange(request: IncomingRequest, target: RequestTarget | undefined): Exchange {
  const { headers } = request
  return {
    facts: {
      request: {
        method: request.method,
        scheme: request.scheme,
        host: hostOf(headers),
        path: target?.path ?? '/',
        query: target?.query ?? '',
        version: request.version,
        headers,
      },
      source: { address: request.address, port: request.port },
      jwt: undefined,
      apiKey: undefined,
      llmRequest: undefined,
      llm: undefined,
      usage: undefined,
    },
    body: request.body,
    cancellation: request.cancellation,
    startedAt: request.startedAt,
    errorFormat: 'text',
    routeName: '',
    matchedPrefix: '/',
    forwarding: undefined,
    upgrade: request.upgrade,
    informational: request.informational,
    mayUseModel: undefined,
    allowedModels: undefined,
    keyGroup: '',
    limits: undefined,
    backendState: undefined,
    refusedBy: undefined,
    failure: undefined,
  }
}

function hostOf(headers: Headers): string {
  const host = headers['host']
  return typeof host === 'string' ? host : ''
}
