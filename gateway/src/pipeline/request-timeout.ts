import { createCancellation } from '../lib/cancellation.ts'
import type { Clock } from '../lib/clock.ts'
import { longestTimerMs } from '../lib/duration.ts'
import { GatewayError } from '../lib/gateway-error.ts'
import { discard, type Reply } from '../net/http-client/send.ts'
import type { Backend } from './policy.ts'

/**
 * Limits the wait for the response head of a backend, in milliseconds from the arrival of the request. The
 * body may take longer, as model responses and event streams do. On timeout the work is cancelled and the
 * error is `upstream_timeout` (504).
 */
export function withRequestTimeout(backend: Backend, limitMs: number, clock: Clock): Backend {
  return (exchange) => {
    const leftMs = limitMs - (clock.monotonic() - exchange.startedAt)
    if (leftMs <= 0) throw timedOut()
    const cancellation = createCancellation()
    exchange.cancellation.onCancel(cancellation.cancel)
    exchange.cancellation = cancellation
    const reply = backend(exchange)
    return reply instanceof Promise ? limited(reply, leftMs, cancellation.cancel) : reply
  }
}

function limited(pending: Promise<Reply>, leftMs: number, cancel: () => void): Promise<Reply> {
  return new Promise((resolve, reject) => {
    let late = false
    const timer = setTimeout(
      () => {
        late = true
        // Reject before cancelling, because cancelled work fails with another error.
        reject(timedOut())
        cancel()
      },
      Math.min(leftMs, longestTimerMs),
    )
    pending.then(
      (reply) => {
        clearTimeout(timer)
        if (late) discard(reply)
        else resolve(reply)
      },
      (error: unknown) => {
        clearTimeout(timer)
        reject(error)
      },
    )
  })
}

function timedOut(): GatewayError {
  return new GatewayError('upstream_timeout', 'request timeout')
}
