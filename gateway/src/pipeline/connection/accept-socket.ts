import type { Headers } from '../../net/http/headers.ts'
import { subprotocolsIn } from '../../net/websocket/handshake.ts'
import type { Exchange } from '../exchange.ts'
import type { Listener, Route } from '../snapshot.ts'
import { type CallParts, createConnectionCalls } from './connection-calls.ts'

/** Prepares the upgrade request of an LLM route, before its policies run. */
export function acceptSocket(
  exchange: Exchange,
  { route, listener, calls }: { route: Route; listener: Listener | undefined; calls: CallParts },
): void {
  moveSubprotocolKey(exchange.facts.request.headers)
  if (listener?.kind === 'http') exchange.calls = createConnectionCalls({ exchange, route, listener }, calls)
}

/** Subprotocol of browsers, which cannot set `authorization`, with their key. */
const keyPrefix = 'openai-insecure-api-key.'

/**
 * Moves the key of a subprotocol to `authorization`, where it is checked, and removed, as any other. A second
 * credential remains in both, which no check accepts.
 */
function moveSubprotocolKey(headers: Headers): void {
  const name = 'sec-websocket-protocol'
  if (headers[name] === undefined) return
  const offered = subprotocolsIn(headers[name])
  const keys = offered.flatMap((protocol) =>
    protocol.startsWith(keyPrefix) ? protocol.slice(keyPrefix.length) : [],
  )
  if (keys.length === 0) return
  const others = offered.filter((protocol) => !protocol.startsWith(keyPrefix))
  if (others.length > 0) headers[name] = others.join(', ')
  else delete headers[name]
  // Joined, several credentials are invalid.
  const given = headers['authorization']
  const credentials = keys.map((key) => `Bearer ${key}`)
  headers['authorization'] = [...(given === undefined ? [] : [given].flat()), ...credentials].join(', ')
}
