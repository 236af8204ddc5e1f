import type { Clock } from '../../lib/clock.ts'
import type { Delivery } from '../../net/http/incoming-request.ts'
import type { Reply } from '../../net/http-client/send.ts'
import { replyToError } from '../errors.ts'
import { type ConnectionCalls, createAuthState, type Exchange, type StartedCall } from '../exchange.ts'
import type { Policy, Repetition } from '../policy.ts'
import type { Recording } from '../recording/recording.ts'
import type { HttpListener, Listener, Route } from '../snapshot.ts'
import type { RequestTelemetry } from '../tracing/tracing.ts'

/** Parts of the pipeline that calls of a connection have in common with requests. */
export type CallParts = {
  readonly clock: Clock
  listener(): Listener | undefined
  nextRequestId(): string
  createRecording(): Recording | undefined
  startTelemetry(telemetry: RequestTelemetry, exchange: Exchange): void
  /** Ends the entered policies, and reports the call. */
  end(call: Exchange, delivery: Delivery, handled: Handled): void
}

type Handled = {
  readonly route: Route
  readonly listener: HttpListener
  readonly entered: readonly Policy[]
}

/** The request of the connection, before policies have changed it, and its route. */
export type Opening = {
  readonly exchange: Exchange
  readonly route: Route
  readonly listener: HttpListener
}

/** Creates the calls of a connection. */
export function createConnectionCalls(opening: Opening, parts: CallParts): ConnectionCalls {
  const { clock } = parts
  const received = {
    ...opening.exchange.facts.request,
    headers: { ...opening.exchange.facts.request.headers },
  }
  let { exchange: current, route, listener } = opening
  let isOutdated = false

  function policiesThatRepeat(repeats: Repetition, exchange: Exchange, { policies } = route): Policy[] {
    return policies.flatMap((configured) => {
      if (configured.repeats !== repeats) return []
      return configured.select === undefined ? configured : (configured.select(exchange) ?? [])
    })
  }

  async function start(prepare: (exchange: Exchange) => void): Promise<StartedCall> {
    const call = callOn(current, parts)
    if (listener.telemetry !== undefined) parts.startTelemetry(listener.telemetry, call)
    prepare(call)
    const entered: Policy[] = []
    const handled = { route, listener, entered }
    const policies = policiesThatRepeat('call', call)
    const reply =
      call.llm?.isCommitted === true
        ? await enterAll(call, policies, entered)
        : await enter(call, policies, entered)
    const end = (delivery: Delivery) => parts.end(call, delivery, handled)
    if (reply === undefined) return { kind: 'admitted', exchange: call, end }
    end({ complete: true, status: reply.status, bytesSent: 0, firstByteAt: undefined })
    return { kind: 'refused', exchange: call, reply }
  }

  async function recheck(isExpired: boolean): Promise<Reply | undefined> {
    if (hasEnded(opening.exchange, clock)) return sessionEnded
    const latest = parts.listener()
    if (latest === listener && !isExpired) return undefined
    const fresh = requestAgain(opening.exchange, received, clock)
    if (latest?.kind !== 'http') return routeRemoved
    const found = latest.match(fresh.facts.request, fresh.connection)
    if (found?.target.traffic !== 'llm') return routeRemoved
    isOutdated = latest !== opening.listener && !isSuitable(opening.route, found.target)
    // The connection ends: its facts are those of other policies.
    if (isOutdated) return undefined
    fresh.route = found
    fresh.facts.route = found.target
    const reply = await enter(fresh, policiesThatRepeat('credential', fresh, found.target), [])
    if (reply !== undefined) return reply
    // Not before: a call must not start with the new policies and the former credential.
    route = found.target
    listener = latest
    current = { ...current, auth: fresh.auth, facts: { ...fresh.facts, llm: current.facts.llm } }
    return undefined
  }

  return {
    start,
    recheck,
    checkRequest: (exchange) => enter(exchange, policiesThatRepeat('content', exchange), []),
    async checkReply(exchange, reply) {
      let checked = reply
      for (const policy of policiesThatRepeat('content', exchange).reverse()) {
        try {
          checked = (await policy.onReply?.(exchange, checked)) ?? checked
        } catch (error) {
          return replyToError(exchange, error)
        }
      }
      return checked
    },
    get isGuarded() {
      return route.policies.some(({ repeats }) => repeats === 'content')
    },
    get isOutdated() {
      return isOutdated
    },
    get current() {
      return current
    },
  }
}

/** The refusal of a connection whose route is not in the current configuration. */
const routeRemoved: Reply = { status: 404, headers: {}, body: Buffer.from('the route was removed') }

/** The refusal of a connection whose login session has ended. */
const sessionEnded: Reply = { status: 401, headers: {}, body: Buffer.from('the session has ended') }

function hasEnded({ auth: { session } }: Exchange, clock: Clock): boolean {
  if (session === undefined) return false
  return session.isEnded?.() === true || (session.endsAt !== undefined && clock.now() >= session.endsAt)
}

/** Whether the policies of a later configuration apply to a connection without another request. */
function isSuitable(opened: Route, latest: Route): boolean {
  if (latest.policies.some(({ isOfModels }) => isOfModels === true)) return false
  const [before, after] = [checksOfConnections(opened), checksOfConnections(latest)]
  // Compiled policies are the same objects until their configuration changes.
  return before.length === after.length && before.every((policy, index) => policy === after[index])
}

function checksOfConnections({ policies }: Route): Policy[] {
  return policies.filter(({ isOfConnections }) => isOfConnections === true)
}

/** Runs the request phase of policies. A failed check refuses. */
async function enter(
  exchange: Exchange,
  policies: readonly Policy[],
  entered: Policy[],
): Promise<Reply | undefined> {
  try {
    for (const policy of policies) {
      entered.push(policy)
      const reply = await policy.onRequest?.(exchange)
      if (reply !== undefined) return reply
    }
    return undefined
  } catch (error) {
    return replyToError(exchange, error)
  }
}

/** Runs the request phase of all policies for a call that cannot be refused, so that it is charged. */
async function enterAll(
  exchange: Exchange,
  policies: readonly Policy[],
  entered: Policy[],
): Promise<undefined> {
  for (const policy of policies) {
    entered.push(policy)
    try {
      await policy.onRequest?.(exchange)
    } catch (error) {
      exchange.log.failure ??= error
    }
  }
}

/** State that each call has for itself. */
function withoutCallState(exchange: Exchange): Exchange {
  return {
    ...exchange,
    limits: undefined,
    llm: undefined,
    guards: undefined,
    budgets: undefined,
    charges: undefined,
    payload: undefined,
    recording: undefined,
    trace: undefined,
    metricLabels: undefined,
    retains: undefined,
    calls: undefined,
    log: { refusedBy: undefined, errorCode: undefined, failure: undefined },
  }
}

function callOn(connection: Exchange, { clock, nextRequestId, createRecording }: CallParts): Exchange {
  const { facts } = connection
  return {
    ...withoutCallState(connection),
    facts: {
      ...facts,
      request: { ...facts.request, arrivedAt: clock.now() },
      llmRequest: undefined,
      llm: undefined,
      usage: undefined,
    },
    startedAt: clock.monotonic(),
    requestId: nextRequestId(),
    recording: createRecording(),
  }
}

/** The request of a connection as it was received, with the results of checks that do not apply again. */
function requestAgain(connection: Exchange, request: Exchange['facts']['request'], clock: Clock): Exchange {
  const { auth, facts } = connection
  const { source, destination, extAuthz, extProc, metadata } = facts
  return {
    ...withoutCallState(connection),
    facts: {
      ...{ clock, source, destination, extAuthz, extProc, metadata },
      request: { ...request, headers: { ...request.headers } },
      // Claims of a session, which precede those of tokens.
      jwt: auth.session && facts.jwt,
      apiKey: undefined,
      llmRequest: undefined,
      llm: undefined,
      usage: undefined,
    },
    auth: { ...createAuthState(), session: auth.session },
  }
}
