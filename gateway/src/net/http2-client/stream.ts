import type { HeaderField } from './hpack/static-table.ts'

/** End of a stream before its last frame. */
export type StreamEnd =
  /** RST_STREAM of the server, with its error code. */
  | { readonly kind: 'reset'; readonly code: number }
  /** The server has not processed the stream, so that it may be repeated (RFC 9113 section 8.7). */
  | { readonly kind: 'unprocessed'; readonly reason: string }
  /** No connection, or a connection that failed. */
  | { readonly kind: 'lost'; readonly reason: string; readonly cause?: unknown }
  /** Too many streams wait for a connection. */
  | { readonly kind: 'overloaded' }

/** Receiver of the events of a stream. Nothing follows the last frame, `onEnd` or `cancelStream`. */
export type StreamReceiver = {
  /** Receives a header block; undefined for one over the limit. `isLast` ends the stream. */
  onHeaders(fields: readonly HeaderField[] | undefined, isLast: boolean): void
  /** Receives data, valid during the call only. `consume` permits the server to send as much again. */
  onData(bytes: Buffer, isLast: boolean): void
  /** All bytes of `send` have left. */
  onSent(): void
  /** The stream ended without its last frame. Not called before the function that started it returns. */
  onEnd(end: StreamEnd): void
}
