import { asGatewayError } from '../../../lib/gateway-error.ts'
import { isJsonObject } from '../../../lib/json/json.ts'
import { firstHeader } from '../../../net/http/headers.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import { type ClientMessage, invalidRequest, isResponseTo } from '../message/json-rpc.ts'
import type { Message, TargetFailure } from '../message/message.ts'
import { revisionOf } from '../message/protocol.ts'
import type { Admission, Slot } from '../sessions/admission.ts'
import type { Session, SessionUse } from '../sessions/session.ts'
import type { CallContext, Listening } from '../targets/target.ts'
import { handleBatch } from './batch.ts'
import { callContext, clientOf, credentialLifetimeMs, mcpStateOf, recordResult } from './call-context.ts'
import {
  accepted,
  failureText,
  refuseMcp,
  replyToFailure,
  replyToUndelivered,
  replyWithJsonRpcError,
  sessionEnded,
} from './error-responses.ts'
import type { ClientRequest, EndpointOptions } from './request-body.ts'
import { createResponseStream, type ResponseStream, startResponse } from './response-stream.ts'

/** Endpoint for messages of a session. */
export type SessionEndpoint = {
  /** Starts a session with the `initialize` request. */
  initialize(exchange: Exchange, message: ClientRequest, context: CallContext): Promise<Reply>
  /** Handles one message. */
  message(exchange: Exchange, message: ClientMessage, context: CallContext, session: Session): Promise<Reply>
  /** Handles a JSON-RPC batch (revision 2025-03-26). */
  batch(
    exchange: Exchange,
    messages: readonly ClientMessage[],
    context: CallContext,
    session: Session,
  ): Promise<Reply>
  /** Handles a GET: opens the stream of messages outside requests. */
  openStream(exchange: Exchange, session: Session): Promise<Reply>
}

/** Session part of the streamable HTTP transport. */
export function createSessionEndpoint(options: EndpointOptions): SessionEndpoint {
  const { federation, sessions, clock } = options
  return { initialize, message, batch, openStream: listen }

  function initialize(exchange: Exchange, message: ClientRequest, context: CallContext): Promise<Reply> {
    const admitted = sessions.admit(clientOf(exchange))
    const start = (admission: Admission) =>
      admission.kind === 'refused'
        ? Promise.resolve(replyToFailure(exchange, admission.failure, message))
        : initializeIn(admission.slot, exchange, message, context)
    return admitted instanceof Promise ? admitted.then(start) : start(admitted)
  }

  function initializeIn(
    slot: Slot,
    exchange: Exchange,
    message: ClientRequest,
    context: CallContext,
  ): Promise<Reply> {
    const client = clientOf(exchange)
    const target = federation.target.open()
    let session: Session | undefined
    let isOver = false
    const response = createResponseStream({
      buffered: true,
      completes: (received) => isResponseTo(received, message.id),
      headers: () => (session ? { 'mcp-session-id': session.id } : {}),
      refuse(failure) {
        // A slot becomes free only later, so it serves the next attempt.
        if (isFull(failure)) sessions.endUnused(failure.status === 429 ? 'client' : 'total', client)
        return replyToFailure(exchange, failure, message)
      },
      onEnd() {
        isOver = true
        if (session !== undefined) return
        slot.release()
        void target.close()
      },
    })
    mcpStateOf(exchange).onDelivered = (delivery) => {
      const delivered = delivery.complete && delivery.status === 200
      if (session !== undefined && !delivered) void sessions.end(session, 'its id was not delivered')
    }
    const sink = {
      ...response.sink,
      message(received: Message) {
        const { result } = received.value
        // A target may response twice, or after the client has left: the place is for one session.
        const mayBegin = session === undefined && !isOver
        if (mayBegin && isResponseTo(received, message.id) && result !== undefined) {
          session = sessions.begin({ target, federation, client, slot, revision: revisionIn(received) })
        }
        return response.sink.message(received)
      },
    }
    startResponse(exchange, response, () => target.request(message.json, context, sink))
    return response.reply
  }

  function message(
    exchange: Exchange,
    received: ClientMessage,
    context: CallContext,
    session: Session,
  ): Promise<Reply> {
    if (received.kind !== 'request') return deliver(exchange, received, context, session)
    if (received.method !== 'initialize') return request(exchange, received, context, session)
    return Promise.resolve(replyWithJsonRpcError(exchange, alreadyInitialized, received))
  }

  function request(
    exchange: Exchange,
    message: ClientRequest,
    context: CallContext,
    session: Session,
  ): Promise<Reply> {
    const response = createResponseStream({
      completes: (received) => isResponseTo(received, message.id),
      onResponse: (received) => recordResult(exchange, received),
      refuse: (failure) => replyWithJsonRpcError(exchange, failure, message),
      errorText: (failure) => failureText(failure, message),
      onEnd: (failure) => release(session, use, failure),
    })
    const use: SessionUse = {
      kind: 'request',
      end() {
        response.sink.fail(sessionEnded)
        response.abandon()
      },
    }
    session.uses.push(use)
    startResponse(exchange, response, () => session.target.request(message.json, context, response.sink))
    return response.reply
  }

  async function deliver(
    exchange: Exchange,
    message: ClientMessage,
    context: CallContext,
    session: Session,
  ): Promise<Reply> {
    const failure = await session.target.deliver(message.json, context)
    if (failure === undefined) {
      const isCancellation = message.kind === 'notification' && message.method === 'notifications/cancelled'
      if (isCancellation) sessions.forwardCancellation(session, message.json)
      return accepted()
    }
    if (failure.kind === 'ended') void sessions.end(session, failure.reason)
    return replyToUndelivered(exchange, failure)
  }

  function batch(
    exchange: Exchange,
    messages: readonly ClientMessage[],
    context: CallContext,
    session: Session,
  ): Promise<Reply> {
    return handleBatch(exchange, messages, {
      begin(response) {
        const use: SessionUse = { kind: 'request', end: response.end }
        session.uses.push(use)
        return () => release(session, use, undefined)
      },
      deliver: (message) => deliver(exchange, message, context, session),
      request: (message, sink) =>
        session.target.request(message.json, context, {
          ...sink,
          fail(failure) {
            sink.fail(failure)
            if (failure.kind === 'ended') void sessions.end(session, failure.reason)
          },
        }),
    })
  }

  async function listen(exchange: Exchange, session: Session): Promise<Reply> {
    const { headers } = exchange.facts.request
    const response = createResponseStream({
      refuse: (failure) => replyToFailure(exchange, failure, undefined),
      onEnd(failure) {
        clearTimeout(expiry)
        release(session, use, failure)
      },
    })
    const use: SessionUse = { kind: 'stream', end: () => response.sink.end() }
    session.uses.push(use)
    // A stream ends with its token; the client reopens it with a new one.
    const expiry = setTimeout(() => response.sink.end(), credentialLifetimeMs(exchange, clock.now()))
    expiry.unref()
    const context = callContext(exchange, revisionOf(headers, undefined), options)
    const lastEventId = firstHeader(headers, 'last-event-id')
    const listening = await openStream(
      session,
      response,
      lastEventId === undefined ? context : { ...context, lastEventId },
    )
    if (listening.kind === 'none') {
      response.abandon()
      const message = 'the target offers no stream'
      return { ...refuseMcp(exchange, { status: 405, reason: 'no stream', message }) }
    }
    if (listening.kind === 'failed') response.sink.fail(listening.failure)
    else {
      startResponse(exchange, response, () => listening.flow)
      response.open()
    }
    return response.reply
  }

  function release(session: Session, use: SessionUse, failure: TargetFailure | undefined): void {
    sessions.release(session, use)
    if (failure?.kind === 'ended') void sessions.end(session, failure.reason)
  }
}

async function openStream(
  { target }: Session,
  { sink }: ResponseStream,
  context: CallContext,
): Promise<Listening> {
  try {
    return await target.listen(context, sink)
  } catch (error) {
    return { kind: 'failed', failure: { kind: 'error', error: asGatewayError(error) } }
  }
}

/** Whether a limit of `config.limits` was exceeded, for example of programs. */
function isFull(failure: TargetFailure): failure is Extract<TargetFailure, { kind: 'refused' }> {
  return failure.kind === 'refused' && (failure.status === 429 || failure.status === 503)
}

/** Revision in the response to `initialize`. */
function revisionIn({ value }: Message): string | undefined {
  const { result } = value
  const version = isJsonObject(result) ? result['protocolVersion'] : undefined
  return typeof version === 'string' && version.length <= 40 ? version : undefined
}

const alreadyInitialized: TargetFailure = {
  kind: 'refused',
  status: 400,
  code: invalidRequest,
  message: 'the session is initialized already',
}
