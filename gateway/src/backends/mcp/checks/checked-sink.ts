import { asGatewayError } from '../../../lib/gateway-error.ts'
import type { JsonObject, JsonValue } from '../../../lib/json/json.ts'
import { foldName } from '../../../lib/json/names.ts'
import { paramsOf } from '../message/json-rpc.ts'
import type { Message, MessageSink, TargetFailure } from '../message/message.ts'
import { taskMethod } from '../message/subscriptions.ts'
import type { MessageChecks } from '../targets/target.ts'

/** Whether clients may read a message as an answer, also if it has a method. */
export function isAnswer({ value }: Message): boolean {
  return value['method'] === undefined || 'result' in value || 'error' in value
}

const envelope: ReadonlySet<string> = new Set(['jsonrpc', 'id', 'method', 'params', 'result', 'error'])
const foldedEnvelope: ReadonlySet<string> = new Set([...envelope].map(foldName))

/**
 * Whether clients with case-insensitive readers, such as Go's `encoding/json`, may read a member of the
 * message as another one: `Result` as `result`, which no check has seen.
 */
function isAmbiguous(value: JsonObject): boolean {
  for (const name in value) if (!envelope.has(name) && foldedEnvelope.has(foldName(name))) return true
  return false
}

/**
 * Drops ambiguous messages, and all answers except valid ones to the request with this id; without an id,
 * all. Other requests and notifications of the target pass.
 */
export function withOwnAnswers(sink: MessageSink, id: JsonValue | undefined): MessageSink {
  const passes = (message: Message) => {
    if (isAmbiguous(message.value)) return false
    if (!isAnswer(message)) return true
    const { value } = message
    if (id === undefined || value['id'] !== id || value['method'] !== undefined) return false
    return 'result' in value || 'error' in value
  }
  return { ...sink, message: (message, mark) => !passes(message) || sink.message(message, mark) }
}

/**
 * Drops states of tasks with a result that no check has seen, if the results of tasks are checked. Clients
 * receive them with `tasks/get`.
 */
export function withoutTaskResults(
  sink: MessageSink,
  { checksResult }: Pick<MessageChecks, 'checksResult'>,
): MessageSink {
  if (!checksResult('tasks/get')) return sink
  const passes = ({ value }: Message) => {
    const { method } = value
    if (method !== taskMethod) return true
    const params = paramsOf(value)
    return params['result'] === undefined && params['error'] === undefined
  }
  return { ...sink, message: (message, mark) => !passes(message) || sink.message(message, mark) }
}

export type CheckedSinkOptions = {
  /** Whether a message is the response to the request. */
  isResponse(message: Message): boolean
  /** Checks the response; returns the message to forward. */
  check(response: Message): Promise<Message>
  /** Checks a failure with content of the target, such as an HTTP error body; undefined for others. */
  checkFailure(failure: TargetFailure): Promise<TargetFailure> | undefined
}

/** Sink with a check of the response. After `cancel` the wrapped sink receives nothing. */
export type CheckedSink = { readonly sink: MessageSink; cancel(): void }

/**
 * Delays the response, and the end behind it. Messages after the response are dropped: a request has one
 * response.
 */
export function createCheckedSink(
  sink: MessageSink,
  { isResponse, check, checkFailure }: CheckedSinkOptions,
): CheckedSink {
  /** `checking`: the response waits for its check. `passed`: the response was forwarded. */
  let phase: 'waiting' | 'checking' | 'passed' | 'over' = 'waiting'
  let end: (() => void) | undefined

  function finish(action: () => void): void {
    if (phase === 'over') return
    if (phase === 'checking') {
      end ??= action
      return
    }
    phase = 'over'
    action()
  }

  function checkedFailure(checking: Promise<TargetFailure>): void {
    phase = 'checking'
    const fail = (failure: TargetFailure) => {
      if (phase !== 'checking') return
      phase = 'over'
      sink.fail(failure)
    }
    checking.then(fail, (error: unknown) => fail({ kind: 'error', error: asGatewayError(error) }))
  }

  return {
    cancel() {
      phase = 'over'
    },
    sink: {
      message(message, mark) {
        if (phase !== 'waiting') return true
        if (!isResponse(message)) return sink.message(message, mark)
        phase = 'checking'
        check(message).then(
          (checked) => {
            if (phase !== 'checking') return
            phase = 'passed'
            sink.message(checked, mark)
            if (end !== undefined) finish(end)
          },
          (error: unknown) => {
            if (phase !== 'checking') return
            phase = 'over'
            sink.fail({ kind: 'error', error: asGatewayError(error) })
          },
        )
        return true
      },
      mark(mark) {
        if (phase === 'waiting') sink.mark(mark)
      },
      end: () => finish(() => sink.end()),
      fail(failure) {
        const checking = phase === 'waiting' ? checkFailure(failure) : undefined
        if (checking === undefined) finish(() => sink.fail(failure))
        else checkedFailure(checking)
      },
    },
  }
}
