import { GatewayError } from '../../lib/gateway-error.ts'
import { isSource } from '../../net/http/body.ts'
import { createHeaderFilter, type Headers } from '../../net/http/headers.ts'
import type { OutgoingRequest, Reply, Send } from '../../net/http-client/send.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import type { Destination } from '../../upstream/destination.ts'
import { writeForwarded } from '../../upstream/forwarded.ts'
import { isWithheldHeader } from '../../upstream/withheld-headers.ts'
import { declaredLength, type ObservedBody, observeBody } from './buffered-body.ts'

/** How one attempt differs from what the exchange itself says. */
export type Attempt = {
  body: OutgoingRequest['body']
  /** Longest wait for the head of the answer, beside the destination's own. */
  timeoutMs: number | undefined
  /** How often it was sent before. */
  retries: number
}

/** Made anew for the connection to the upstream, or written by `writeForwarded`. `expect` has been answered here. */
const towardsUpstream = createHeaderFilter(
  (name) => name === 'host' || name === 'content-length' || name === 'expect' || isWithheldHeader(name),
)

const towardsClient = createHeaderFilter(() => false)

/** Asks the destination what the client asked, with the changes that policies made. */
export function forward(
  exchange: Exchange,
  destination: Destination,
  { body, timeoutMs, retries }: Attempt,
  send: Send,
): Promise<Reply> {
  const { health } = destination
  const upload = health && typeof body === 'object' && isSource(body) ? observeBody(body) : undefined
  const request = requestTo(destination, exchange, upload?.body ?? body)
  if (timeoutMs !== undefined) request.firstByteTimeoutMs = timeoutMs
  if (retries > 0) request.headers['x-retry-attempt'] = String(retries)
  if (!health) return send(request).then((reply) => replyToClient(reply, destination))
  return send(request).then(
    (reply) => {
      if (reply.status >= 500) health.failed()
      else health.succeeded()
      return replyToClient(reply, destination)
    },
    (error: unknown) => {
      if (isOfDestination(error, upload)) health.failed()
      throw error
    },
  )
}

/** A client that left, is slow with its body, or sent what cannot be forwarded, says nothing about the destination. */
function isOfDestination(error: unknown, upload: ObservedBody | undefined): boolean {
  if (!(error instanceof GatewayError) || !error.code.startsWith('upstream_')) return false
  return error.code !== 'upstream_timeout' || upload?.waitsForClient() !== true
}

/** The request as the destination gets it. */
export function requestTo(
  destination: Destination,
  exchange: Exchange,
  body: OutgoingRequest['body'],
): OutgoingRequest {
  const { facts, forwarding } = exchange
  const { request: asked } = facts
  const { upgrade } = exchange
  const request: OutgoingRequest = {
    origin: destination.origin,
    path: pathOf(exchange),
    method: asked.method,
    headers: headersFor(destination, exchange, body),
    body,
    cancellation: exchange.cancellation,
    connection: destination.connection,
    onInformational: exchange.informational,
    acceptsWhole: true,
  }
  if (upgrade !== undefined) request.upgrade = upgrade
  if (forwarding?.host !== undefined) {
    request.headers['host'] = forwarding.host === 'client' ? asked.host : forwarding.host
  }
  return request
}

function pathOf({ facts: { request }, forwarding, trailingSlash }: Exchange): string {
  if (forwarding?.path !== undefined) return forwarding.path + request.query
  return (trailingSlash ? `${request.path}/` : request.path) + request.query
}

function headersFor(
  { editRequestHeaders, authorize }: Destination,
  exchange: Exchange,
  body: OutgoingRequest['body'],
): Headers {
  const client = exchange.facts.request.headers
  const headers = towardsUpstream(client)
  // RFC 9110 section 10.1.4: the one member that is not about this connection only.
  if (client['te'] !== undefined && acceptsTrailers(client['te'])) headers['te'] = 'trailers'
  const allowed = exchange.route?.target.allowedClientHeaders
  if (allowed) restore(headers, client, allowed)
  writeForwarded(headers, exchange)
  if (exchange.forwarding) for (const edit of exchange.forwarding.headerEdits) edit(headers)
  editRequestHeaders?.(headers)
  authorize?.(headers, exchange.auth.credential)
  if (typeof body === 'object' && !(body instanceof Uint8Array)) {
    const length = declaredLength(client)
    if (length !== undefined) headers['content-length'] = String(length)
  }
  return headers
}

/** Adds headers that are withheld unless the route allows them. */
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
  // The edge says which fields follow, where they can.
  if (received['trailer'] !== undefined) headers['trailer'] = received['trailer']
  // RFC 9110 section 8.6: there is no length of what is never there.
  if (reply.status === 204 && headers['content-length'] !== undefined) delete headers['content-length']
  editReplyHeaders?.(headers)
  reply.headers = headers
  return reply
}
