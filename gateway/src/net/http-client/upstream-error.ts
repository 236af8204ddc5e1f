import { GatewayError } from '../../lib/gateway-error.ts'
import { egressRefused } from '../egress/egress.ts'

/** Error of a failed call. `connected`: the request was on a connection. */
export function upstreamError(cause: unknown, connected: boolean): GatewayError {
  if (cause instanceof GatewayError) return cause
  switch (errorCode(cause)) {
    case 'UND_ERR_HEADERS_TIMEOUT':
      return new GatewayError('upstream_timeout', 'upstream call timeout', { cause })
    case 'UND_ERR_BODY_TIMEOUT':
      return new GatewayError('upstream_timeout', 'upstream stopped sending', { cause })
    case 'UND_ERR_HEADERS_OVERFLOW':
      return new GatewayError('upstream_too_large', 'response head is too large', { cause })
    case 'UND_ERR_INVALID_ARG':
    case 'UND_ERR_NOT_SUPPORTED':
    case 'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH':
      return new GatewayError('bad_request', 'the request cannot be forwarded', { cause })
    case egressRefused:
      return new GatewayError('upstream_connect', 'upstream call failed: destination refused', { cause })
    default:
      return connected
        ? new GatewayError('upstream_reset', 'upstream call failed: connection closed', { cause })
        : new GatewayError('upstream_connect', 'upstream call failed: connect', { cause })
  }
}

/** Whether the connection broke. */
export function isReset(error: unknown): boolean {
  const code = errorCode(error)
  return code === 'UND_ERR_SOCKET' || code === 'ECONNRESET' || code === 'EPIPE'
}

/**
 * Whether the server refused the request unprocessed, before it closed the connection (RFC 9113 section 6.8).
 * The library has no code for it.
 */
export function isRefusedUnprocessed(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('HTTP/2: "GOAWAY"')
}

function errorCode(cause: unknown): unknown {
  return typeof cause === 'object' && cause !== null && 'code' in cause ? cause.code : undefined
}
