import { GatewayError } from '../../../lib/gateway-error.ts'
import type { SessionEnd } from './session.ts'

/** The error of a body that cannot continue after the end of its session. */
export function abortedBy(end: SessionEnd): GatewayError {
  switch (end.kind) {
    case 'cancelled':
      return new GatewayError('request_aborted', 'the client closed the connection')
    case 'immediate':
      return new GatewayError('internal', 'external processing ended the request')
    case 'closed':
    case 'failed':
      return new GatewayError('internal', 'external processing failed')
  }
}
