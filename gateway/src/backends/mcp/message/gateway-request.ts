import { asGatewayError, GatewayError } from '../../../lib/gateway-error.ts'
import { isJsonObject } from '../../../lib/json/json.ts'
import type { CallContext, TargetSession } from '../targets/target.ts'
import { isResponseTo } from './json-rpc.ts'
import type { EventMark, Message, MessageFlow, TargetFailure } from './message.ts'

/** Outcome of a gateway request: a response, which may be a JSON-RPC error, or a failure. */
export type Outcome = { kind: 'response'; message: Message } | { kind: 'failed'; failure: TargetFailure }

export type GatewayRequest = { outcome: Promise<Outcome>; flow: MessageFlow }

/** Maximum wait for a response. `initialize` has a separate limit (`targets/initialize-limit.ts`). */
const responseTimeoutMs = 60_000
/** Maximum time that a target's stream stays open after its response. */
const lingerMs = 1_000

/**
 * Sends a request of the gateway with a deadline, so that an unresponsive target cannot block others.
 * Messages before the response go to `onOther`, which returns false at capacity.
 */
export function sendGatewayRequest(
  session: TargetSession,
  message: Message,
  context: CallContext,
  onOther: (message: Message, mark?: EventMark) => boolean,
): GatewayRequest {
  const { id, method } = message.value
  const { promise: outcome, resolve } = Promise.withResolvers<Outcome>()
  let over = false
  let settled = false
  let linger: NodeJS.Timeout | undefined
  const settle = (result: Outcome) => {
    settled = true
    clearTimeout(timer)
    resolve(result)
  }
  const timer = method === 'initialize' ? undefined : setTimeout(expire, responseTimeoutMs)
  timer?.unref()
  const flow = session.request(message, context, {
    message(received, mark) {
      if (settled) return true
      if (!(typeof id === 'string' || typeof id === 'number') || !isResponseTo(received, id)) {
        return forward(received, mark)
      }
      settle({ kind: 'response', message: received })
      if (!over) linger = setTimeout(() => flow.cancel(), lingerMs).unref()
      return true
    },
    mark() {},
    end() {
      over = true
      clearTimeout(linger)
      const error = new GatewayError('upstream_invalid', 'the target sent no response')
      if (!settled) settle({ kind: 'failed', failure: { kind: 'error', error } })
    },
    fail(failure) {
      over = true
      clearTimeout(linger)
      if (!settled) settle({ kind: 'failed', failure })
    },
  })
  function expire(): void {
    flow.cancel()
    settle({ kind: 'failed', failure: responseTimeout })
  }

  /** Forwards a message. An error fails the request and stays invisible to the target. */
  function forward(received: Message, mark: EventMark | undefined): boolean {
    try {
      return onOther(received, mark)
    } catch (error) {
      settle({ kind: 'failed', failure: { kind: 'error', error: asGatewayError(error) } })
      linger = setTimeout(() => flow.cancel(), 0)
      return true
    }
  }

  return {
    outcome,
    flow: {
      resume: () => flow.resume(),
      cancel() {
        flow.cancel()
        if (!settled) settle({ kind: 'failed', failure: clientGone })
      },
    },
  }
}

/** Code of a JSON-RPC error response; undefined for a result. */
export function errorCodeOf({ value }: Message): number | undefined {
  const { error } = value
  if (error === undefined) return undefined
  const code = isJsonObject(error) ? error['code'] : undefined
  return typeof code === 'number' ? code : 0
}

const clientGone: TargetFailure = {
  kind: 'error',
  error: new GatewayError('request_aborted', 'the client closed the connection'),
}
const responseTimeout: TargetFailure = {
  kind: 'error',
  error: new GatewayError('upstream_timeout', 'no response of the target within the time limit'),
}
