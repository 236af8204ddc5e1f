import type { Cancellation } from '../../../lib/cancellation.ts'
import type { JsonObject } from '../../../lib/json/json.ts'
import type { Headers } from '../../../net/http/headers.ts'
import type { McpCall } from '../../../pipeline/exchange.ts'
import type { McpItem } from '../../../pipeline/mcp-item.ts'
import type { Message, MessageFlow, MessageSink, TargetFailure } from '../message/message.ts'

/** Rules as they apply to one request of one client. */
export type Permissions = {
  permits(item: McpItem, at: 'list' | 'call'): boolean
  /** For methods that name no tool, prompt or resource. */
  permitsMethod(method: string): boolean
}

export type CallContext = {
  /** Headers of the client's request that may go upstream; credentials the gateway used are gone. */
  readonly headers: Headers
  /** Cancelled when the client has gone. That does not cancel the request: MCP clients say so in a notification. */
  readonly cancellation: Cancellation
  /** Of the client's request. */
  readonly protocolVersion?: string
  readonly lastEventId?: string
  /** Bound on the answer to a request, in bytes, below that of the target. */
  readonly maxResponseBytes?: number | undefined
  /** What the client was authenticated with, for targets it is meant to be passed on to. */
  readonly credential?: string | undefined
  /** Key that programs of the client are counted by. */
  readonly client?: (() => string) | undefined
  /** Where the access log of the client's request learns which target it went to. */
  readonly loggedCall?: McpCall | undefined
  /** Undefined where no rules are configured. */
  readonly permissions?: Permissions
}

/** One session at one target. */
export type TargetSession = {
  /**
   * Sends a request; everything that belongs to it (progress, logging, requests of the server, the response) goes to the
   * sink in order. The session at the upstream begins with `initialize`.
   */
  request(message: Message, context: CallContext, sink: MessageSink): MessageFlow
  /** Sends a notification or a response of the client. Resolves when the target has taken it, with why not otherwise. */
  deliver(message: Message, context: CallContext): Promise<TargetFailure | undefined>
  /**
   * Messages that belong to no request. Resolves once the stream stands: `none` where the target offers none (405).
   * With `lastEventId` a broken stream, of a request too, goes on behind that event.
   */
  listen(context: CallContext, sink: MessageSink): Promise<Listening>
  /** What another process needs to go on with this session; undefined where only this one can (a child process). */
  state(): JsonObject | undefined
  /** Ends the session upstream: DELETE, end of the child. Never rejects; harmless when called twice. */
  close(): Promise<void>
  /** Called once when the target has ended on its own between or during requests. */
  onTerminated(listener: (reason: string) => void): void
}

export type Listening =
  | { readonly kind: 'flow'; readonly flow: MessageFlow }
  | { readonly kind: 'none' }
  | { readonly kind: 'failed'; readonly failure: TargetFailure }

/** A configured MCP server. */
export type Target = {
  readonly name: string
  /**
   * True where requests of revisions without sessions (2026-07-28) may be sent to a session that was never initialized,
   * with whatever headers those revisions ask for.
   */
  readonly sessionless: boolean
  /** A session that begins with the first request, which is `initialize`. Starts nothing by itself. */
  open(): TargetSession
  /** A session for this request only, which need not begin where the request does not go. Without it, `open` will do. */
  openFor?(request: Message): TargetSession
  /** Goes on with a session from its `state`; undefined where that is not possible (any more). */
  resume(state: JsonObject): TargetSession | undefined
}
