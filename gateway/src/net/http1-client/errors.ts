import { GatewayError } from '../../lib/gateway-error.ts'
import { egressRefused } from '../egress/egress.ts'
import type { Violation } from './parser/violation.ts'

/** Error of a request that HTTP/1.1 cannot express. */
export function cannotBeForwarded(reason: string): GatewayError {
  return new GatewayError('bad_request', 'the request cannot be forwarded', { cause: new Error(reason) })
}

export function callTimeout(): GatewayError {
  return new GatewayError('upstream_timeout', 'upstream call timeout')
}

export function connectFailed(cause: Error): GatewayError {
  const isRefused = codeOf(cause) === egressRefused
  const message = isRefused ? 'upstream call failed: destination refused' : 'upstream call failed: connect'
  return new GatewayError('upstream_connect', message, { cause })
}

/** Error of a connection that failed during a call; without a cause, the upstream closed it. */
export function connectionLost(cause: Error | undefined): GatewayError {
  if (cause instanceof GatewayError) return cause
  return new GatewayError('upstream_reset', 'upstream call failed: connection closed', {
    cause: cause ?? new Error('the upstream closed the connection'),
  })
}

export function violationError({ reason, message }: Violation): GatewayError {
  const cause = new Error(`invalid response: ${message}`)
  return reason === 'too_large'
    ? new GatewayError('upstream_too_large', 'response head is too large', { cause })
    : connectionLost(cause)
}

/** Whether the peer closed or reset the connection. */
export function isClose(cause: Error | undefined): boolean {
  if (cause === undefined) return true
  const code = codeOf(cause)
  return code === 'ECONNRESET' || code === 'EPIPE'
}

function codeOf(error: Error): unknown {
  return 'code' in error ? error.code : undefined
}
