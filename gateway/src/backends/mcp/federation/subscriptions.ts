import { GatewayError } from '../../../lib/gateway-error.ts'
import type { JsonValue } from '../../../lib/json/json.ts'
import type { Outcome } from '../message/gateway-request.ts'
import { editJson } from '../message/json-edit.ts'
import { isResponseTo, paramsOf } from '../message/json-rpc.ts'
import { idleFlow } from '../message/merged-sink.ts'
import type { Message, MessageFlow, MessageSink, TargetFailure } from '../message/message.ts'
import {
  accepts,
  acknowledgedMethod,
  acknowledgementOf,
  emptyFilter,
  endOfSubscription,
  isEmptyFilter,
  readSubscriptionFilter,
  type SubscriptionFilter,
} from '../message/subscriptions.ts'
import type { CallContext } from '../targets/target.ts'
import { forwardOutcome } from './fan-out.ts'
import {
  availableSessions,
  type MemberSession,
  type MemberSessions,
  memberFailure,
} from './member-sessions.ts'
import type { NameLocation } from './names.ts'
import { withText } from './rename.ts'
import { createRenamingSink } from './renaming-sink.ts'
import { isUnknownMethod } from './unknown-method.ts'

/** Maximum wait for the acknowledgements of all targets. */
const acknowledgementMs = 60_000
/** Limits on notifications before all targets have acknowledged. Targets pause at half of them. */
const maxEarly = 100
const maxEarlyChars = 1024 * 1024

/**
 * Subscribes at all targets (`subscriptions/listen`, revision 2026-07-28). Each target receives its own
 * resources. One acknowledgement follows those of all targets, with the union of the accepted notifications.
 * The stream ends with the first of its targets, and the client subscribes again.
 */
export function subscribeToAll(
  memberSessions: MemberSessions,
  message: Message,
  context: CallContext,
  sink: MessageSink,
): MessageFlow {
  const { id = null } = message.value
  const wanted = readSubscriptionFilter(message.value)
  const subscribers = availableSessions(memberSessions, context).flatMap((member) => {
    const share = shareOf(memberSessions, member, wanted)
    return isEmptyFilter(share) ? [] : [{ ...member, share }]
  })
  if (subscribers.length === 0) {
    // Nothing is subscribed: the client receives the acknowledgement of nothing, and the end.
    sink.message(acknowledgementOf(id, emptyFilter))
    endWith(sink, endOfSubscription(id))
    return idleFlow
  }
  const flows: MessageFlow[] = []
  const waiting = new Set(subscribers.map(({ index }) => index))
  /** Targets with an open subscription, or one that they have not acknowledged. */
  const open = new Set(waiting)
  const accepted = new Map<number, SubscriptionFilter>()
  const early = createEarlyMessages()
  let isOver = false
  const timer = setTimeout(() => {
    for (const index of [...waiting]) fail(index, failedWith(unacknowledged(memberSessions, index)))
  }, acknowledgementMs)
  timer.unref()

  function finish(end: () => void): void {
    if (isOver) return
    isOver = true
    clearTimeout(timer)
    for (const flow of flows) flow.cancel()
    end()
  }

  /** All targets have acknowledged: early notifications follow, and the end if no subscription is left. */
  function acknowledgeAll(): boolean {
    clearTimeout(timer)
    let hasRoom = sink.message(acknowledgementOf(id, unionOf([...accepted.values()])))
    for (const received of early.take()) hasRoom = sink.message(received) && hasRoom
    const isEnded = [...accepted.keys()].some((index) => !open.has(index) && !isEmpty(accepted.get(index)))
    if (isEnded || open.size === 0) finish(() => endWith(sink, endOfSubscription(id)))
    else if (hasRoom) for (const flow of flows) flow.resume()
    return hasRoom
  }

  /** A target without further notifications. Those of others continue if it had accepted none. */
  function end(index: number): void {
    if (isOver || !open.delete(index)) return
    if (waiting.has(index)) fail(index, failedWith(unacknowledged(memberSessions, index)))
    else if (waiting.size === 0 && (open.size === 0 || !isEmpty(accepted.get(index))))
      finish(() => endWith(sink, endOfSubscription(id)))
  }

  /**
   * A target that does not subscribe is skipped under `failOpen`, or if it has no subscriptions, unless it is
   * the last one.
   */
  function fail(index: number, outcome: Outcome): void {
    if (isOver) return
    const mayBeSkipped = memberSessions.failOpen || isUnknownMethod(outcome, message)
    if (!mayBeSkipped || !waiting.has(index) || (waiting.size === 1 && accepted.size === 0)) {
      finish(() => forwardOutcome(outcome, sink))
      return
    }
    open.delete(index)
    waiting.delete(index)
    if (waiting.size === 0) acknowledgeAll()
  }

  /** End by `notifications/cancelled`, the former signal of servers. */
  function endsBy(index: number): true {
    end(index)
    return true
  }

  function receive(index: number, received: Message): boolean {
    if (isOver) return true
    const { value } = received
    if (value['method'] === acknowledgedMethod) {
      if (!waiting.delete(index)) return true
      const own = clientFilter(memberSessions, index, readSubscriptionFilter(value))
      accepted.set(index, intersectionOf(own, wanted))
      return waiting.size > 0 || acknowledgeAll()
    }
    if ((typeof id === 'string' || typeof id === 'number') && isResponseTo(received, id)) {
      if (waiting.has(index)) fail(index, { kind: 'response', message: received })
      else end(index)
      return true
    }
    // Nothing precedes the acknowledgement, and nothing exceeds it.
    const filter = accepted.get(index)
    if (filter === undefined || !accepts(filter, received)) return true
    if (waiting.size === 0) return sink.message(received)
    if (early.add(received)) return early.hasRoom()
    finish(() => sink.fail(tooManyEarly(memberSessions, index)))
    return true
  }

  for (const { index, session, share } of subscribers) {
    if (isOver) break
    let flow: MessageFlow | undefined
    const member: MessageSink = {
      message: (received) => receive(index, received),
      mark() {},
      end: () => end(index),
      fail: (failure) => fail(index, failedWith(memberFailure(memberSessions, index, failure))),
    }
    const renamed = createRenamingSink(memberSessions, index, member, {
      mark: (mark) => mark,
      stop: () => flow?.cancel(),
    })
    const receiver: MessageSink = {
      ...renamed,
      message: (received, mark) =>
        isCancellation(received, id) ? endsBy(index) : renamed.message(received, mark),
    }
    flow = session.request(withShare(message, share), context, receiver)
    flows.push(flow)
    if (isOver) flow.cancel()
  }
  return {
    resume() {
      for (const flow of flows) flow.resume()
    },
    cancel: () => finish(() => {}),
  }
}

/** Notifications that wait for the acknowledgements of all targets. */
function createEarlyMessages() {
  let messages: Message[] = []
  let chars = 0
  return {
    /** False beyond the limits. */
    add(message: Message): boolean {
      chars += message.text.length
      messages.push(message)
      return messages.length <= maxEarly && chars <= maxEarlyChars
    },
    hasRoom: () => messages.length <= maxEarly / 2 && chars <= maxEarlyChars / 2,
    take(): Message[] {
      const taken = messages
      messages = []
      chars = 0
      return taken
    },
  }
}

function isEmpty(filter: SubscriptionFilter | undefined): boolean {
  return filter === undefined || isEmptyFilter(filter)
}

function unacknowledged(memberSessions: MemberSessions, index: number): TargetFailure {
  const error = new GatewayError('upstream_timeout', 'no acknowledgement of the subscription')
  return memberFailure(memberSessions, index, { kind: 'error', error })
}

function tooManyEarly(memberSessions: MemberSessions, index: number): TargetFailure {
  const limit = `${maxEarly} notifications or ${maxEarlyChars} characters`
  const reason = `more than ${limit} before all targets acknowledged the subscription`
  const error = new GatewayError('upstream_too_large', reason)
  return memberFailure(memberSessions, index, { kind: 'error', error })
}

function endWith(sink: MessageSink, response: Message): void {
  sink.message(response)
  sink.end()
}

function failedWith(failure: TargetFailure): Outcome {
  return { kind: 'failed', failure }
}

function isCancellation({ value }: Message, id: JsonValue): boolean {
  return value['method'] === 'notifications/cancelled' && paramsOf(value)['requestId'] === id
}

/** The part of one target, with its own names. */
function shareOf(
  { names }: MemberSessions,
  { index }: MemberSession,
  { changes, uris, tasks }: SubscriptionFilter,
): SubscriptionFilter {
  const own = (located: NameLocation | undefined) => (located?.index === index ? [located.name] : [])
  return {
    changes,
    uris: uris.flatMap((uri) => own(names.locateUri(uri))),
    tasks: tasks.flatMap((task) => own(names.locateTask(task))),
  }
}

function withShare(message: Message, { uris, tasks }: SubscriptionFilter): Message {
  const filter = ['params', 'notifications']
  const text = editJson(message.text, [...filter, 'resourceSubscriptions'], () => JSON.stringify(uris))
  return withText(
    message,
    editJson(text, [...filter, 'taskIds'], () => JSON.stringify(tasks)),
  )
}

function clientFilter(
  { names }: MemberSessions,
  index: number,
  { changes, uris, tasks }: SubscriptionFilter,
): SubscriptionFilter {
  return {
    changes,
    uris: uris.map((uri) => names.uriOf(index, uri)),
    tasks: tasks.map((task) => names.taskOf(index, task)),
  }
}

function unionOf(filters: readonly SubscriptionFilter[]): SubscriptionFilter {
  return {
    changes: new Set(filters.flatMap(({ changes }) => [...changes])),
    uris: filters.flatMap(({ uris }) => uris),
    tasks: filters.flatMap(({ tasks }) => tasks),
  }
}

function intersectionOf(accepted: SubscriptionFilter, wanted: SubscriptionFilter): SubscriptionFilter {
  return {
    changes: new Set([...accepted.changes].filter((change) => wanted.changes.has(change))),
    uris: accepted.uris.filter((uri) => wanted.uris.includes(uri)),
    tasks: accepted.tasks.filter((task) => wanted.tasks.includes(task)),
  }
}
