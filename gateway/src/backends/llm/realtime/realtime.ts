import { type Duplex, duplexPair } from 'node:stream'
import type { JsonLimits } from '../../../lib/json/limits.ts'
import { firstHeader, type Headers } from '../../../net/http/headers.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import { acceptOf, subprotocolsIn } from '../../../net/websocket/handshake.ts'
import { codeForOther, createPeer, type PeerEnd, type WebSocketPeer } from '../../../net/websocket/peer.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { ConnectionCalls, Exchange } from '../../../pipeline/exchange.ts'
import { filterHeaders } from '../reply/reply-body.ts'
import type { Attempt } from '../request/call.ts'
import { createContentChecks } from './content-checks.ts'
import { createEnding } from './ending.ts'
import { openSessionsOf } from './open-sessions.ts'
import { createResponses } from './responses.ts'
import { createSession } from './session.ts'
import { defaultTimes, type SessionTimes, watchSession } from './session-watch.ts'

export type RealtimeOptions = {
  readonly context: CompileContext
  /** Limits of a message of the client: those of a request body. */
  readonly clientLimits: { readonly maxBytes: number; readonly json: JsonLimits }
  readonly sessionTimes?: SessionTimes
}

/** Largest message of a provider. */
const maxServerBytes = 16 * 1024 * 1024

/** Longest time without progress of a side that does not read. */
const stallMs = 60_000

/**
 * Joins the client and the connection to the provider. Both sides exchange messages through the gateway,
 * which reads their events: each response is a call with rules, limits, usage and an entry in the ledger.
 */
export function openRealtime(connection: Attempt, reply: Reply, options: RealtimeOptions): Reply {
  const { exchange } = connection
  const { calls } = exchange
  const { tunnel } = reply
  if (calls === undefined || tunnel === undefined) {
    tunnel?.destroy()
    throw new Error('a realtime connection without its calls')
  }
  connection.succeeded = true
  // The edge joins the client with one end; the other one speaks WebSocket.
  const [edge, inner] = duplexPair()
  joinEnds(edge, inner)
  startRelay({ connection, calls, near: inner, far: tunnel }, options)
  return { status: 101, headers: switchingHeaders(exchange, reply.headers), body: undefined, tunnel: edge }
}

/** Ends of a pair are destroyed together. */
function joinEnds(edge: Duplex, inner: Duplex): void {
  edge.on('error', () => {})
  edge.once('close', () => inner.destroy())
  inner.once('close', () => {
    if (!(edge.readableEnded && edge.writableFinished)) edge.destroy()
  })
}

type Ends = {
  readonly connection: Attempt
  readonly calls: ConnectionCalls
  readonly near: Duplex
  readonly far: Duplex
}

function startRelay({ connection, calls, near, far }: Ends, options: RealtimeOptions): void {
  const { context, clientLimits, sessionTimes = defaultTimes } = options
  const { exchange } = connection
  const responses = createResponses(connection, calls, context)
  let openSides = 2
  const client: WebSocketPeer = createPeer(near, {
    role: 'server',
    maxMessageBytes: clientLimits.maxBytes,
    stallMs,
    onMessage: (bytes, isText) => session.fromClient(bytes, isText),
    onEnd(end) {
      ending.endUpstream(codeForOther(end, 'client'))
      sideEnded(end)
    },
  })
  const upstream: WebSocketPeer = createPeer(far, {
    role: 'client',
    maxMessageBytes: maxServerBytes,
    stallMs,
    onMessage: (bytes, isText) => session.fromUpstream(bytes, isText),
    onEnd(end) {
      const { code, reason } = codeForOther(end, 'upstream')
      client.close(code, reason)
      sideEnded(end)
    },
  })
  const ending = createEnding({ client, upstream, far, responses })
  const watch = watchSession(
    {
      ...{ client, upstream, calls, end: ending.end, clock: context.clock },
      requestModel: exchange.facts.llm?.requestModel ?? '',
      endLate() {
        if (responses.endLate()) ending.responseEnded()
      },
      lose: (side) => (side === 'client' ? near : far).destroy(),
    },
    sessionTimes,
  )
  const session = createSession({
    ...{ connection, calls, client, upstream, responses, watch, context, ending },
    checks: createContentChecks(connection, calls, context.workQueue),
    limits: clientLimits,
  })
  const removeSession = openSessionsOf(context).add(ending.drain)

  function sideEnded(end: PeerEnd): void {
    if (end.kind === 'lost' && end.error !== undefined) exchange.log.failure ??= end.error
    openSides -= 1
    if (openSides > 0) return
    watch.stop()
    responses.endAll()
    removeSession()
  }

  client.start()
  upstream.start()
}

/** Headers of the response to the client; the edge adds `connection` and `upgrade`. */
function switchingHeaders(exchange: Exchange, received: Headers): Headers {
  const { headers } = exchange.facts.request
  const reply: Headers = {}
  const filtered = filterHeaders(received)
  for (const name in filtered) {
    const value = filtered[name]
    if (value !== undefined && !name.startsWith('sec-websocket-')) reply[name] = value
  }
  reply['sec-websocket-accept'] = acceptOf(firstHeader(headers, 'sec-websocket-key') ?? '')
  // Browsers offer further ones with credentials, of which none is selected.
  const offered = subprotocolsIn(headers['sec-websocket-protocol'])
  if (offered.includes('realtime')) reply['sec-websocket-protocol'] = 'realtime'
  return reply
}
