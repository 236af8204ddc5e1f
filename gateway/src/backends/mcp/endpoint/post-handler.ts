import { firstHeader } from '../../../net/http/headers.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import type { Backend } from '../../../pipeline/policy.ts'
import { type ClientBatch, type ClientMessage, invalidRequest } from '../message/json-rpc.ts'
import {
  acceptsPost,
  revisionOf,
  revisions,
  sessionlessRevisions,
  versionInMeta,
} from '../message/protocol.ts'
import type { Session } from '../sessions/session.ts'
import { callContext, recordBatch, recordCall } from './call-context.ts'
import { refuseMcp, refuseRevision, refuseWithoutSession } from './error-responses.ts'
import { findSession, refuseEnded } from './find-session.ts'
import { type EndpointOptions, handleBody, idTextOf, refuseUnsupportedContent } from './request-body.ts'
import type { SessionEndpoint } from './session-endpoint.ts'
import { createSessionlessEndpoint } from './sessionless-endpoint.ts'

/** Maximum body size in bytes without a session (`initialize`). */
const maxOpeningBytes = 64 * 1024

/** The only revision with JSON-RPC batches. */
const batchRevision = '2025-03-26'

/** Creates the handler of POST requests. Headers, session and owner are checked before the body is read. */
export function createPostHandler(options: EndpointOptions, inSession: SessionEndpoint): Backend {
  const { federation, stateless, maxBodyBytes, jsonLimits, workQueue } = options
  const withoutSession = createSessionlessEndpoint(options)

  return (exchange) => {
    const { headers } = exchange.facts.request
    if (!acceptsPost(firstHeader(headers, 'accept'))) {
      const message = 'accept must list application/json and text/event-stream'
      return refuseMcp(exchange, { status: 406, reason: 'accept', message })
    }
    const refusal = refuseUnsupportedContent(exchange)
    if (refusal !== undefined) return refusal
    const id = firstHeader(headers, 'mcp-session-id')
    const sessionless = federation.target.sessionless && revisionOf(headers, undefined).kind === 'sessionless'
    if (stateless || sessionless) {
      return handleBody(
        exchange,
        { maxBytes: maxBodyBytes, batches: false, jsonLimits, workQueue },
        handlerOf(exchange, undefined),
      )
    }
    if (id === undefined) {
      const maxBytes = Math.min(maxBodyBytes, maxOpeningBytes)
      return handleBody(
        exchange,
        { maxBytes, batches: false, jsonLimits, workQueue },
        handlerOf(exchange, undefined),
      )
    }
    const session = findSession(options, exchange, id)
    return session instanceof Promise
      ? session.then((found) => handleInSession(exchange, id, found))
      : handleInSession(exchange, id, session)
  }

  function handleInSession(
    exchange: Exchange,
    id: string,
    session: Session | undefined,
  ): Reply | Promise<Reply> {
    if (session === undefined) return refuseEnded(options, exchange, id, 'null')
    const batches = session.revision === batchRevision
    return handleBody(
      exchange,
      { maxBytes: maxBodyBytes, batches, jsonLimits, workQueue },
      handlerOf(exchange, session),
    )
  }

  function handlerOf(exchange: Exchange, session: Session | undefined) {
    return (content: ClientMessage | ClientBatch) =>
      content.kind === 'batch'
        ? routeBatch(exchange, content.messages, session)
        : route(exchange, content, session)
  }

  function route(
    exchange: Exchange,
    message: ClientMessage,
    session: Session | undefined,
  ): Reply | Promise<Reply> {
    const revision = revisionOf(exchange.facts.request.headers, message.json.value)
    if (revision.kind === 'unknown' || (revision.kind === 'sessionless' && !federation.target.sessionless)) {
      // A client with the revision in the message supports only sessionless revisions.
      const alone = federation.target.sessionless && versionInMeta(message.json.value) !== undefined
      const supported = alone ? sessionlessRevisions : revisions
      return refuseRevision(exchange, { requested: revision.version, supported }, idTextOf(message))
    }
    recordCall(exchange, message, options)
    const context = callContext(exchange, revision, options)
    if (revision.kind === 'sessionless') return withoutSession.forward(exchange, message, context)
    if (stateless) return withoutSession.handleStateless(exchange, message, context)
    if (session !== undefined) {
      return session.ended
        ? refuseEnded(options, exchange, session.id, idTextOf(message))
        : inSession.message(exchange, message, context, session)
    }
    if (message.kind === 'request' && message.method === 'initialize')
      return inSession.initialize(exchange, message, context)
    return refuseWithoutSession(exchange, idTextOf(message))
  }

  function routeBatch(
    exchange: Exchange,
    messages: readonly ClientMessage[],
    session: Session | undefined,
  ): Reply | Promise<Reply> {
    const { headers } = exchange.facts.request
    if (session === undefined) return refuseWithoutSession(exchange, 'null')
    if (session.ended) return refuseEnded(options, exchange, session.id, 'null')
    const revision = revisionOf(headers, undefined)
    if (revision.kind === 'unknown') {
      return refuseRevision(exchange, { requested: revision.version, supported: revisions }, undefined)
    }
    if (messages.some(({ json }) => versionInMeta(json.value) !== undefined)) {
      const message = 'a message of a revision without sessions must not be part of a batch'
      return refuseMcp(exchange, { status: 400, reason: 'batch', code: invalidRequest, message }, 'null')
    }
    recordBatch(exchange, messages)
    return inSession.batch(exchange, messages, callContext(exchange, revision, options), session)
  }
}
