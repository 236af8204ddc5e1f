import type { GatewayError } from '../../../lib/gateway-error.ts'
import type { JsonObject } from '../../../lib/json/json.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { McpItemKind } from '../../../pipeline/mcp-item.ts'

/**
 * One JSON-RPC message: its exact text and the value it says. The text is what is passed on; changes to it go through
 * `lib/json-text`, so that whatever nobody here knows survives. A `JsonText` is a message too.
 */
export type Message = { readonly text: string; readonly value: JsonObject }

/** `id` and `retry` (milliseconds) of the upstream's event, where a message came in one. */
export type EventMark = { readonly id?: string; readonly retry?: number }

/** Why nothing more comes. */
export type TargetFailure =
  /** No connection, a time limit, garbage. The client gets a JSON-RPC error with the error's message. */
  | { readonly kind: 'error'; readonly error: GatewayError }
  /** The upstream refused over HTTP: passed to the client with its status and body. Only before the first message. */
  | { readonly kind: 'reply'; readonly reply: Reply }
  /** The upstream's session is over (404, the child has ended): the client gets 404 and begins anew. */
  | { readonly kind: 'ended'; readonly reason: string }
  /** The tool, prompt or resource does not exist, or the client may not know that it does. */
  | { readonly kind: 'unknown'; readonly item: McpItemKind }
  /** The gateway itself refuses, with a JSON-RPC error. */
  | { readonly kind: 'refused'; readonly status: number; readonly code: number; readonly message: string }

/** Takes messages in order. After `end` or `fail` nothing more is called. */
export type MessageSink = {
  /** Returns false when full: stop until `MessageFlow.resume`. What is under way may still be delivered. */
  message(message: Message, mark?: EventMark): boolean
  /** An event without a message, which only tells where and when to reconnect. */
  mark(mark: EventMark): void
  /** Everything that belongs here has been delivered. For a request: the response was, or the upstream asks to reconnect. */
  end(): void
  fail(failure: TargetFailure): void
}

export type MessageFlow = {
  /** Goes on after `message` returned false. */
  resume(): void
  /** Nobody listens any more; the sink hears nothing more. Harmless when called twice or at the end. */
  cancel(): void
}
