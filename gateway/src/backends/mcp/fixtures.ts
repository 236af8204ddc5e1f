import { type CancellationSource, createCancellation } from '../../lib/cancellation.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../lib/json.ts'
import { isSource } from '../../net/body.ts'
import type { Headers } from '../../net/headers.ts'
import type { Reply } from '../../net/send.ts'
import { createSseParser, type SseEvent } from '../../net/sse.ts'
import type { Exchange, Facts } from '../../pipeline/exchange.ts'
import { fixtureExchange } from '../../pipeline/fixtures.ts'
import { createSessionPlaces, defaultMcpLimits, type McpLimits, type Places } from './admission.ts'
import { messageOf, paramsOf } from './json-rpc.ts'
import type {
  CallContext,
  EventMark,
  Listening,
  Message,
  MessageSink,
  Target,
  TargetFailure,
  TargetSession,
} from './targets/target.ts'

/** What tests of sessions and federation stand on: targets that do as they are told, and clients. */

/** One session a fake target was asked for. */
export type FakeSession = {
  readonly requests: JsonObject[]
  readonly delivered: JsonObject[]
  /** Sinks of the requests, in order, and of the streams. */
  readonly sinks: MessageSink[]
  readonly streams: { sink: MessageSink; context: CallContext }[]
  readonly contexts: CallContext[]
  cancelled: number
  closed: number
  die(reason: string): void
}

/** What a fake target does with a request: a result, a failure, or what the function does with the sink. */
export type Behaviour = (
  params: JsonObject,
  sink: MessageSink,
  request: Message,
) => JsonObject | TargetFailure | { error: { code: number; message: string } } | undefined

export type FakeTarget = Target & {
  readonly sessions: FakeSession[]
  /** By method; unknown methods are JSON-RPC errors. */
  readonly behaviours: Record<string, Behaviour>
  /** What `deliver` resolves with, by method; responses of clients under `response`. */
  readonly refusals: Record<string, TargetFailure>
  /** Answer to `listen`; the default is a stream. */
  listening: Listening['kind']
  listenFailure: TargetFailure | undefined
}

export type FakeTargetOptions = {
  pinned?: boolean
  sessionless?: boolean
  behaviours?: Record<string, Behaviour>
}

/** A target that answers as its behaviours say. */
export function fakeTarget(name: string, options: FakeTargetOptions = {}): FakeTarget {
  const target: FakeTarget = {
    name,
    sessionless: options.sessionless ?? false,
    sessions: [],
    behaviours: { initialize: () => introduction(name), ...options.behaviours },
    refusals: {},
    listening: 'flow',
    listenFailure: undefined,
    open: () => createSession(target, options.pinned === true ? undefined : { n: name }),
    resume: (state) => (state['n'] === name ? createSession(target, state) : undefined),
  }
  return target
}

export function introduction(name: string): JsonObject {
  return { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name, version: '1' } }
}

function createSession(target: FakeTarget, state: JsonObject | undefined): TargetSession {
  let died: ((reason: string) => void) | undefined
  const session: FakeSession = {
    requests: [],
    delivered: [],
    sinks: [],
    streams: [],
    contexts: [],
    cancelled: 0,
    closed: 0,
    die: (reason) => died?.(reason),
  }
  target.sessions.push(session)
  const flow = {
    resume() {},
    cancel() {
      session.cancelled += 1
    },
  }
  return {
    request(message, context, sink) {
      session.requests.push(message.value)
      session.contexts.push(context)
      session.sinks.push(sink)
      perform(target, message, sink)
      return flow
    },
    async deliver(message, context) {
      session.delivered.push(message.value)
      session.contexts.push(context)
      const { method } = message.value
      return target.refusals[typeof method === 'string' ? method : 'response']
    },
    async listen(context, sink) {
      session.streams.push({ sink, context })
      if (target.listenFailure) return { kind: 'failed', failure: target.listenFailure }
      return target.listening === 'none' ? { kind: 'none' } : { kind: 'flow', flow }
    },
    state: () => state,
    async close() {
      session.closed += 1
    },
    onDeath(listener) {
      died = listener
    },
  }
}

function perform(target: FakeTarget, message: Message, sink: MessageSink): void {
  const { id = null, method } = message.value
  const behaviour = typeof method === 'string' ? target.behaviours[method] : undefined
  const outcome = behaviour
    ? behaviour(paramsOf(message.value), sink, message)
    : { error: { code: -32601, message: 'Method not found' } }
  if (outcome === undefined) return
  if (isFailure(outcome)) {
    sink.fail(outcome)
    return
  }
  sink.message(
    messageOf(
      'error' in outcome ? { jsonrpc: '2.0', id, ...outcome } : { jsonrpc: '2.0', id, result: outcome },
    ),
  )
  sink.end()
}

const failureKinds: ReadonlySet<unknown> = new Set(['error', 'reply', 'ended', 'unknown', 'refused'])

function isFailure(outcome: object): outcome is TargetFailure {
  return 'kind' in outcome && failureKinds.has(outcome.kind)
}

/** A sink that keeps what comes. */
export type Collected = MessageSink & {
  readonly messages: JsonObject[]
  readonly texts: string[]
  readonly marks: EventMark[]
  ended: boolean
  failure: TargetFailure | undefined
}

export function collect(): Collected {
  const collected: Collected = {
    messages: [],
    texts: [],
    marks: [],
    ended: false,
    failure: undefined,
    message(message, mark) {
      collected.messages.push(message.value)
      collected.texts.push(message.text)
      if (mark) collected.marks.push(mark)
      return true
    },
    mark: (mark) => void collected.marks.push(mark),
    end() {
      collected.ended = true
    },
    fail(failure) {
      collected.failure = failure
    },
  }
  return collected
}

export function fixtureContext(more: Partial<CallContext> = {}): CallContext {
  return { headers: {}, cancellation: createCancellation(), ...more }
}

export function request(id: string | number, method: string, params?: JsonObject): Message {
  return messageOf({ jsonrpc: '2.0', id, method, ...(params === undefined ? undefined : { params }) })
}

/** Lets everything that waits for nothing but promises go on. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** The result of the only response in a collection. */
export function resultIn(collected: Collected): JsonValue | undefined {
  const [only, more] = collected.messages.filter((message) => 'result' in message)
  return more === undefined ? only?.['result'] : undefined
}

/** Places without instruments; by default there is no bound that a test reaches. */
export function fixturePlaces(limits: Partial<McpLimits> = {}): Places {
  return createSessionPlaces({ ...defaultMcpLimits, ...limits }, () => ({ changed() {}, refused() {} }))
}

export type FakeExchange = Exchange & { cancellation: CancellationSource }

/** A request of an MCP client. An object is sent as its JSON. */
export function mcpExchange(
  method: string,
  {
    headers = {},
    body,
    path = '/mcp',
    query = '',
    facts,
  }: {
    headers?: Headers
    body?: JsonObject | string
    path?: string
    query?: string
    facts?: Partial<Facts>
  } = {},
): FakeExchange {
  const all: Headers = {
    accept: method === 'GET' ? 'text/event-stream' : 'application/json, text/event-stream',
    ...(body === undefined ? undefined : { 'content-type': 'application/json' }),
    ...headers,
  }
  const exchange = fixtureExchange({ method, path, query, headers: all }, facts)
  const text = isJsonObject(body) ? JSON.stringify(body) : body
  return {
    ...exchange,
    errorFormat: 'text',
    routeName: 'mcp',
    cancellation: createCancellation(),
    body: text === undefined ? undefined : Buffer.from(text),
  }
}

/** What a client reads from a reply, live: events as they come. */
export type Read = { readonly events: SseEvent[]; text: string; ended: boolean }

export function read(reply: Reply): Read {
  const events: SseEvent[] = []
  const result: Read = { events, text: '', ended: false }
  const parser = createSseParser({ maxEventBytes: 1 << 20, onEvent: (event) => events.push(event) })
  const take = (chunk: Uint8Array) => {
    result.text += Buffer.from(chunk).toString()
    parser.push(chunk)
    return true
  }
  const { body } = reply
  if (isSource(body)) {
    body.start({
      write: take,
      end() {
        result.ended = true
      },
      fail() {
        result.ended = true
      },
    })
  } else {
    if (body) take(body)
    result.ended = true
  }
  return result
}

/** The messages of the events read. */
export function messagesIn({ events }: Read): JsonValue[] {
  return events.map(({ data }) => JSON.parse(data))
}
