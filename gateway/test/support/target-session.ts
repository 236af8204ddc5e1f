import type {
  EventMark,
  Message,
  MessageFlow,
  MessageSink,
  TargetFailure,
} from '../../src/backends/mcp/message/message.ts'
import type { CallContext, TargetSession } from '../../src/backends/mcp/targets/target.ts'
import { createCancellation } from '../../src/lib/cancellation.ts'
import { isJsonObject, type JsonObject } from '../../src/lib/json/json.ts'

/** The context of a call by a client that sends no headers and stays. */
export function callContext(headers: CallContext['headers'] = {}): CallContext {
  return { headers, cancellation: createCancellation() }
}

export function messageOf(value: JsonObject): Message {
  return { text: JSON.stringify(value), value }
}

export type Collected = MessageSink & {
  readonly messages: JsonObject[]
  readonly texts: string[]
  readonly marks: (EventMark | undefined)[]
  /** How it ended: with undefined, or with a failure. */
  readonly ended: Promise<TargetFailure | undefined>
}

/** A sink that records its messages. `hasRoom` is the result for each message. */
export function collect(hasRoom: () => boolean = () => true): Collected {
  const { promise: ended, resolve } = Promise.withResolvers<TargetFailure | undefined>()
  const messages: JsonObject[] = []
  const texts: string[] = []
  const marks: (EventMark | undefined)[] = []
  return {
    messages,
    texts,
    marks,
    ended,
    message(message, mark) {
      messages.push(message.value)
      texts.push(message.text)
      marks.push(mark)
      return hasRoom()
    },
    mark(mark) {
      marks.push(mark)
    },
    end: () => resolve(undefined),
    fail: resolve,
  }
}

export type Call = Collected & { readonly flow: MessageFlow }

let lastId = 0

/** Sends a request and collects the messages that belong to it. */
export function call(session: TargetSession, method: string, params: JsonObject = {}): Call {
  lastId += 1
  const sink = collect()
  const message = messageOf({ jsonrpc: '2.0', id: lastId, method, params })
  return { ...sink, flow: session.request(message, callContext(), sink) }
}

/** The result of a request; throws for any other response. */
export async function resultOf(answered: Call): Promise<JsonObject> {
  const failure = await answered.ended
  const result = answered.messages.at(-1)?.['result']
  if (failure === undefined && isJsonObject(result)) return result
  throw new Error(`no result: ${JSON.stringify(failure ?? answered.messages)}`)
}

/** The human-readable text of a failure. */
export function reasonOf(failure: TargetFailure | undefined): string {
  switch (failure?.kind) {
    case 'error':
      return `${failure.error.code}: ${failure.error.message}`
    case 'ended':
      return `ended: ${failure.reason}`
    case 'reply':
      return `reply: ${failure.reply.status}`
    default:
      return failure?.kind ?? 'no failure'
  }
}
