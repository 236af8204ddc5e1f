import type { GatewayError } from '../../../lib/gateway-error.ts'
import type { JsonObject, JsonValue } from '../../../lib/json/json.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { McpItemKind } from '../../../pipeline/mcp/mcp-item.ts'

/**
 * A JSON-RPC message: its exact text and its parsed value. The text is forwarded; edits use
 * `lib/json/text.ts`, which preserves unknown members. A `JsonText` is assignable to it.
 */
export type Message = { readonly text: string; readonly value: JsonObject }

/** `id` and `retry` (milliseconds) of the SSE event that contained a message. */
export type EventMark = { readonly id?: string; readonly retry?: number }

/** Failure of a request, notification or stream of a target. */
export type TargetFailure =
  /**
   * Connection error, time limit or invalid response. The client receives a JSON-RPC error with the error's
   * message.
   */
  | { readonly kind: 'error'; readonly error: GatewayError }
  /** HTTP error of the upstream, forwarded with its status and body. Only before the first message. */
  | { readonly kind: 'reply'; readonly reply: Reply }
  /** The upstream session has ended (404, process exit): the client receives 404 and initializes again. */
  | { readonly kind: 'ended'; readonly reason: string }
  /** The tool, prompt or resource does not exist, or rules hide it from the client. */
  | { readonly kind: 'unknown'; readonly item: McpItemKind }
  /** Rejection by the gateway with a JSON-RPC error. */
  | {
      readonly kind: 'refused'
      readonly status: number
      readonly code: number
      readonly message: string
      /** Data of the error. */
      readonly data?: JsonValue | undefined
    }

/** Receiver of messages in order. No method is called after `end` or `fail`. */
export type MessageSink = {
  /**
   * Delivers a message. Returns false at capacity: the source pauses until `MessageFlow.resume`; messages in
   * flight may still arrive.
   */
  message(message: Message, mark?: EventMark): boolean
  /** Delivers an SSE event without a message: event id and reconnection time. */
  mark(mark: EventMark): void
  /** Completes the stream. For a request: after its response, or if the upstream requests a reconnect. */
  end(): void
  fail(failure: TargetFailure): void
}

export type MessageFlow = {
  /** Continues delivery after `message` returned false. */
  resume(): void
  /** Stops delivery to the sink. Idempotent, also after the end. */
  cancel(): void
}
