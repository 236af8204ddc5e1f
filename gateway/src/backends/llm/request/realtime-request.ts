import { firstHeader } from '../../../net/http/headers.ts'
import { isWebsocketKey, websocketVersion } from '../../../net/websocket/handshake.ts'
import type { Refusal } from '../../../pipeline/errors.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'

type RealtimeRequest =
  | { readonly kind: 'request'; readonly model: string | undefined }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

/** Reads the handshake and the query of a realtime connection (RFC 6455 section 4.2.1). */
export function readRealtimeRequest({ upgrade, facts, forwarding }: Exchange): RealtimeRequest {
  const { headers, query: received } = facts.request
  if (upgrade?.toLowerCase() !== 'websocket') return refused(upgradeRequired)
  if (firstHeader(headers, 'sec-websocket-version') !== websocketVersion) return refused(upgradeRequired)
  if (!isWebsocketKey(firstHeader(headers, 'sec-websocket-key'))) return refused(invalidKey)
  const query = new URLSearchParams(forwarding?.query ?? received)
  for (const name of ['intent', 'call_id']) {
    if (query.has(name)) return refused({ ...unsupported, message: messages[name] ?? '', param: name })
  }
  // Azure names the model by its deployment.
  const names = new Set([...query.getAll('model'), ...query.getAll('deployment')])
  if (names.size > 1) return refused(severalModels)
  const [model] = names
  return { kind: 'request', model }
}

function refused(refusal: Refusal): RealtimeRequest {
  return { kind: 'refused', refusal }
}

const upgradeRequired: Refusal = {
  status: 426,
  code: 'upgrade_required',
  message: 'realtime is a WebSocket: connect with ws:// or wss:// over HTTP/1.1',
  headers: { upgrade: 'websocket', connection: 'upgrade', 'sec-websocket-version': websocketVersion },
}

const invalidKey: Refusal = {
  status: 400,
  code: 'bad_request',
  message: 'sec-websocket-key must be 16 bytes in base64',
}

const unsupported: Refusal = { status: 400, code: 'unsupported_parameter', message: '' }

const messages: Readonly<Record<string, string>> = {
  intent: 'sessions without a model are not supported: name the model in the query',
  call_id: 'calls over WebRTC and SIP are not supported: open a WebSocket with a model',
}

const severalModels: Refusal = {
  status: 400,
  code: 'invalid_request',
  message: 'the query must have one model',
  param: 'model',
}

/** Refuses calls whose results would let a client reach the provider without the gateway. */
export const bypassesGateway: Refusal = {
  status: 400,
  code: 'unsupported_endpoint',
  message:
    'ephemeral keys and calls over WebRTC or SIP would bypass the gateway: connect a WebSocket to /v1/realtime with a key of the gateway',
}
