import { GatewayError } from '../../../lib/gateway-error.ts'
import { firstHeader } from '../../../net/http/headers.ts'
import type { OutgoingRequest, Reply } from '../../../net/http-client/send.ts'
import {
  acceptOf,
  newWebsocketKey,
  subprotocolsIn,
  websocketVersion,
} from '../../../net/websocket/handshake.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import type { Candidate } from '../models/candidate.ts'
import type { Call } from '../request/call.ts'
import { clientHeaders, headersFor } from './request-headers.ts'

/** Subprotocols that providers know. Others may contain credentials. */
const forwardedProtocols: ReadonlySet<string> = new Set(['realtime', 'openai-beta.realtime-v1'])

/** The upgrade request of a realtime connection. Of the client's query it contains the model only. */
export function realtimeRequest(
  exchange: Exchange,
  call: Call,
  candidate: Candidate,
  path: string,
): OutgoingRequest {
  const { provider, origin, connection } = candidate.target
  const client = clientHeaders(exchange)
  const headers = headersFor(client, call, candidate)
  headers['sec-websocket-key'] = newWebsocketKey()
  headers['sec-websocket-version'] = websocketVersion
  const protocols = offeredProtocols(exchange)
  if (protocols.length > 0) headers['sec-websocket-protocol'] = protocols.join(', ')
  const query = `?${provider.realtimeModelParameter ?? 'model'}=${encodeURIComponent(candidate.model)}`
  return {
    origin,
    path: path + (provider.editQuery === undefined ? query : provider.editQuery(query, path)),
    method: 'GET',
    headers,
    body: undefined,
    cancellation: exchange.cancellation,
    connection,
    upgrade: 'websocket',
  }
}

/** The subprotocols of the client that are forwarded. */
function offeredProtocols(exchange: Exchange): string[] {
  const offered = subprotocolsIn(clientHeaders(exchange)['sec-websocket-protocol'])
  return offered.filter((protocol) => forwardedProtocols.has(protocol))
}

/** Checks a response to an upgrade request (RFC 6455 section 4.1). Throws `upstream_invalid`. */
export function checkSwitch({ headers: sent }: OutgoingRequest, { status, headers, tunnel }: Reply): void {
  if (status >= 400) return
  const problem = switchProblem(sent, status, headers)
  if (problem === undefined) return
  tunnel?.destroy()
  throw new GatewayError('upstream_invalid', `upstream did not open a WebSocket: ${problem}`)
}

function switchProblem(
  sent: OutgoingRequest['headers'],
  status: number,
  headers: Reply['headers'],
): string | undefined {
  if (status !== 101) return `status ${status}`
  if (firstHeader(headers, 'sec-websocket-accept') !== acceptOf(firstHeader(sent, 'sec-websocket-key') ?? ''))
    return 'invalid sec-websocket-accept'
  if (headers['sec-websocket-extensions'] !== undefined) return 'extensions that were not offered'
  const chosen = subprotocolsIn(headers['sec-websocket-protocol'])
  const offered = subprotocolsIn(sent['sec-websocket-protocol'])
  return chosen.every((protocol) => offered.includes(protocol))
    ? undefined
    : 'a subprotocol that was not offered'
}
