/** The closed list of unexpected failures of a request; `pipeline/errors.ts` maps each to a response. */
export type GatewayErrorCode =
  /** No connection to the upstream: refused, unreachable, unknown name, TLS failure, connect time limit. */
  | 'upstream_connect'
  /** A time limit of the upstream passed before the first byte or between two bytes. */
  | 'upstream_timeout'
  /** The upstream closed, reset or violated HTTP after the connection was established. */
  | 'upstream_reset'
  /** The response of the upstream is invalid for its protocol. */
  | 'upstream_invalid'
  /** The response of the upstream is larger than a limit. */
  | 'upstream_too_large'
  /** The client's body is larger than `frontendPolicies.http.maxBufferSize`. */
  | 'request_too_large'
  /** A limit of `config.limits` is reached. */
  | 'overloaded'
  /** The client's body ended early. */
  | 'request_aborted'
  /** The client's body has an unsupported encoding. */
  | 'unsupported_encoding'
  /** The client's request is malformed. */
  | 'bad_request'
  /** The request has no token that the backend requires. */
  | 'credential_missing'
  /** The authorization server of the backend refuses the token of the client. */
  | 'credential_refused'
  /** The authorization server of the backend denies access. */
  | 'credential_forbidden'
  /** The authorization server of the backend issues no credential. */
  | 'credential_unavailable'
  /** A defect of the gateway. */
  | 'internal'

/** An unexpected failure. Clients receive `message`; `cause` is only logged. */
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
