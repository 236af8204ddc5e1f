import type { Clock } from '../lib/clock.ts'
import type { RequestTarget } from '../lib/request-target.ts'
import type { IncomingRequest } from '../net/http/incoming-request.ts'
import type { Client, ClientReader } from './client-address.ts'
import { isHost } from './client-address.ts'
import { createAuthState, type Exchange, type SourceFacts } from './exchange.ts'

/** The client of a request, and the trusted proxy in between, if any. */
export type Sender = { readonly client: Client; readonly peer: Client | undefined }

/** The client as reported by a trusted proxy, or as connected. */
export function readSender(
  request: IncomingRequest,
  host: string,
  clients: ClientReader | undefined,
): Sender {
  const { address, scheme } = request.connection
  const peer = { address, scheme, host }
  const client = clients ? clients(request.headers, peer) : peer
  return { client, peer: client === peer ? undefined : peer }
}

/** Creates the state of a received request. */
export function createExchange(
  request: IncomingRequest,
  target: RequestTarget | undefined,
  { sender: { client, peer }, clock }: { sender: Sender; clock: Clock },
): Exchange {
  const { headers } = request
  return {
    facts: {
      clock,
      request: {
        method: request.method,
        scheme: client.scheme,
        host: client.host,
        path: target?.path ?? '/',
        trailingSlash: target?.trailingSlash === true,
        query: target?.query ?? '',
        version: protocolName(request.version),
        headers,
        arrivedAt: clock.now(),
      },
      source: peer === undefined ? request.connection.source : sourceThroughProxy(request, client, peer),
      destination: request.connection.destination,
      jwt: undefined,
      apiKey: undefined,
      body: undefined,
      llmRequest: undefined,
      llm: undefined,
      usage: undefined,
      route: undefined,
    },
    body: request.body,
    connection: request.connection,
    pathVariants: undefined,
    peer,
    cancellation: request.cancellation,
    startedAt: request.startedAt,
    upgrade: request.upgrade,
    informational: request.informational,
    route: undefined,
    requestId: undefined,
    errorFormat: 'text',
    forwarding: undefined,
    auth: createAuthState(),
    limits: undefined,
    llm: undefined,
    mcp: undefined,
    guards: undefined,
    trace: undefined,
    recording: undefined,
    budgets: undefined,
    charges: undefined,
    payload: undefined,
    log: { refusedBy: undefined, errorCode: undefined, failure: undefined },
  }
}

/** The protocol version as in a request line: `HTTP/1.1`, `HTTP/2.0`. */
function protocolName(version: string): string {
  if (version === '1.1') return 'HTTP/1.1'
  return version === '2.0' ? 'HTTP/2.0' : `HTTP/${version}`
}

function sourceThroughProxy({ connection }: IncomingRequest, { address }: Client, peer: Client): SourceFacts {
  return { ...connection.source, address, port: peer.address === address ? connection.port : 0 }
}

/**
 * Reads the request host; undefined if it is missing or ambiguous, which is 400 (RFC 9112 section 3.2). The
 * host of an absolute-form target must equal the header, because a proxy in front may have used either.
 * Rules, routes and the upstream use the header.
 */
export function readHost({ headers, target, version }: IncomingRequest): string | undefined {
  const host = headers['host']
  if (host === undefined) return version === '1.1' ? undefined : ''
  if (!target.startsWith('/') && !namesHost(target, host)) return undefined
  return typeof host === 'string' && (host === '' || isHost(host)) ? host : undefined
}

/** False if an absolute-form target names another host. */
function namesHost(target: string, host: string | string[]): boolean {
  const [, named] = /^https?:\/\/([^/?#]*)/i.exec(target) ?? []
  return named === undefined || (typeof host === 'string' && named.toLowerCase() === host.toLowerCase())
}
