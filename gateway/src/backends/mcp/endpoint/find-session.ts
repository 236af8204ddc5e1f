import { firstHeader } from '../../../net/http/headers.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import { revisionOf, revisions } from '../message/protocol.ts'
import type { Session } from '../sessions/session.ts'
import { clientOf } from './call-context.ts'
import { refuseMcp, refuseRevision, refuseUnknownSession } from './error-responses.ts'
import type { EndpointOptions } from './request-body.ts'

export type FoundSession =
  | { readonly kind: 'session'; readonly session: Session }
  | { readonly kind: 'refused'; readonly reply: Reply }

/** Finds a session by id; asynchronously if it may be on another data plane. */
export function findAnySession(
  { sessions, federation }: EndpointOptions,
  exchange: Exchange,
  id: string,
): Session | undefined | Promise<Session | undefined> {
  const client = clientOf(exchange)
  return sessions.find(id, federation, client) ?? sessions.attach(id, federation, client)
}

/** Finds a session of this transport by id; sessions of HTTP+SSE have separate paths. */
export function findSession(
  options: EndpointOptions,
  exchange: Exchange,
  id: string,
): Session | undefined | Promise<Session | undefined> {
  const session = findAnySession(options, exchange, id)
  return session instanceof Promise ? session.then(withoutLegacy) : withoutLegacy(session)
}

function withoutLegacy(session: Session | undefined): Session | undefined {
  return session?.legacy === undefined ? session : undefined
}

/** Finds the session of a GET or DELETE. */
export async function requireSession(options: EndpointOptions, exchange: Exchange): Promise<FoundSession> {
  const { headers } = exchange.facts.request
  const revision = revisionOf(headers, undefined)
  if (revision.kind === 'unknown') {
    const data = { requested: revision.version, supported: revisions }
    return { kind: 'refused', reply: refuseRevision(exchange, data, undefined) }
  }
  const id = firstHeader(headers, 'mcp-session-id')
  if (id === undefined) {
    const message = 'the mcp-session-id header is missing'
    return { kind: 'refused', reply: refuseMcp(exchange, { status: 400, reason: 'no session', message }) }
  }
  const session = await findSession(options, exchange, id)
  return session === undefined
    ? { kind: 'refused', reply: refuseEnded(options, exchange, id, undefined) }
    : { kind: 'session', session }
}

/** Reply for the id of an unknown or ended session. */
export function refuseEnded(
  { sessions }: EndpointOptions,
  exchange: Exchange,
  id: string,
  idText: string | undefined,
): Reply {
  return refuseUnknownSession(exchange, idText, sessions.endReasonOf(id, clientOf(exchange)))
}
