import type { JsonLimits } from '../../../lib/json/limits.ts'
import type { WebSocketPeer } from '../../../net/websocket/peer.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { ConnectionCalls } from '../../../pipeline/exchange.ts'
import type { Attempt } from '../request/call.ts'
import type { ContentChecks } from './content-checks.ts'
import type { Ending } from './ending.ts'
import type { RealtimeResponses } from './responses.ts'
import type { SessionWatch } from './session-watch.ts'

/** Parts of a connection. */
export type SessionParts = {
  readonly connection: Attempt
  readonly calls: ConnectionCalls
  readonly client: WebSocketPeer
  readonly upstream: WebSocketPeer
  readonly responses: RealtimeResponses
  readonly checks: ContentChecks
  readonly watch: SessionWatch
  readonly context: Pick<CompileContext, 'workQueue'>
  readonly limits: { readonly maxBytes: number; readonly json: JsonLimits }
  readonly ending: Ending
}

/** Handler of the messages of one side. */
export type MessageHandler = (bytes: Buffer, isText: boolean) => Promise<void>
