import { firstHeader } from '../../../net/http/headers.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import type { Backend } from '../../../pipeline/policy.ts'
import { acceptsEventStream, revisionOf } from '../message/protocol.ts'
import { permitsAnyTarget } from './call-context.ts'
import { refuseMcp } from './error-responses.ts'
import { requireSession } from './find-session.ts'
import { createLegacyEndpoint } from './legacy-endpoint.ts'
import { createPostHandler } from './post-handler.ts'
import type { EndpointOptions } from './request-body.ts'
import { createSessionEndpoint } from './session-endpoint.ts'

/** HTTP endpoint of the streamable HTTP transport (MCP 2025-11-25, Transports). */
export function createEndpoint(options: EndpointOptions): Backend {
  const { federation, sessions, stateless } = options
  const legacy = createLegacyEndpoint(options)
  const inSession = createSessionEndpoint(options)
  const post = createPostHandler(options, inSession)
  let current = false

  return (exchange) => {
    // The first request marks this configuration as active: sessions of removed targets end.
    if (!current) {
      current = true
      sessions.retain(federation)
      options.streams?.retain(federation)
    }
    const { method } = exchange.facts.request
    const path = exchange.forwarding?.path ?? exchange.facts.request.path
    // Clients probe for authorization server metadata, some below the path: 404 reports its absence.
    if (path.includes('/.well-known/')) {
      return refuseMcp(exchange, { status: 404, reason: 'no metadata', message: 'there is no such document' })
    }
    if (!permitsAnyTarget(exchange, federation.members)) {
      const message = 'the API key allows no target of this endpoint'
      return refuseMcp(exchange, { status: 403, reason: 'target', message })
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

  async function listen(exchange: Exchange): Promise<Reply> {
    if (!acceptsEventStream(firstHeader(exchange.facts.request.headers, 'accept'))) {
      const message = 'accept must list text/event-stream'
      return refuseMcp(exchange, { status: 406, reason: 'accept', message })
    }
    const found = await requireSession(options, exchange)
    return found.kind === 'refused' ? found.reply : inSession.openStream(exchange, found.session)
  }

  async function end(exchange: Exchange): Promise<Reply> {
    const found = await requireSession(options, exchange)
    if (found.kind === 'refused') return found.reply
    await sessions.end(found.session, 'the client ended it')
    return { status: 204, headers: {}, body: undefined }
  }
}

function refuseMethod(exchange: Exchange, stateless: boolean): Reply {
  const message = stateless ? 'only POST is served without sessions' : 'only POST, GET and DELETE are served'
  const reply = refuseMcp(exchange, { status: 405, reason: 'method', message })
  reply.headers['allow'] = stateless ? 'POST' : 'GET, POST, DELETE'
  return reply
}
