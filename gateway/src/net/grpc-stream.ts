import type { Metadata } from './grpc/request-head.ts'
import type { GrpcStatus } from './grpc/status.ts'

/** Bidirectional stream of encoded messages to a server. */
export type GrpcStream = {
  /**
   * Sends a message. Returns false when the server reads slowly: further messages should wait for `onDrain`.
   * Without effect after the end.
   */
  send(message: Uint8Array): boolean
  /** Requests the next message; each call permits one. */
  read(): void
  /** Ends the messages of the client. The server may send further ones. */
  halfClose(): void
  /** Ends the stream at once. `onEnd` is not called. */
  cancel(): void
}

/** Receiver of the events of a stream. Not called before the stream is returned. */
export type GrpcStreamHandler = {
  /** Receives one message for each call of `read`. */
  onMessage(message: Uint8Array): void
  /** All sent messages have left, after `send` returned false. */
  onDrain(): void
  /** The stream ended, by the server or by a failed connection. Called once, not after `cancel`. */
  onEnd(end: GrpcStreamEnd): void
}

/** Status of a stream. */
export type GrpcStreamEnd = GrpcStatus

export type GrpcStreamOptions = {
  /** Size limit of received messages in bytes. */
  readonly maxMessageBytes: number
}

/**
 * Opens a stream; connects if necessary. `metadata` are header fields of the call. A promise if the server
 * is not known yet.
 */
export type OpenGrpcStream = (
  handler: GrpcStreamHandler,
  metadata?: Metadata,
) => GrpcStream | Promise<GrpcStream>
