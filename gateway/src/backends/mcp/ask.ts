import { GatewayError } from '../../lib/gateway-error.ts'
import { isJsonObject } from '../../lib/json.ts'
import { isResponseTo } from './json-rpc.ts'
import type {
  CallContext,
  EventMark,
  Message,
  MessageFlow,
  TargetFailure,
  TargetSession,
} from './targets/target.ts'

/** What became of a request the gateway waits for: a response, which may be a JSON-RPC error, or none. */
export type Outcome = { kind: 'answer'; message: Message } | { kind: 'failed'; failure: TargetFailure }

export type Asking = { outcome: Promise<Outcome>; flow: MessageFlow }

/** How long a target's stream may stay open behind its response. */
const lingerMs = 1_000

/** Sends a request and waits for its response; what comes before goes to `others`, which says whether it has room. */
export function ask(
  session: TargetSession,
  message: Message,
  context: CallContext,
  others: (message: Message, mark?: EventMark) => boolean,
): Asking {
  const { id } = message.value
  const { promise: outcome, resolve } = Promise.withResolvers<Outcome>()
  let over = false
  const flow = session.request(message, context, {
    message(received, mark) {
      if (!(typeof id === 'string' || typeof id === 'number') || !isResponseTo(received, id)) {
        return others(received, mark)
      }
      resolve({ kind: 'answer', message: received })
      if (!over) setTimeout(() => over || flow.cancel(), lingerMs).unref()
      return true
    },
    mark() {},
    end() {
      over = true
      const error = new GatewayError('upstream_invalid', 'the target gave no answer')
      resolve({ kind: 'failed', failure: { kind: 'error', error } })
    },
    fail(failure) {
      over = true
      resolve({ kind: 'failed', failure })
    },
  })
  return {
    outcome,
    flow: {
      resume: () => flow.resume(),
      cancel() {
        flow.cancel()
        resolve({ kind: 'failed', failure: noLongerWanted })
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

const noLongerWanted: TargetFailure = {
  kind: 'error',
  error: new GatewayError('request_aborted', 'the client closed the connection'),
}
