import { GatewayError } from '../../../lib/gateway-error.ts'
import { editJson } from '../message/json-edit.ts'
import { isResponseTo } from '../message/json-rpc.ts'
import { idleFlow } from '../message/merged-sink.ts'
import type { Message, MessageFlow, MessageSink, TargetFailure } from '../message/message.ts'
import {
  acknowledgedMethod,
  acknowledgementOf,
  endOfSubscription,
  isEmptyFilter,
  readSubscriptionFilter,
  type SubscriptionFilter,
} from '../message/subscriptions.ts'
import type { CallContext } from '../targets/target.ts'
import {
  availableSessions,
  type MemberSession,
  type MemberSessions,
  memberFailure,
} from './member-sessions.ts'
import { withText } from './rename.ts'
import { createRenamingSink } from './renaming-sink.ts'

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
    const uris = urisOf(memberSessions, member, wanted)
    return wanted.changes.size === 0 && uris.length === 0 ? [] : [{ ...member, uris }]
  })
  if (subscribers.length === 0) {
    // Nothing is subscribed: the client receives the acknowledgement of nothing, and the end.
    sink.message(acknowledgementOf(id, unionOf([])))
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
    for (const index of [...waiting]) fail(index, unacknowledged(memberSessions, index))
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
    if (waiting.has(index)) fail(index, unacknowledged(memberSessions, index))
    else if (waiting.size === 0 && (open.size === 0 || !isEmpty(accepted.get(index))))
      finish(() => endWith(sink, endOfSubscription(id)))
  }

  /** A target that does not subscribe is skipped under `failOpen`, unless it is the last one. */
  function fail(index: number, failure: TargetFailure, response?: Message): void {
    if (isOver) return
    const isSkipped = memberSessions.failOpen && waiting.has(index) && (waiting.size > 1 || accepted.size > 0)
    if (!isSkipped) {
      finish(() => (response === undefined ? sink.fail(failure) : endWith(sink, response)))
      return
    }
    open.delete(index)
    waiting.delete(index)
    if (waiting.size === 0) acknowledgeAll()
  }

  function receive(index: number, received: Message): boolean {
    if (isOver) return true
    const { value } = received
    if (value['method'] === acknowledgedMethod) {
      if (!waiting.delete(index)) return true
      accepted.set(index, clientFilter(memberSessions, index, readSubscriptionFilter(value)))
      return waiting.size > 0 || acknowledgeAll()
    }
    if ((typeof id === 'string' || typeof id === 'number') && isResponseTo(received, id)) {
      if (waiting.has(index)) fail(index, unacknowledged(memberSessions, index), received)
      else end(index)
      return true
    }
    if (waiting.size === 0) return sink.message(received)
    if (early.add(received)) return early.hasRoom()
    finish(() => sink.fail(tooManyEarly(memberSessions, index)))
    return true
  }

  for (const { index, session, uris } of subscribers) {
    if (isOver) break
    let flow: MessageFlow | undefined
    const member: MessageSink = {
      message: (received) => receive(index, received),
      mark() {},
      end: () => end(index),
      fail: (failure) => fail(index, memberFailure(memberSessions, index, failure)),
    }
    const renamed = createRenamingSink(memberSessions, index, member, {
      mark: (mark) => mark,
      stop: () => flow?.cancel(),
    })
    const path = ['params', 'notifications', 'resourceSubscriptions']
    const text = editJson(message.text, path, () => JSON.stringify(uris))
    flow = session.request(withText(message, text), context, renamed)
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

/** The subscribed resources of one target, under its own names. */
function urisOf({ names }: MemberSessions, { index }: MemberSession, { uris }: SubscriptionFilter): string[] {
  return uris.flatMap((uri) => {
    const located = names.locateUri(uri)
    return located?.index === index ? [located.name] : []
  })
}

function clientFilter(
  { names }: MemberSessions,
  index: number,
  { changes, uris }: SubscriptionFilter,
): SubscriptionFilter {
  return { changes, uris: uris.map((uri) => names.uriOf(index, uri)) }
}

function unionOf(filters: readonly SubscriptionFilter[]): SubscriptionFilter {
  return {
    changes: new Set(filters.flatMap(({ changes }) => [...changes])),
    uris: filters.flatMap(({ uris }) => uris),
  }
}
