import type { Reply } from '../../../../net/http-client/send.ts'
import type { Exchange } from '../../../../pipeline/exchange.ts'
import { jsonReply } from '../../json-reply.ts'
import type { RequestRateLimit } from '../request-rate-limit.ts'
import { noStore } from './oauth-errors.ts'

export type EndpointName = 'server' | 'authorize' | 'consent' | 'callback' | 'token' | 'register'

/** `path`: the path of the MCP endpoint in the address; empty at the root. */
export type EndpointRequest = { name: EndpointName; path: string }

/** `isOpen`: pages of every origin may call it (CORS). */
export type Endpoint = {
  method: 'GET' | 'POST'
  isOpen: boolean
  handle(exchange: Exchange): Promise<Reply>
}

/** An endpoint that clients call, also from the scripts of pages. */
export function scriptEndpoint(method: Endpoint['method'], handle: Endpoint['handle']): Endpoint {
  return { method, isOpen: true, handle }
}

/** An endpoint that browsers navigate to. */
export function browserEndpoint(method: Endpoint['method'], handle: Endpoint['handle']): Endpoint {
  return { method, isOpen: false, handle }
}

export type EndpointCall = {
  exchange: Exchange
  request: EndpointRequest
  /** Path of the issuer. */
  path: string
  rate: RequestRateLimit
}

/** Answers a request after the checks that all endpoints share: path, method, rate; adds CORS headers. */
export async function handleRequest(
  endpoint: Endpoint,
  { exchange, request, path, rate }: EndpointCall,
): Promise<Reply> {
  const { method } = exchange.facts.request
  const { address } = exchange.facts.source
  // Documents of other paths would have another issuer.
  if (request.path !== '' && request.path !== path) return notFound
  if (endpoint.isOpen && method === 'OPTIONS')
    return withCors({ status: 204, headers: {}, body: undefined }, endpoint)
  const isMetadata = request.name === 'server'
  if (method !== endpoint.method && !(isMetadata && method === 'HEAD'))
    return { status: 405, headers: { allow: endpoint.method }, body: undefined }
  if (!isMetadata && !rate.tryAcquire(address)) {
    exchange.log.refusedBy = 'mcp-authentication: too many requests'
    return withCors(tooManyRequests, endpoint)
  }
  const reply = await endpoint.handle(exchange)
  rate.refund(address, uncountedRequests(request.name, exchange, reply))
  return withCors(reply, endpoint)
}

/** Pages of a login: authorize, consent and callback. */
const requestsOfLogin = 3

/**
 * The requests that a good answer removes from the count. Services refresh the tokens of all their users from a few
 * addresses, and the people of an office sign in from one: a good code, refresh token or login is no attack.
 */
function uncountedRequests(name: EndpointName, { log: { refusedBy } }: Exchange, { status }: Reply): number {
  if (name === 'token' && status === 200) return 1
  return name === 'callback' && status === 303 && refusedBy === undefined ? requestsOfLogin : 0
}

function withCors(reply: Reply, { method, isOpen }: Endpoint): Reply {
  if (!isOpen) return reply
  return {
    ...reply,
    headers: {
      ...reply.headers,
      'access-control-allow-origin': '*',
      'access-control-allow-methods': `${method}, OPTIONS`,
      'access-control-allow-headers': 'content-type, authorization, mcp-protocol-version',
    },
  }
}

const tooManyRequests: Reply = jsonReply(
  429,
  { error: 'temporarily_unavailable', error_description: 'too many requests from this address' },
  { ...noStore, 'retry-after': '5' },
)

export const notFound: Reply = {
  status: 404,
  headers: { 'content-type': 'text/plain' },
  body: Buffer.from('not found'),
}
