import { asGatewayError } from '../../../lib/gateway-error.ts'
import { isJsonObject } from '../../../lib/json/json.ts'
import { firstHeader } from '../../../net/http/headers.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import { type ClientMessage, invalidRequest, isResponseTo } from '../message/json-rpc.ts'
import type { Message, TargetFailure } from '../message/message.ts'
import { revisionOf } from '../message/protocol.ts'
import type { Session, Use } from '../sessions/sessions.ts'
import type { CallContext, Listening } from '../targets/target.ts'
import { answerBatch } from './batch.ts'
import { callContext, clientOf, tokenLifeMs } from './call-context.ts'
import {
  accepted,
  answerFailure,
  failureText,
  refuseMcp,
  replyToFailure,
  replyToUndelivered,
  sessionEnded,
} from './error-responses.ts'
import type { EndpointOptions, Request } from './request-body.ts'
import { type Answer, createAnswer, feed } from './response-stream.ts'

/** Answers messages of one session. */
export type SessionEndpoint = {
  /** Begins a session with the `initialize` request. */
  initialize(exchange: Exchange, message: Request, context: CallContext): Promise<Reply>
  /** Answers one message. */
  message(exchange: Exchange, message: ClientMessage, context: CallContext, session: Session): Promise<Reply>
  /** Answers a JSON-RPC batch (revision 2025-03-26). */
  batch(
    exchange: Exchange,
    messages: readonly ClientMessage[],
    context: CallContext,
    session: Session,
  ): Promise<Reply>
  /** Answers a GET with the stream of messages outside of requests. */
  listen(exchange: Exchange, session: Session): Promise<Reply>
}

/** The part of the streamable HTTP transport that belongs to sessions. */
export function createSessionEndpoint(options: EndpointOptions): SessionEndpoint {
  const { federation, sessions, clock, rules } = options
  return { initialize, message, batch, listen }

  function initialize(exchange: Exchange, message: Request, context: CallContext): Promise<Reply> {
    const client = clientOf(exchange)
    const admitted = sessions.admit(client)
    if (admitted.kind === 'refused') {
      return Promise.resolve(replyToFailure(exchange, admitted.failure, message))
    }
    const { place } = admitted
    const target = federation.target.open()
    let session: Session | undefined
    let isOver = false
    const answer = createAnswer({
      whole: true,
      completes: (received) => isResponseTo(received, message.id),
      headers: () => (session ? { 'mcp-session-id': session.id } : {}),
      refuse(failure) {
        // A place that becomes free takes its time, so it is for the next attempt.
        if (isFull(failure)) sessions.endUnused(failure.status === 429 ? 'client' : 'total', client)
        return replyToFailure(exchange, failure, message)
      },
      onOver() {
        isOver = true
        if (session !== undefined) return
        place.release()
        void target.close()
      },
    })
    exchange.onDelivered = (delivery) => {
      const delivered = delivery.complete && delivery.status === 200
      if (session !== undefined && !delivered) void sessions.end(session, 'its id was not delivered')
    }
    const sink = {
      ...answer.sink,
      message(received: Message) {
        const { result } = received.value
        // A target may answer twice, or after the client has left: the place is for one session.
        const mayBegin = session === undefined && !isOver
        if (mayBegin && isResponseTo(received, message.id) && result !== undefined) {
          session = sessions.begin({ target, federation, client, place, revision: revisionIn(received) })
        }
        return answer.sink.message(received)
      },
    }
    feed(exchange, answer, () => target.request(message.json, context, sink))
    return answer.reply
  }

  function message(
    exchange: Exchange,
    received: ClientMessage,
    context: CallContext,
    session: Session,
  ): Promise<Reply> {
    if (received.kind !== 'request') return deliver(exchange, received, context, session)
    if (received.method !== 'initialize') return request(exchange, received, context, session)
    return Promise.resolve(answerFailure(exchange, initializedAlready, received))
  }

  function request(
    exchange: Exchange,
    message: Request,
    context: CallContext,
    session: Session,
  ): Promise<Reply> {
    const answer = createAnswer({
      completes: (received) => isResponseTo(received, message.id),
      refuse: (failure) => answerFailure(exchange, failure, message),
      lastWords: (failure) => failureText(failure, message),
      onOver: (failure) => release(session, use, failure),
    })
    const use: Use = {
      kind: 'request',
      end() {
        answer.sink.fail(sessionEnded)
        answer.abandon()
      },
    }
    session.uses.push(use)
    feed(exchange, answer, () => session.target.request(message.json, context, answer.sink))
    return answer.reply
  }

  async function deliver(
    exchange: Exchange,
    message: ClientMessage,
    context: CallContext,
    session: Session,
  ): Promise<Reply> {
    const failure = await session.target.deliver(message.json, context)
    if (failure === undefined) return accepted()
    if (failure.kind === 'ended') void sessions.end(session, failure.reason)
    return replyToUndelivered(exchange, failure)
  }

  function batch(
    exchange: Exchange,
    messages: readonly ClientMessage[],
    context: CallContext,
    session: Session,
  ): Promise<Reply> {
    return answerBatch(exchange, messages, {
      begin(answer) {
        const use: Use = { kind: 'request', end: answer.end }
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
    const answer = createAnswer({
      refuse: (failure) => replyToFailure(exchange, failure, undefined),
      onOver(failure) {
        clearTimeout(expiry)
        release(session, use, failure)
      },
    })
    const use: Use = { kind: 'stream', end: () => answer.sink.end() }
    session.uses.push(use)
    // The client opens the stream again with a new token: a stream must not outlive what it was opened with.
    const expiry = setTimeout(() => answer.sink.end(), tokenLifeMs(exchange, clock.now()))
    expiry.unref()
    const context = callContext(exchange, revisionOf(headers, undefined), rules)
    const lastEventId = firstHeader(headers, 'last-event-id')
    const listening = await openStream(
      session,
      answer,
      lastEventId === undefined ? context : { ...context, lastEventId },
    )
    if (listening.kind === 'none') {
      answer.abandon()
      const message = 'the target offers no stream'
      return { ...refuseMcp(exchange, { status: 405, reason: 'no stream', message }) }
    }
    if (listening.kind === 'failed') answer.sink.fail(listening.failure)
    else {
      feed(exchange, answer, () => listening.flow)
      answer.open()
    }
    return answer.reply
  }

  function release(session: Session, use: Use, failure: TargetFailure | undefined): void {
    sessions.release(session, use)
    if (failure?.kind === 'ended') void sessions.end(session, failure.reason)
  }
}

async function openStream({ target }: Session, { sink }: Answer, context: CallContext): Promise<Listening> {
  try {
    return await target.listen(context, sink)
  } catch (error) {
    return { kind: 'failed', failure: { kind: 'error', error: asGatewayError(error) } }
  }
}

/** Whether a bound of `config.limits` was reached, of programs for example. */
function isFull(failure: TargetFailure): failure is Extract<TargetFailure, { kind: 'refused' }> {
  return failure.kind === 'refused' && (failure.status === 429 || failure.status === 503)
}

/** The revision in the answer to `initialize`. */
function revisionIn({ value }: Message): string | undefined {
  const { result } = value
  const version = isJsonObject(result) ? result['protocolVersion'] : undefined
  return typeof version === 'string' && version.length <= 40 ? version : undefined
}

const initializedAlready: TargetFailure = {
  kind: 'refused',
  status: 400,
  code: invalidRequest,
  message: 'the session is initialized already',
}
