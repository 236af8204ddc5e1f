import { firstHeader } from '../../../net/http/headers.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import type { Backend } from '../../../pipeline/policy.ts'
import {
  badRequest,
  type ClientBatch,
  type ClientMessage,
  invalidRequest,
  unsupportedVersion,
} from '../message/json-rpc.ts'
import {
  acceptsEventStream,
  acceptsPost,
  revisionOf,
  revisions,
  sessionlessRevisions,
  versionInMeta,
} from '../message/protocol.ts'
import type { Session } from '../sessions/sessions.ts'
import { callContext, clientOf, recordBatch, recordCall } from './call-context.ts'
import { refuseMcp, refuseUnknownSession } from './error-responses.ts'
import { createLegacyEndpoint } from './legacy-endpoint.ts'
import { type EndpointOptions, handleBody, idTextOf, refuseUnsupportedContent } from './request-body.ts'
import { createSessionEndpoint } from './session-endpoint.ts'
import { createSessionlessEndpoint } from './sessionless-endpoint.ts'

/** Maximum body size in bytes without a session (`initialize`). */
const maxOpeningBytes = 64 * 1024

/** The only revision with JSON-RPC batches. */
const batchRevision = '2025-03-26'

/** HTTP endpoint of the streamable HTTP transport (MCP 2025-11-25, Transports). */
export function createEndpoint(options: EndpointOptions): Backend {
  const { federation, sessions, stateless, rules, maxBodyBytes, jsonLimits, workQueue } = options
  const legacy = createLegacyEndpoint(options)
  const inSession = createSessionEndpoint(options)
  const withoutSession = createSessionlessEndpoint(options)
  let current = false

  return (exchange) => {
    // The first request marks this configuration as active: sessions of removed targets end.
    if (!current) {
      current = true
      sessions.retain(federation)
    }
    const { method } = exchange.facts.request
    const path = exchange.forwarding?.path ?? exchange.facts.request.path
    // Clients probe for authorization server metadata, some below the path: 404 reports its absence.
    if (path.includes('/.well-known/')) {
      return refuseMcp(exchange, { status: 404, reason: 'no metadata', message: 'there is no such document' })
    }
    if (path.endsWith('/sse')) return legacy(exchange)
    if (method === 'POST') return post(exchange)
    if (stateless || (method !== 'GET' && method !== 'DELETE')) return refuseMethod(exchange, stateless)
    if (revisionOf(exchange.facts.request.headers, undefined).kind === 'sessionless') {
      const message = 'this revision has no sessions: send a POST'
      return refuseMcp(exchange, { status: 400, reason: 'no sessions', message })
    }
    return method === 'GET' ? listen(exchange) : end(exchange)
  }

  /** Handles a POST. Headers, session and owner are checked before the body is read. */
  function post(exchange: Exchange): Reply | Promise<Reply> {
    const { headers } = exchange.facts.request
    if (!acceptsPost(firstHeader(headers, 'accept'))) {
      const message = 'accept must list application/json and text/event-stream'
      return refuseMcp(exchange, { status: 406, reason: 'accept', message })
    }
    const refusal = refuseUnsupportedContent(exchange)
    if (refusal !== undefined) return refusal
    const id = firstHeader(headers, 'mcp-session-id')
    const answer = (session: Session | undefined) => (content: ClientMessage | ClientBatch) =>
      content.kind === 'batch'
        ? routeBatch(exchange, content.messages, session)
        : route(exchange, content, session)
    const sessionless = federation.target.sessionless && revisionOf(headers, undefined).kind === 'sessionless'
    if (stateless || sessionless) {
      return handleBody(
        exchange,
        { maxBytes: maxBodyBytes, batches: false, jsonLimits, workQueue },
        answer(undefined),
      )
    }
    if (id === undefined) {
      const maxBytes = Math.min(maxBodyBytes, maxOpeningBytes)
      return handleBody(exchange, { maxBytes, batches: false, jsonLimits, workQueue }, answer(undefined))
    }
    const session = findSession(exchange, id)
    if (session === undefined) return refuseEnded(exchange, id, 'null')
    const batches = session.revision === batchRevision
    return handleBody(exchange, { maxBytes: maxBodyBytes, batches, jsonLimits, workQueue }, answer(session))
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
      return refuseRevision(exchange, { requested: revision.version, supported }, message)
    }
    recordCall(exchange, message, federation)
    const context = callContext(exchange, revision, rules)
    if (revision.kind === 'sessionless') return withoutSession.forward(exchange, message, context)
    if (stateless) return withoutSession.handleStateless(exchange, message, context)
    if (session !== undefined) {
      return session.ended
        ? refuseEnded(exchange, session.id, idTextOf(message))
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
    if (session.ended) return refuseEnded(exchange, session.id, 'null')
    const revision = revisionOf(headers, undefined)
    if (revision.kind === 'unknown') {
      return refuseRevision(exchange, { requested: revision.version, supported: revisions }, undefined)
    }
    if (messages.some(({ json }) => versionInMeta(json.value) !== undefined)) {
      const message = 'a message of a revision without sessions must not be part of a batch'
      return refuseMcp(exchange, { status: 400, reason: 'batch', code: invalidRequest, message }, 'null')
    }
    recordBatch(exchange, messages)
    return inSession.batch(exchange, messages, callContext(exchange, revision, rules), session)
  }

  function listen(exchange: Exchange): Reply | Promise<Reply> {
    if (!acceptsEventStream(firstHeader(exchange.facts.request.headers, 'accept'))) {
      const message = 'accept must list text/event-stream'
      return refuseMcp(exchange, { status: 406, reason: 'accept', message })
    }
    const session = sessionOf(exchange)
    return 'status' in session ? session : inSession.openStream(exchange, session)
  }

  async function end(exchange: Exchange): Promise<Reply> {
    const session = sessionOf(exchange)
    if ('status' in session) return session
    await sessions.end(session, 'the client ended it')
    return { status: 204, headers: {}, body: undefined }
  }

  /** Session of a GET or DELETE, or the refusal. */
  function sessionOf(exchange: Exchange): Session | Reply {
    const { headers } = exchange.facts.request
    const revision = revisionOf(headers, undefined)
    if (revision.kind === 'unknown') {
      return refuseRevision(exchange, { requested: revision.version, supported: revisions }, undefined)
    }
    const id = firstHeader(headers, 'mcp-session-id')
    if (id === undefined) {
      const message = 'the mcp-session-id header is missing'
      return refuseMcp(exchange, { status: 400, reason: 'no session', message })
    }
    return findSession(exchange, id) ?? refuseEnded(exchange, id, undefined)
  }

  /** Finds a session of this transport; sessions of HTTP+SSE have separate paths. */
  function findSession(exchange: Exchange, id: string): Session | undefined {
    const session = sessions.find(id, federation, clientOf(exchange))
    return session?.legacy === undefined ? session : undefined
  }

  function refuseEnded(exchange: Exchange, id: string, idText: string | undefined): Reply {
    return refuseUnknownSession(exchange, idText, sessions.endReasonOf(id, clientOf(exchange)))
  }
}

function refuseWithoutSession(exchange: Exchange, idText: string | undefined): Reply {
  const message = 'the mcp-session-id header is missing'
  return refuseMcp(exchange, { status: 400, reason: 'no session', code: badRequest, message }, idText)
}

type RevisionRefusal = { requested: string | undefined; supported: readonly string[] }

function refuseRevision(
  exchange: Exchange,
  data: RevisionRefusal,
  message: ClientMessage | undefined,
): Reply {
  return refuseMcp(
    exchange,
    {
      status: 400,
      reason: 'protocol version',
      message: `unsupported protocol version, supported are ${data.supported.join(', ')}`,
      code: unsupportedVersion,
      data,
    },
    message && idTextOf(message),
  )
}

function refuseMethod(exchange: Exchange, stateless: boolean): Reply {
  const message = stateless ? 'only POST is served without sessions' : 'only POST, GET and DELETE are served'
  const reply = refuseMcp(exchange, { status: 405, reason: 'method', message })
  reply.headers['allow'] = stateless ? 'POST' : 'GET, POST, DELETE'
  return reply
}
