import { createCancellation } from '../lib/cancellation.ts'
import type { Clock } from '../lib/clock.ts'
import { longestTimerMs } from '../lib/duration.ts'
import { GatewayError } from '../lib/gateway-error.ts'
import { discard, type Reply } from '../net/http-client/send.ts'
import type { Backend } from './policy.ts'

/**
 * The backend with a limit, in milliseconds from the arrival of the request, on the wait for the head of its answer. The
 * body may take longer, because answers of models and event streams do. Past the limit the work is cancelled and the
 * error is `upstream_timeout`, which is 504.
 */
export function withRequestTimeout(backend: Backend, limitMs: number, clock: Clock): Backend {
  return (exchange) => {
    const leftMs = limitMs - (clock.monotonic() - exchange.startedAt)
    if (leftMs <= 0) throw timedOut()
    const cancellation = createCancellation()
    exchange.cancellation.onCancel(cancellation.cancel)
    exchange.cancellation = cancellation
    const answer = backend(exchange)
    return answer instanceof Promise ? limited(answer, leftMs, cancellation.cancel) : answer
  }
}

function limited(answer: Promise<Reply>, leftMs: number, cancel: () => void): Promise<Reply> {
  return new Promise((resolve, reject) => {
    let late = false
    const timer = setTimeout(
      () => {
        late = true
        // Settled before the work is cancelled, because that makes it fail with another error.
        reject(timedOut())
        cancel()
      },
      Math.min(leftMs, longestTimerMs),
    )
    answer.then(
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
