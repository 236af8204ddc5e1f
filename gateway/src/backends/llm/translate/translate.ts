import type { JsonObject } from '../../../lib/json/json.ts'
import type { SseEvent } from '../../../net/http/sse.ts'

/** A request in the upstream's format, or the field of the client's request that has no counterpart there (a 400). */
export type TranslatedRequest =
  | { kind: 'body'; body: JsonObject }
  | { kind: 'unsupported'; param: string; message: string }

/** What a translated answer needs to know of its request. */
export type TranslationContext = {
  /** The model the client asked for; stands in where the upstream does not name one. */
  requestModel: string
  /** Milliseconds since the Unix epoch, for `created`. */
  now(): number
  /** Whether a chat client is sent the closing usage chunk. */
  includeUsage: boolean
}

/**
 * Turns the upstream's events into the client's. `open` until the upstream's own end marker (`[DONE]`, `message_stop`)
 * makes it `ended`, or an error event of the upstream makes it `failed`.
 */
export type StreamTranslator = {
  readonly state: 'open' | 'ended' | 'failed'
  /**
   * One event in, zero or more out. An error the upstream reports comes out as the client's terminal error event.
   * Throws `GatewayError` (`upstream_invalid`, `upstream_too_large`) when the event cannot be what it should be.
   * Answers nothing once ended or failed.
   */
  event(event: SseEvent): SseEvent[]
  /**
   * The closing events; to be called when `state` is `ended`, or when the upstream's bytes are over. A stream that did
   * not end by itself closes with an error event, so that it never looks complete. Answers nothing the second time.
   */
  end(): SseEvent[]
}

/** One direction: what a client of one format and an upstream of the other say to each other. */
export type Translation = {
  request(body: JsonObject): TranslatedRequest
  /** Throws `GatewayError('upstream_invalid')` when the body is no answer of the upstream's API. */
  reply(body: JsonObject, context: TranslationContext): JsonObject
  /** The client's error body for an upstream's error answer, whatever its body is. */
  error(status: number, body: string): JsonObject
  stream(context: TranslationContext): StreamTranslator
}
