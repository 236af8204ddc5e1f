import { createCancellation } from '../../../../lib/cancellation.ts'
import { isJsonObject } from '../../../../lib/json/json.ts'
import { isSource } from '../../../../net/http/body.ts'
import { firstHeader, type Headers } from '../../../../net/http/headers.ts'
import { isEventStream } from '../../../../net/http/sse.ts'
import type { OutgoingRequest, Reply, Send } from '../../../../net/http-client/send.ts'
import type { Message, MessageSink, TargetFailure } from '../../message/message.ts'
import { listenMethod } from '../../message/subscriptions.ts'
import type { TargetAddress } from '../address.ts'
import { discard, readErrorReply } from '../http-replies.ts'
import type { CallContext, Listening, TargetSession } from '../target.ts'
import { type Call, createCall, invalidResponse, targetFailure } from './call.ts'
import { type OnMessage, readEvents, readResponse } from './read-response.ts'

/** Session id and protocol version of the upstream session, after `initialize`. */
export type SessionState = { session?: string; version?: string }

type Endpoint = {
  readonly name: string
  readonly address: TargetAddress
  readonly send: Send
  /** For requests without side effects. */
  readonly sendAgain: Send
}

/** Requests without side effects. A second `initialize` only leaves a session that the server expires. */
const repeatable: ReadonlySet<string> = new Set([
  ...['initialize', 'ping', 'completion/complete', 'tools/list', 'prompts/list', 'prompts/get'],
  ...['resources/list', 'resources/templates/list', 'resources/read'],
])

const maxErrorBytes = 1024 * 1024
const closeTimeoutMs = 5_000
const deliverTimeoutMs = 60_000
/** Idle limit of a call: tools may run long, or wait for a person. TCP detects lost connections. */
const callIdleMs = 60 * 60_000
/** Idle limit of a stream of messages outside requests, also of a subscription. */
const listenIdleMs = 24 * 60 * 60_000
/** RFC 9110 section 5.5. With several targets, the client's header contains arbitrary encoded event ids. */
const headerText = /^[\t\x20-\x7e\x80-\xff]*$/

/** Creates a session at an upstream server. `state` is updated by `initialize`. */
export function createStreamableHttpSession(endpoint: Endpoint, state: SessionState): TargetSession {
  const { name, address, send, sendAgain } = endpoint
  let closed = false
  return {
    request(message, context, sink) {
      const cancellation = createCancellation()
      context.cancellation.onCancel(cancellation.cancel)
      const call = createCall(name, sink, { maxBytes: context.maxResponseBytes, cancellation })
      const method = message.value['method']
      const isInitialize = method === 'initialize'
      const transmit = typeof method === 'string' && repeatable.has(method) ? sendAgain : send
      const onMessage = isInitialize ? (reply: Message) => storeVersion(state, message, reply) : undefined
      transmit(callRequest(address, state, message, context, cancellation)).then((reply) => {
        if (isInitialize) storeSession(state, reply)
        // The session was closed before its id was known, so only this call can end it.
        if (isInitialize && closed) void endUpstream(endpoint, state)
        deliverReply(name, state, reply, call, onMessage)
      }, call.failWith)
      return call
    },
    async deliver(message, context) {
      let reply: Reply
      try {
        const request = callRequest(address, state, message, context, context.cancellation)
        reply = await send({ ...request, firstByteTimeoutMs: deliverTimeoutMs })
      } catch (error) {
        return targetFailure(name, error)
      }
      if (reply.status < 200 || reply.status >= 300) return errorOf(name, state, reply)
      discard(reply)
      return undefined
    },
    async listen(context, sink) {
      let reply: Reply
      try {
        reply = await send(listenRequest(address, state, context))
      } catch (error) {
        return { kind: 'failed', failure: targetFailure(name, error) }
      }
      return openStream(name, state, reply, sink)
    },
    state: () => ({
      ...(state.session === undefined ? undefined : { s: state.session }),
      ...(state.version === undefined ? undefined : { v: state.version }),
      a: address.origin + address.path,
    }),
    async close() {
      if (closed) return
      closed = true
      await endUpstream(endpoint, state)
    },
    onTerminated() {},
  }
}

function callRequest(
  { origin, path }: TargetAddress,
  state: SessionState,
  message: Message,
  context: CallContext,
  cancellation: CallContext['cancellation'],
): OutgoingRequest {
  const headers = headersFor(state, context)
  headers['accept'] = 'application/json, text/event-stream'
  headers['content-type'] = 'application/json'
  const body = message.text
  const idleTimeoutMs = message.value['method'] === listenMethod ? listenIdleMs : callIdleMs
  return { origin, path, method: 'POST', headers, body, cancellation, idleTimeoutMs }
}

function listenRequest(
  { origin, path }: TargetAddress,
  state: SessionState,
  context: CallContext,
): OutgoingRequest {
  const { cancellation, lastEventId } = context
  const headers = headersFor(state, context)
  headers['accept'] = 'text/event-stream'
  if (lastEventId !== undefined && headerText.test(lastEventId)) headers['last-event-id'] = lastEventId
  const idleTimeoutMs = listenIdleMs
  return { origin, path, method: 'GET', headers, body: undefined, cancellation, idleTimeoutMs }
}

function headersFor(state: SessionState, context: CallContext): Headers {
  const headers = { ...context.headers, 'accept-encoding': 'identity' }
  if (state.session !== undefined) Object.assign(headers, { 'mcp-session-id': state.session })
  const version = state.version ?? context.protocolVersion
  if (version !== undefined) Object.assign(headers, { 'mcp-protocol-version': version })
  return headers
}

function storeSession(state: SessionState, reply: Reply): void {
  const id = firstHeader(reply.headers, 'mcp-session-id')
  if (id !== undefined && /^[\x21-\x7e]+$/.test(id)) state.session = id
}

function storeVersion(state: SessionState, request: Message, { value }: Message): void {
  const { result } = value
  if (value['id'] !== request.value['id'] || !isJsonObject(result)) return
  const version = result['protocolVersion']
  if (typeof version === 'string' && /^[\x21-\x7e]{1,40}$/.test(version)) state.version = version
}

/** Ends the upstream session. Errors are ignored: the server expires the session otherwise. */
async function endUpstream({ address, send }: Endpoint, state: SessionState): Promise<void> {
  if (state.session === undefined) return
  const headers: Headers = {
    'mcp-session-id': state.session,
    accept: 'application/json, text/event-stream',
  }
  if (state.version !== undefined) headers['mcp-protocol-version'] = state.version
  const { origin, path } = address
  try {
    const request: OutgoingRequest = { origin, path, method: 'DELETE', headers, body: undefined }
    discard(await send({ ...request, firstByteTimeoutMs: closeTimeoutMs }))
  } catch {
    // The session expires at the server.
  }
}

function deliverReply(
  name: string,
  state: SessionState,
  reply: Reply,
  call: Call,
  onMessage: OnMessage,
): void {
  const { status } = reply
  if (call.over) {
    discard(reply)
  } else if (status === 202 || status === 204) {
    discard(reply)
    call.end()
  } else if (status === 200) readResponse(name, reply, call, onMessage)
  else errorOf(name, state, reply).then(call.fail)
}

async function openStream(
  name: string,
  state: SessionState,
  reply: Reply,
  sink: MessageSink,
): Promise<Listening> {
  if (reply.status === 405) {
    discard(reply)
    return { kind: 'none' }
  }
  if (reply.status !== 200 || !isSource(reply.body)) {
    return { kind: 'failed', failure: await errorOf(name, state, reply) }
  }
  if (!isEventStream(reply.headers)) {
    discard(reply)
    return { kind: 'failed', failure: invalidResponse(name, 'a body that is no event stream to a GET') }
  }
  const call = createCall(name, sink)
  readEvents(name, reply.body, call, undefined)
  return { kind: 'flow', flow: call }
}

/** Failure of an unsuccessful reply. 404 in a session means the end of that session. */
async function errorOf(name: string, { session }: SessionState, reply: Reply): Promise<TargetFailure> {
  const { status } = reply
  if (status === 404 && session !== undefined) {
    discard(reply)
    return { kind: 'ended', reason: `target "${name}" has ended the session` }
  }
  if (status < 400) {
    discard(reply)
    const isRedirect = status >= 300
    return invalidResponse(
      name,
      isRedirect
        ? 'a redirect, which is not followed: configure the address it leads to'
        : `status ${status}`,
    )
  }
  try {
    return { kind: 'reply', reply: await readErrorReply(reply, maxErrorBytes) }
  } catch (error) {
    return targetFailure(name, error)
  }
}
