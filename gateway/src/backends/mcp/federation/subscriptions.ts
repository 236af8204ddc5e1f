import { GatewayError } from '../../../lib/gateway-error.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'
import { editJson } from '../message/json-edit.ts'
import { isResponseTo, messageOf, paramsOf } from '../message/json-rpc.ts'
import { idleFlow } from '../message/merged-sink.ts'
import type { Message, MessageFlow, MessageSink, TargetFailure } from '../message/message.ts'
import type { CallContext } from '../targets/target.ts'
import {
  availableSessions,
  type MemberSession,
  type MemberSessions,
  memberFailure,
} from './member-sessions.ts'
import { withText } from './rename.ts'
import { createRenamingSink } from './renaming-sink.ts'

const acknowledged = 'notifications/subscriptions/acknowledged'
const subscriptionId = 'io.modelcontextprotocol/subscriptionId'
const listChanges = ['toolsListChanged', 'promptsListChanged', 'resourcesListChanged'] as const

/** Maximum wait for the acknowledgements of all targets. */
const acknowledgementMs = 60_000
/** Maximum messages of targets before all targets have acknowledged; further ones are dropped. */
const maxEarly = 100

/** Notifications that a client subscribes to, or a target accepts. */
type Filter = { readonly changes: ReadonlySet<string>; readonly uris: readonly string[] }

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
  const wanted = readFilter(paramsOf(message.value)['notifications'])
  const subscribers = availableSessions(memberSessions, context).flatMap((member) => {
    const uris = urisOf(memberSessions, member, wanted)
    return wanted.changes.size === 0 && uris.length === 0 ? [] : [{ ...member, uris }]
  })
  if (subscribers.length === 0) {
    // Nothing is subscribed: the client receives the acknowledgement of nothing, and the end.
    sink.message(acknowledgement(id, []))
    sink.message(endOf(id))
    sink.end()
    return idleFlow
  }
  const flows: MessageFlow[] = []
  const waiting = new Set(subscribers.map(({ index }) => index))
  /** Targets with an open subscription, or one that they have not acknowledged. */
  const open = new Set(waiting)
  const accepted = new Map<number, Filter>()
  const early: Message[] = []
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
    let hasRoom = sink.message(acknowledgement(id, [...accepted.values()]))
    for (const held of early.splice(0)) hasRoom = sink.message(held) && hasRoom
    const isEnded = [...accepted.keys()].some((index) => !open.has(index) && !isEmpty(accepted.get(index)))
    if (isEnded || open.size === 0) finish(() => endWith(sink, endOf(id)))
    return hasRoom
  }

  /** A target without further notifications. Those of others continue if it had accepted none. */
  function end(index: number): void {
    if (isOver || !open.delete(index)) return
    if (waiting.has(index)) fail(index, unacknowledged(memberSessions, index))
    else if (waiting.size === 0 && (open.size === 0 || !isEmpty(accepted.get(index))))
      finish(() => endWith(sink, endOf(id)))
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
    if (value['method'] === acknowledged) {
      if (!waiting.delete(index)) return true
      accepted.set(index, clientFilter(memberSessions, index, readFilter(paramsOf(value)['notifications'])))
      return waiting.size > 0 || acknowledgeAll()
    }
    if ((typeof id === 'string' || typeof id === 'number') && isResponseTo(received, id)) {
      if (waiting.has(index)) fail(index, unacknowledged(memberSessions, index), received)
      else end(index)
      return true
    }
    if (waiting.size === 0) return sink.message(received)
    if (early.length < maxEarly) early.push(received)
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

function isEmpty(filter: Filter | undefined): boolean {
  return filter === undefined || (filter.changes.size === 0 && filter.uris.length === 0)
}

function unacknowledged(memberSessions: MemberSessions, index: number): TargetFailure {
  const error = new GatewayError('upstream_timeout', 'no acknowledgement of the subscription')
  return memberFailure(memberSessions, index, { kind: 'error', error })
}

function endWith(sink: MessageSink, response: Message): void {
  sink.message(response)
  sink.end()
}

function readFilter(value: JsonValue | undefined): Filter {
  const filter = isJsonObject(value) ? value : {}
  const { resourceSubscriptions: uris } = filter
  return {
    changes: new Set(listChanges.filter((name) => filter[name] === true)),
    uris: Array.isArray(uris) ? uris.filter((uri) => typeof uri === 'string') : [],
  }
}

/** The subscribed resources of one target, under its own names. */
function urisOf({ names }: MemberSessions, { index }: MemberSession, { uris }: Filter): string[] {
  return uris.flatMap((uri) => {
    const located = names.locateUri(uri)
    return located?.index === index ? [located.name] : []
  })
}

function clientFilter({ names }: MemberSessions, index: number, { changes, uris }: Filter): Filter {
  return { changes, uris: uris.map((uri) => names.uriOf(index, uri)) }
}

function acknowledgement(id: JsonValue, accepted: readonly Filter[]): Message {
  const notifications: JsonObject = {}
  for (const { changes } of accepted) for (const name of changes) notifications[name] = true
  const uris = accepted.flatMap((filter) => filter.uris)
  if (uris.length > 0) notifications['resourceSubscriptions'] = uris
  const params = { _meta: { [subscriptionId]: id }, notifications }
  return messageOf({ jsonrpc: '2.0', method: acknowledged, params })
}

/** The response at the end of a subscription. */
function endOf(id: JsonValue): Message {
  return messageOf({
    ...{ jsonrpc: '2.0', id, result: { resultType: 'complete', _meta: { [subscriptionId]: id } } },
  })
}
