import type { Reply } from '../../../../net/http-client/send.ts'
import type { Exchange } from '../../../../pipeline/exchange.ts'
import { jsonReply } from '../../json-reply.ts'
import type { RequestRateLimit } from '../request-rate-limit.ts'
import { noStore } from './oauth-errors.ts'

export type EndpointName = 'server' | 'authorize' | 'consent' | 'callback' | 'token' | 'register'

/** `path`: path of the MCP endpoint in the URL; empty at the root. */
export type EndpointRequest = { name: EndpointName; path: string }

/** `isOpen`: allows requests of every origin (CORS). */
export type Endpoint = {
  method: 'GET' | 'POST'
  isOpen: boolean
  handle(exchange: Exchange): Promise<Reply>
}

/** Endpoint for clients, including scripts in browsers. */
export function scriptEndpoint(method: Endpoint['method'], handle: Endpoint['handle']): Endpoint {
  return { method, isOpen: true, handle }
}

/** Endpoint for browser navigation. */
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

/** Handles a request after the common checks of path, method and rate; adds CORS headers. */
export async function handleRequest(
  endpoint: Endpoint,
  { exchange, request, path, rate }: EndpointCall,
): Promise<Reply> {
  const { method } = exchange.facts.request
  const { address } = exchange.facts.source
  // Other paths have another issuer.
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
 * Number of requests that a success removes from the count. Services refresh the tokens of all users from a
 * few addresses, and all users of an office sign in from one: a valid code, refresh token or login is not an
 * attack.
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
