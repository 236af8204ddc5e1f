import { GatewayError } from '../../lib/gateway-error.ts'
import { isSource } from '../../net/http/body.ts'
import { createHeaderFilter, type Headers } from '../../net/http/headers.ts'
import type { OutgoingRequest, Reply, Send } from '../../net/http-client/send.ts'
import { type Exchange, sentPath } from '../../pipeline/exchange.ts'
import { hasClientLength } from '../../pipeline/request-edits.ts'
import { sendTraced } from '../../pipeline/tracing/trace.ts'
import { callerOf } from '../../upstream/credentials/caller.ts'
import { sendAuthorized } from '../../upstream/credentials/credentials.ts'
import type { Destination } from '../../upstream/destination.ts'
import { writeForwarded } from '../../upstream/forwarded.ts'
import { isWithheldHeader } from '../../upstream/withheld-headers.ts'
import { declaredLength, type ObservedBody, observeBody } from './buffered-body.ts'
import { hideInError } from './error-body.ts'

/** Parameters of one attempt that the exchange does not determine. */
export type Attempt = {
  body: OutgoingRequest['body']
  /** Limit on the wait for the response head, in addition to the destination's own. */
  timeoutMs: number | undefined
  /** Number of previous attempts. */
  retries: number
}

/**
 * Drops headers that are generated for the upstream connection or by `writeForwarded`, and `expect`, handled
 * here.
 */
const towardsUpstream = createHeaderFilter(
  (name) => name === 'host' || name === 'content-length' || name === 'expect' || isWithheldHeader(name),
)

const towardsClient = createHeaderFilter(() => false)

/** Forwards the request to a destination, with the changes of policies. */
export function forward(
  exchange: Exchange,
  destination: Destination,
  { body, timeoutMs, retries }: Attempt,
  send: Send,
): Promise<Reply> {
  const { authorize, health } = destination
  const upload = health && typeof body === 'object' && isSource(body) ? observeBody(body) : undefined
  const request = requestTo(destination, exchange, upload?.body ?? body)
  if (timeoutMs !== undefined) request.firstByteTimeoutMs = timeoutMs
  if (retries > 0) request.headers['x-retry-attempt'] = String(retries)
  const { trace } = exchange
  const start = () => (trace === undefined ? send(request) : sendTraced(trace, request, send))
  const sent = sendAuthorized(authorize, { request, caller: callerOf(exchange) }, start)
  const answer = (reply: Reply) => hideInError(replyToClient(reply, destination), request, authorize)
  if (!health) return sent.then(answer)
  return sent.then(
    (reply) => {
      health.responded(reply, exchange.facts)
      return answer(reply)
    },
    (error: unknown) => {
      if (isDestinationFailure(error, upload)) health.failed()
      throw error
    },
  )
}

/**
 * Whether an error counts against the destination: not if the client disconnected, was slow or sent invalid
 * data.
 */
function isDestinationFailure(error: unknown, upload: ObservedBody | undefined): boolean {
  if (!(error instanceof GatewayError) || !error.code.startsWith('upstream_')) return false
  return error.code !== 'upstream_timeout' || upload?.waitsForClient() !== true
}

/** Builds the request to the destination, without the credential of the destination. */
export function requestTo(
  destination: Destination,
  exchange: Exchange,
  body: OutgoingRequest['body'],
): OutgoingRequest {
  const { facts, forwarding } = exchange
  const { request: received } = facts
  const { upgrade } = exchange
  const request: OutgoingRequest = {
    origin: destination.origin,
    path: pathOf(exchange),
    method: forwarding?.method ?? received.method,
    headers: headersFor(destination, exchange, body),
    body,
    cancellation: exchange.cancellation,
    connection: destination.connection,
    onInformational: exchange.informational,
    acceptsWhole: true,
  }
  if (upgrade !== undefined) request.upgrade = upgrade
  if (forwarding?.host !== undefined) {
    request.headers['host'] = forwarding.host === 'client' ? received.host : forwarding.host
  }
  return request
}

function pathOf({ facts: { request }, forwarding }: Exchange): string {
  if (forwarding?.path !== undefined) return forwarding.path + (forwarding.query ?? request.query)
  return sentPath(request) + request.query
}

function headersFor(
  { editRequestHeaders }: Destination,
  exchange: Exchange,
  body: OutgoingRequest['body'],
): Headers {
  const client = exchange.facts.request.headers
  const headers = towardsUpstream(client)
  // RFC 9110 section 10.1.4: the only member that is not specific to this connection.
  if (client['te'] !== undefined && acceptsTrailers(client['te'])) headers['te'] = 'trailers'
  const allowed = exchange.route?.target.allowedClientHeaders
  if (allowed) restore(headers, client, allowed)
  writeForwarded(headers, exchange)
  if (exchange.forwarding) for (const edit of exchange.forwarding.headerEdits) edit(headers)
  editRequestHeaders?.(headers)
  if (typeof body === 'object' && !(body instanceof Uint8Array)) {
    const length = hasClientLength(exchange.forwarding) ? declaredLength(client) : undefined
    if (length !== undefined) headers['content-length'] = String(length)
  }
  return headers
}

/** Adds withheld headers that the route allows. */
function restore(headers: Headers, client: Headers, names: readonly string[]): void {
  for (const name of names) {
    const value = client[name]
    if (value !== undefined && isWithheldHeader(name)) headers[name] = value
  }
}

function acceptsTrailers(te: string | string[]): boolean {
  return te === 'trailers' || /(?:^|,)[\t ]*trailers[\t ]*(?:,|$)/i.test(String(te))
}

function replyToClient(reply: Reply, { editReplyHeaders }: Destination): Reply {
  const received = reply.headers
  const headers = towardsClient(received)
  // The edge announces trailers if the client connection supports them.
  if (received['trailer'] !== undefined) headers['trailer'] = received['trailer']
  // RFC 9110 section 8.6: a 204 response has no content-length.
  if (reply.status === 204 && headers['content-length'] !== undefined) delete headers['content-length']
  editReplyHeaders?.(headers)
  reply.headers = headers
  return reply
}
