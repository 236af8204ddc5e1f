import type { JsonObject } from '../../../lib/json/json.ts'
import type { SseEvent } from '../../../net/http/sse.ts'
import type { Endpoint } from '../request/endpoints.ts'

/** A request in the upstream's format, or the field of the client's request without a counterpart (a 400). */
export type TranslatedRequest =
  | {
      kind: 'body'
      body: JsonObject
      /** Settings that the response repeats. */
      settings?: JsonObject
    }
  | { kind: 'unsupported'; param: string; message: string }

/** Properties of the request for the translation of its response. */
export type TranslationContext = {
  /** The requested model, used if the response of the upstream has none. */
  requestModel: string
  /** Milliseconds since the Unix epoch, for `created`. */
  now(): number
  /** A chat client receives the usage chunk. */
  includeUsage: boolean
  /** Signed blocks of thinking are in `reasoning_details` of chat completions. */
  signedThinking?: boolean
  /** Settings of the translated request that the response repeats. */
  settings?: JsonObject | undefined
}

/**
 * Translates the upstream's events to the client's. The state is `open` until the upstream's end marker
 * (`[DONE]`, `message_stop`; then `ended`) or its error event (then `failed`). An API without end marker
 * remains `open`, and `end` determines whether the stream is complete.
 */
export type StreamTranslator = {
  readonly state: 'open' | 'ended' | 'failed'
  /**
   * Translates one event to zero or more. An error event of the upstream becomes the client's terminal error
   * event. Throws `GatewayError` (`upstream_invalid`, `upstream_too_large`) for an invalid event. Returns
   * nothing after `ended` or `failed`.
   */
  event(event: SseEvent): SseEvent[]
  /**
   * Returns the closing events. Called when `state` is `ended` or the upstream's bytes end. A truncated
   * stream closes with an error event, so that it never looks complete. Returns nothing on a second call.
   */
  end(): SseEvent[]
}

/** One direction of translation between a client's API and a different API of the upstream. */
export type Translation = {
  /** The upstream's API. */
  readonly upstream: Endpoint
  request(body: JsonObject): TranslatedRequest
  /** Throws `GatewayError('upstream_invalid')` if the body is not a response of the upstream's API. */
  reply(body: JsonObject, context: TranslationContext): JsonObject
  /** The client's error body for an upstream's error response with any body. */
  error(status: number, body: string): JsonObject
  stream(context: TranslationContext): StreamTranslator
}
