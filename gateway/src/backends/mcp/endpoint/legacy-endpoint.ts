import { asGatewayError } from '../../../lib/gateway-error.ts'
import { firstHeader } from '../../../net/http/headers.ts'
import { formatSseEvent } from '../../../net/http/sse.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import type { Backend } from '../../../pipeline/policy.ts'
import { readTargetObject } from '../message/json-edit.ts'
import type { ClientMessage } from '../message/json-rpc.ts'
import type { Message, MessageFlow, MessageSink } from '../message/message.ts'
import { acceptsEventStream, revisionOf } from '../message/protocol.ts'
import type { LegacyStream, Session, SessionUse } from '../sessions/sessions.ts'
import type { CallContext } from '../targets/target.ts'
import { callContext, clientOf, recordCall, tokenLifetimeMs } from './call-context.ts'
import {
  accepted,
  failureText,
  refuseMcp,
  refuseUnknownSession,
  replyToFailure,
  replyToUndelivered,
} from './error-responses.ts'
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
  const { federation, sessions, clock, rules, maxBodyBytes, jsonLimits, workQueue } = options
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
    const { headers, path } = exchange.facts.request
    if (!acceptsEventStream(firstHeader(headers, 'accept'))) {
      const message = 'accept must list text/event-stream'
      return refuseMcp(exchange, { status: 406, reason: 'accept', message })
    }
    const client = clientOf(exchange)
    const admitted = sessions.admit(client)
    if (admitted.kind === 'refused') return replyToFailure(exchange, admitted.failure, undefined)
    const target = federation.target.open()
    const session = sessions.beginLocal({
      target,
      federation,
      client,
      slot: admitted.slot,
      revision: undefined,
    })
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
    let expiry = expireAfter(tokenLifetimeMs(exchange, clock.now()))
    session.legacy = {
      start(message, context) {
        if (full || flows.size >= maxRequests) return false
        start(session, stream, flows, { message, context })
        return true
      },
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
    const session = sessions.find(id, federation, clientOf(exchange))
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

  function refuseEnded(exchange: Exchange, id: string): Reply {
    return refuseUnknownSession(exchange, undefined, sessions.endReasonOf(id, clientOf(exchange)))
  }

  async function accept(
    exchange: Exchange,
    { session, stream }: { session: Session; stream: LegacyStream },
    message: ClientMessage,
  ): Promise<Reply> {
    const { headers } = exchange.facts.request
    recordCall(exchange, message, federation)
    // The request continues after this exchange, so it is not cancelled with it.
    const context = {
      ...callContext(exchange, revisionOf(headers, message.json.value), rules),
      cancellation: never,
    }
    stream.extend(tokenLifetimeMs(exchange, clock.now()))
    if (message.kind === 'request') {
      if (stream.start(message.json, context)) return accepted()
      const reason = 'the answers on the stream are not read'
      return refuseMcp(exchange, { status: 503, reason: 'stream full', message: reason }, message.idText)
    }
    const failure = await session.target.deliver(message.json, context)
    if (failure === undefined) return accepted()
    if (failure.kind === 'ended') void sessions.end(session, failure.reason)
    return replyToUndelivered(exchange, failure)
  }

  function start(
    session: Session,
    stream: MessageSink,
    flows: Set<MessageFlow>,
    { message, context }: { message: Message; context: CallContext },
  ): void {
    let flow: MessageFlow | undefined
    let over = false
    const done = () => {
      over = true
      if (flow) flows.delete(flow)
    }
    flow = session.target.request(message, context, {
      message(received) {
        if (message.value['method'] === 'initialize' && received.value['result'] !== undefined) {
          listen(session, stream, flows, context)
        }
        return stream.message(received)
      },
      mark() {},
      end: done,
      fail(failure) {
        done()
        const text = failureText(failure, {
          idText: JSON.stringify(message.value['id'] ?? null),
          json: message,
        })
        stream.message(readTargetObject(text))
        if (failure.kind === 'ended') void sessions.end(session, failure.reason)
      },
    })
    if (!over) flows.add(flow)
  }

  /** Adds messages outside requests to the stream. Targets without such a stream have responses only. */
  function listen(
    session: Session,
    stream: MessageSink,
    flows: Set<MessageFlow>,
    context: CallContext,
  ): void {
    const sink: MessageSink = {
      message: (message) => stream.message(message),
      mark() {},
      end() {},
      fail(failure) {
        if (failure.kind === 'ended') void sessions.end(session, failure.reason)
      },
    }
    session.target.listen(context, sink).then(
      (listening) => {
        if (listening.kind !== 'flow') return
        if (session.ended) listening.flow.cancel()
        else flows.add(listening.flow)
      },
      (error: unknown) => sink.fail({ kind: 'error', error: asGatewayError(error) }),
    )
  }
}

const never: CallContext['cancellation'] = { cancelled: false, onCancel() {} }
