import { asGatewayError } from '../../../lib/gateway-error.ts'
import { firstHeader } from '../../../net/http/headers.ts'
import { formatSseEvent } from '../../../net/http/sse.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import type { Backend } from '../../../pipeline/policy.ts'
import { readTargetObject } from '../message/json-edit.ts'
import type { ClientMessage } from '../message/json-rpc.ts'
import { startFlow } from '../message/merged-sink.ts'
import type { MessageFlow, MessageSink } from '../message/message.ts'
import { acceptsEventStream, revisionOf } from '../message/protocol.ts'
import type { Admission, Slot } from '../sessions/admission.ts'
import type {
  LegacyRequest,
  LegacyStream,
  OwnLegacyStream,
  Session,
  SessionUse,
} from '../sessions/session.ts'
import type { CallContext } from '../targets/target.ts'
import { callContext, clientOf, credentialLifetimeMs, recordCall } from './call-context.ts'
import {
  accepted,
  failureText,
  refuseMcp,
  refuseUnknownSession,
  replyToFailure,
  replyToUndelivered,
} from './error-responses.ts'
import { findAnySession } from './find-session.ts'
import { type EndpointOptions, handleBody, refuseUnsupportedContent } from './request-body.ts'
import { createResponseStream } from './response-stream.ts'

/**
 * Maximum number of concurrent requests per session: unlike streamable HTTP, they occupy no client
 * connection.
 */
const maxRequests = 1_024

/**
 * HTTP+SSE transport of revision 2024-11-05: a GET opens the single stream of a session, whose first event
 * contains the POST URL. All responses use the stream, and the session ends with it.
 */
export function createLegacyEndpoint(options: EndpointOptions): Backend {
  const { federation, sessions, clock, maxBodyBytes, jsonLimits, workQueue } = options
  return (exchange) => {
    const { method } = exchange.facts.request
    if (method === 'GET') return open(exchange)
    if (method === 'POST') return post(exchange)
    const reply = refuseMcp(exchange, {
      status: 405,
      reason: 'method',
      message: 'only GET and POST are served here',
    })
    reply.headers['allow'] = 'GET, POST'
    return reply
  }

  function open(exchange: Exchange): Reply | Promise<Reply> {
    const { headers } = exchange.facts.request
    if (!acceptsEventStream(firstHeader(headers, 'accept'))) {
      const message = 'accept must list text/event-stream'
      return refuseMcp(exchange, { status: 406, reason: 'accept', message })
    }
    const admitted = sessions.admit(clientOf(exchange))
    const start = (admission: Admission) =>
      admission.kind === 'refused'
        ? replyToFailure(exchange, admission.failure, undefined)
        : openIn(admission.slot, exchange)
    return admitted instanceof Promise ? admitted.then(start) : start(admitted)
  }

  function openIn(slot: Slot, exchange: Exchange): Promise<Reply> {
    const { path } = exchange.facts.request
    const client = clientOf(exchange)
    const target = federation.target.open()
    const session = sessions.beginBound({ target, federation, client, slot, revision: undefined })
    const flows = new Set<MessageFlow>()
    const response = createResponseStream({
      opening: formatSseEvent({ event: 'endpoint', data: `${path}?sessionId=${session.id}` }),
      refuse: (failure) => replyToFailure(exchange, failure, undefined),
      onEnd() {
        clearTimeout(expiry)
        for (const flow of flows) flow.cancel()
        sessions.release(session, use)
        void sessions.end(session, 'its stream ended')
      },
    })
    let full = false
    const stream: MessageSink = {
      ...response.sink,
      message(message, mark) {
        full = !response.sink.message(message, mark)
        return !full
      },
    }
    response.attach({
      resume() {
        full = false
        for (const flow of flows) flow.resume()
      },
      cancel() {},
    })
    const use: SessionUse = { kind: 'stream', end: () => response.sink.end() }
    session.uses.push(use)
    // A stream ends with the expiry of the client's latest token.
    const expireAfter = (lifeMs: number) => setTimeout(() => response.sink.end(), lifeMs).unref()
    let expiry = expireAfter(credentialLifetimeMs(exchange, clock.now()))
    const own: OwnLegacyStream = {
      join: (request, flow) =>
        full || flows.size >= maxRequests ? undefined : joinStream(session, stream, flows, { request, flow }),
      joinMessages: (flow) => joinMessages(session, stream, flows, flow),
    }
    session.legacy = {
      own,
      start: (request, context) => startRequest(session, own, request, context),
      extend(lifeMs) {
        clearTimeout(expiry)
        expiry = expireAfter(lifeMs)
      },
    }
    exchange.cancellation.onCancel(response.abandon)
    response.open()
    return response.reply
  }

  function post(exchange: Exchange): Reply | Promise<Reply> {
    const { query } = exchange.facts.request
    const id = new URLSearchParams(query).get('sessionId')
    if (id === null) {
      const message = 'the sessionId parameter is missing: open the stream with a GET first'
      return refuseMcp(exchange, { status: 422, reason: 'no session', message })
    }
    const refusal = refuseUnsupportedContent(exchange)
    if (refusal !== undefined) return refusal
    const handle = (session: Session | undefined) => {
      if (session?.legacy === undefined) return refuseEnded(exchange, id)
      return handleBody(
        exchange,
        { maxBytes: maxBodyBytes, batches: false, jsonLimits, workQueue },
        (content) =>
          content.kind === 'batch' || session.ended || session.legacy === undefined
            ? refuseEnded(exchange, id)
            : accept(exchange, { session, stream: session.legacy }, content),
      )
    }
    const session = findAnySession(options, exchange, id)
    return session instanceof Promise ? session.then(handle) : handle(session)
  }

  function refuseEnded(exchange: Exchange, id: string): Reply {
    return refuseUnknownSession(exchange, undefined, sessions.endReasonOf(id, clientOf(exchange)))
  }

  async function accept(
    exchange: Exchange,
    { session, stream }: { session: Session; stream: LegacyStream },
    message: ClientMessage,
  ): Promise<Reply> {
    const { headers } = exchange.facts.request
    recordCall(exchange, message, options)
    // The request continues after this exchange, so it is not cancelled with it.
    const context = {
      ...callContext(exchange, revisionOf(headers, message.json.value), options),
      cancellation: never,
    }
    stream.extend(credentialLifetimeMs(exchange, clock.now()))
    if (message.kind === 'request') {
      const started = stream.start(message, context)
      if (started instanceof Promise ? await started : started) return accepted()
      if (session.ended) return refuseEnded(exchange, session.id)
      const reason = 'the answers on the stream are not read'
      return refuseMcp(exchange, { status: 503, reason: 'stream full', message: reason }, message.idText)
    }
    const failure = await session.target.deliver(message.json, context)
    if (failure === undefined) return accepted()
    if (failure.kind === 'ended') void sessions.end(session, failure.reason)
    return replyToUndelivered(exchange, failure)
  }

  function startRequest(
    session: Session,
    own: OwnLegacyStream,
    request: LegacyRequest,
    context: CallContext,
  ): boolean {
    const { json } = request
    let flow: MessageFlow | undefined
    let cancelled = false
    const sink = own.join(request, {
      resume: () => flow?.resume(),
      cancel() {
        cancelled = true
        flow?.cancel()
      },
    })
    if (sink === undefined) return false
    const responses: MessageSink = {
      ...sink,
      message(received) {
        if (json.value['method'] === 'initialize' && received.value['result'] !== undefined)
          listenTo(session, own, context)
        return sink.message(received)
      },
    }
    flow = startFlow(responses, () => session.target.request(json, context, responses))
    if (cancelled) flow.cancel()
    return true
  }

  /** Adds the responses to a request to the stream. */
  function joinStream(
    session: Session,
    stream: MessageSink,
    flows: Set<MessageFlow>,
    { request, flow }: { request: LegacyRequest; flow: MessageFlow },
  ): MessageSink {
    flows.add(flow)
    return {
      message: (message) => stream.message(message),
      mark() {},
      end: () => flows.delete(flow),
      fail(failure) {
        flows.delete(flow)
        stream.message(readTargetObject(failureText(failure, request)))
        if (failure.kind === 'ended') void sessions.end(session, failure.reason)
      },
    }
  }

  function joinMessages(
    session: Session,
    stream: MessageSink,
    flows: Set<MessageFlow>,
    flow: MessageFlow,
  ): MessageSink {
    flows.add(flow)
    return {
      message: (message) => stream.message(message),
      mark() {},
      end: () => flows.delete(flow),
      fail(failure) {
        flows.delete(flow)
        if (failure.kind === 'ended') void sessions.end(session, failure.reason)
      },
    }
  }

  /** Adds messages outside requests to the stream. Targets without such a stream have responses only. */
  function listenTo(session: Session, own: OwnLegacyStream, context: CallContext): void {
    let flow: MessageFlow | undefined
    let cancelled = false
    const sink = own.joinMessages({
      resume: () => flow?.resume(),
      cancel() {
        cancelled = true
        flow?.cancel()
      },
    })
    session.target.listen(context, sink).then(
      (listening) => {
        if (listening.kind !== 'flow') {
          sink.end()
          return
        }
        flow = listening.flow
        if (cancelled || session.ended) flow.cancel()
      },
      (error: unknown) => sink.fail({ kind: 'error', error: asGatewayError(error) }),
    )
  }
}

const never: CallContext['cancellation'] = { cancelled: false, onCancel() {} }
