/** The closed list of things that go wrong unexpectedly while a request is served; `pipeline/errors.ts` maps each to a reply. */
export type GatewayErrorCode =
  /** No connection to the upstream: refused, unreachable, unknown name, TLS failure, connect time limit. */
  | 'upstream_connect'
  /** The upstream took longer than a time limit for the first byte or between two bytes. */
  | 'upstream_timeout'
  /** The upstream closed, reset or violated HTTP after the connection stood. */
  | 'upstream_reset'
  /** The upstream answered something that cannot be read as what it should be. */
  | 'upstream_invalid'
  /** The upstream's answer is larger than a limit. */
  | 'upstream_too_large'
  /** The client's body is larger than `frontendPolicies.http.maxBufferSize`. */
  | 'request_too_large'
  /** A bound of `config.limits` is reached for now. */
  | 'overloaded'
  /** The client's body could not be read to its end. */
  | 'request_aborted'
  /** The client's body has an encoding the gateway does not decode. */
  | 'unsupported_encoding'
  /** The client's request is malformed. */
  | 'bad_request'
  /** A defect of the gateway. */
  | 'internal'

/** An unexpected failure. `message` is fit for clients; `cause` is for the log only. */
export class GatewayError extends Error {
  readonly code: GatewayErrorCode

  constructor(code: GatewayErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = 'GatewayError'
    this.code = code
  }
}

/** The error itself if it is a `GatewayError`, else an `internal` one with the error as its cause. */
export function asGatewayError(error: unknown): GatewayError {
  return error instanceof GatewayError
    ? error
    : new GatewayError('internal', 'internal error', { cause: error })
}
