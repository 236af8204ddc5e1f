import { asGatewayError, GatewayError } from '../../../lib/gateway-error.ts'
import { isJsonObject } from '../../../lib/json/json.ts'
import type { CallContext, TargetSession } from '../targets/target.ts'
import { isResponseTo } from './json-rpc.ts'
import type { EventMark, Message, MessageFlow, TargetFailure } from './message.ts'

/** What became of a request the gateway waits for: a response, which may be a JSON-RPC error, or none. */
export type Outcome = { kind: 'answer'; message: Message } | { kind: 'failed'; failure: TargetFailure }

export type GatewayRequest = { outcome: Promise<Outcome>; flow: MessageFlow }

/** Longest wait for an answer. That to `initialize` has a limit of its own (`initialize-limit.ts`). */
const answerTimeoutMs = 60_000
/** How long a target's stream may stay open behind its response. */
const lingerMs = 1_000

/**
 * Sends a request that the gateway itself waits for, with a deadline, so that a target that hangs cannot hold up the others.
 * What comes before the response goes to `others`, which says whether it has room.
 */
export function sendGatewayRequest(
  session: TargetSession,
  message: Message,
  context: CallContext,
  others: (message: Message, mark?: EventMark) => boolean,
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
  const timer = method === 'initialize' ? undefined : setTimeout(expire, answerTimeoutMs)
  timer?.unref()
  const flow = session.request(message, context, {
    message(received, mark) {
      if (settled) return true
      if (!(typeof id === 'string' || typeof id === 'number') || !isResponseTo(received, id)) {
        return passOn(received, mark)
      }
      settle({ kind: 'answer', message: received })
      if (!over) linger = setTimeout(() => flow.cancel(), lingerMs).unref()
      return true
    },
    mark() {},
    end() {
      over = true
      clearTimeout(linger)
      const error = new GatewayError('upstream_invalid', 'the target gave no answer')
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

  /** A message that cannot be passed on fails the request; the target must not hear of it. */
  function passOn(received: Message, mark: EventMark | undefined): boolean {
    try {
      return others(received, mark)
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

/** Code of the JSON-RPC error a message is, or undefined for a result. */
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
  error: new GatewayError('upstream_timeout', 'a target took too long to answer'),
}
