import { randomUUID } from 'node:crypto'
import { GatewayError } from '../../../lib/gateway-error.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'
import { type CallTarget, callTargetOf, itemListOf } from '../message/items.ts'
import { editJson } from '../message/json-edit.ts'
import { invalidRequest, messageOf, methodNotFound, paramsOf } from '../message/json-rpc.ts'
import { idleFlow, withMergedSink } from '../message/merged-sink.ts'
import type { Message, MessageFlow, MessageSink, TargetFailure } from '../message/message.ts'
import { isSessionless } from '../message/protocol.ts'
import { targetDenial } from '../permissions/permissions.ts'
import type { CallContext, RemoteMembers, Target, TargetSession } from '../targets/target.ts'
import {
  broadcastRequest,
  type ItemOwners,
  initializeAll,
  listFromAll,
  loadItemOwners,
  respondWithError,
} from './fan-out.ts'
import { activeSessions, type MemberSessions, memberFailure, memberName } from './member-sessions.ts'
import { memberMark, openStream } from './merged-stream.ts'
import { type NameLocation, type NameMapping, prefixedNames, unwrapId } from './names.ts'
import { withText } from './rename.ts'
import { createRenamingSink } from './renaming-sink.ts'
import {
  cacheOf,
  discoverAll,
  listRequestFor,
  removedMethods,
  unknownMethod,
  withItemName,
} from './sessionless.ts'
import { subscribeToAll } from './subscriptions.ts'

export type MultiplexOptions = Pick<MemberSessions, 'prefixed' | 'failOpen' | 'version'>

/** Combines several targets: calls go to the target of their name, lists come from all targets. */
export function createMultiplex(members: readonly Target[], options: MultiplexOptions): Target {
  const names = prefixedNames(members.map((member) => member.name))
  return {
    name: members.map((member) => member.name).join('+'),
    sessionless: members.every(({ sessionless }) => sessionless),
    open: () => openSession(members.map((member) => member.open())),
    openFor(request) {
      const index = options.prefixed ? destinationOf(request.value, names)?.index : undefined
      return openSession(members.map((m, at) => (index === undefined || at === index ? m.open() : undefined)))
    },
    resume(state, remote) {
      const resumed = resumeSessions(members, state, remote)
      if (resumed === undefined) return undefined
      // Ids of requests start with a part of this copy: another copy of the session has its own.
      return openSession(resumed.sessions, resumed.members, `tollgate/${randomUUID().slice(0, 8)}`)
    },
  }

  function openSession(
    sessions: MemberSessions['sessions'],
    part: readonly Target[] = members,
    idPrefix = 'tollgate',
  ): TargetSession {
    let idCount = 0
    const newId = () => {
      idCount += 1
      return `${idPrefix}/${idCount}`
    }
    const partNames = part === members ? names : prefixedNames(part.map((member) => member.name))
    return createSession({ members: part, names: partNames, ...options, sessions, newId })
  }
}

type ResumedMembers = { readonly members: readonly Target[]; readonly sessions: MemberSessions['sessions'] }

/** Resumes the targets at the start of the session in their order; later targets are not part of it. */
function resumeSessions(
  configured: readonly Target[],
  { p: states }: JsonObject,
  remote: RemoteMembers | undefined,
): ResumedMembers | undefined {
  if (!Array.isArray(states)) return undefined
  const members: Target[] = []
  const sessions: MemberSessions['sessions'] = []
  for (const entry of states) {
    const [name, state] = Array.isArray(entry) ? entry : []
    const member = configured.find((candidate) => candidate.name === name)
    if (member === undefined) return undefined
    const session = isJsonObject(state) ? member.resume(state, remote) : undefined
    if (session === undefined && state !== null) return undefined
    members.push(member)
    sessions.push(session)
  }
  const isComplete = members.length === configured.length && members.every((m, at) => m === configured[at])
  return { members: isComplete ? configured : members, sessions }
}

function stateOf({ members, sessions }: MemberSessions, remote?: 'bound' | 'all'): JsonObject | undefined {
  const states: JsonValue[] = []
  for (const [index, member] of members.entries()) {
    const session = sessions[index]
    const state = session ? session.state(remote) : null
    if (state === undefined) return undefined
    states.push([member.name, state])
  }
  return { p: states }
}

function createSession(memberSessions: MemberSessions): TargetSession {
  const { members, names, sessions } = memberSessions
  /** Target index by id of pending requests, for cancellation. */
  const pending = new Map<JsonValue, number>()
  const owners: ItemOwners = new Map()
  let onTerminated: ((reason: string) => void) | undefined
  for (const [index, session] of sessions.entries()) session?.onTerminated((reason) => remove(index, reason))

  return {
    request(message, context, sink) {
      const { method } = message.value
      if (isSessionless(context)) return requestWithoutSession(message, context, sink)
      if (method === 'initialize') {
        return withMergedSink(sink, (merged) => initializeAll(memberSessions, { message, context, merged }))
      }
      if (method === 'ping' || method === 'logging/setLevel') {
        return withMergedSink(sink, (merged) =>
          broadcastRequest(memberSessions, { message, context, merged }),
        )
      }
      const callTarget = callTargetOf(message.value)
      if (callTarget) return call(callTarget, message, context, sink)
      const member = listMember(method)
      if (member !== undefined) {
        return withMergedSink(sink, (merged) =>
          listFromAll(memberSessions, { message, context, merged }, member, owners),
        )
      }
      const task = locateTask(message.value, names)
      if (task) return route(task, ['params', 'taskId'], message, context, sink)
      respondWithError(message, sink, methodNotFound, `Method not found: ${String(method)}`)
      return idleFlow
    },
    deliver(message, context) {
      if (message.value['method'] === undefined) return deliverResponse(message, context)
      // A call without an id concerns a single target; its name may exist at others.
      if (callTargetOf(message.value)) return Promise.resolve(callWithoutId)
      const { index, text } = recipientOf(message)
      const session = index === undefined ? undefined : sessions[index]
      return session ? session.deliver(withText(message, text), context) : deliverToAll(message, context)
    },
    listen: (context, sink) => openStream(memberSessions, context, sink),
    state: (remote) => stateOf(memberSessions, remote),
    member(name) {
      for (const session of sessions) {
        const found = session?.member?.(name)
        if (found !== undefined) return found
      }
      return undefined
    },
    cancelPending(notification) {
      for (const session of sessions) session?.cancelPending?.(notification)
    },
    async close() {
      await Promise.all(sessions.map((session) => session?.close()))
    },
    async closeUnshared() {
      await Promise.all(sessions.map((session) => session?.closeUnshared?.()))
    },
    onTerminated(listener) {
      onTerminated = listener
    },
  }

  /** Handles a request of a revision without sessions. */
  function requestWithoutSession(message: Message, context: CallContext, sink: MessageSink): MessageFlow {
    const { method } = message.value
    if (method === 'subscriptions/listen') return subscribeToAll(memberSessions, message, context, sink)
    if (method === 'server/discover')
      return withMergedSink(sink, (merged) => discoverAll(memberSessions, { message, context, merged }))
    if (typeof method === 'string' && removedMethods.has(method)) {
      sink.fail(unknownMethod(method))
      return idleFlow
    }
    const callTarget = callTargetOf(message.value)
    if (callTarget) return call(callTarget, message, context, sink)
    const member = listMember(method)
    if (member !== undefined) {
      const request = { message, context, cache: cacheMembers }
      return withMergedSink(sink, (merged) =>
        listFromAll(memberSessions, { ...request, merged }, member, owners),
      )
    }
    const task = locateTask(message.value, names)
    if (task) return route(task, ['params', 'taskId'], message, context, sink)
    sink.fail(unknownMethod(String(method)))
    return idleFlow
  }

  /** Removes a terminated target. The session continues only under `failOpen`. */
  function remove(index: number, reason: string): void {
    sessions[index] = undefined
    if (!memberSessions.failOpen || sessions.every((session) => session === undefined)) onTerminated?.(reason)
  }

  function call(
    callTarget: CallTarget,
    message: Message,
    context: CallContext,
    sink: MessageSink,
  ): MessageFlow {
    const { kind, name, path } = callTarget
    const unknown: TargetFailure = { kind: 'unknown', item: kind }
    const member = kind === 'tool' ? 'tools' : 'prompts'
    const located = name === undefined ? undefined : locate(callTarget, name)
    if (located) return route(located, path, message, context, sink)
    if (name === undefined || memberSessions.prefixed || kind === 'resource') {
      sink.fail(unknown)
      return idleFlow
    }
    return withMergedSink(sink, async (merged) => {
      const list = { id: memberSessions.newId(), method: `${member}/list` }
      const request = isSessionless(context)
        ? listRequestFor(message, context, list)
        : { message: messageOf({ jsonrpc: '2.0', ...list }), context }
      await loadItemOwners(memberSessions, { ...request, merged }, member, owners)
      const found = locate(callTarget, name)
      if (found) merged.add({ flow: route(found, path, message, context, merged.sink) })
      else merged.sink.fail(unknown)
    })
  }

  function locate({ kind }: CallTarget, name: string): NameLocation | undefined {
    if (kind === 'resource') return names.locateUri(name)
    if (memberSessions.prefixed) return names.locateName(name)
    const index = owners.get(`${kind === 'tool' ? 'tools' : 'prompts'} ${name}`)
    return index === undefined ? undefined : { index, name }
  }

  /** Forwards a request to one target with the target's name of the item. */
  function route(
    { index, name }: NameLocation,
    path: readonly string[],
    message: Message,
    context: CallContext,
    sink: MessageSink,
  ): MessageFlow {
    const denial = targetDenial(memberName(memberSessions, index), message, context)
    if (denial !== undefined) {
      sink.fail(denial)
      return idleFlow
    }
    const session = sessions[index]
    if (session === undefined) {
      const error = new GatewayError(
        'upstream_connect',
        `target "${memberName(memberSessions, index)}" is not available`,
      )
      sink.fail({ kind: 'error', error })
      return idleFlow
    }
    if (context.loggedCall !== undefined) context.loggedCall.target = memberName(memberSessions, index)
    const { id } = message.value
    if (id !== undefined) pending.set(id, index)
    const finish = () => {
      if (id !== undefined && pending.get(id) === index) pending.delete(id)
    }
    const text = editJson(message.text, path, () => JSON.stringify(name))
    let flow: MessageFlow | undefined
    const renamed = createRenamingSink(memberSessions, index, sink, {
      mark: (mark) => memberMark(index, mark),
      onEnd: finish,
      stop: () => flow?.cancel(),
    })
    const requested = session.request(withText(message, text), withItemName(context, name), renamed)
    flow = requested
    return {
      resume: () => requested.resume(),
      cancel() {
        finish()
        requested.cancel()
      },
    }
  }

  /** Forwards a client response to the server of the id. */
  function deliverResponse(message: Message, context: CallContext): Promise<TargetFailure | undefined> {
    const located = unwrapId(message.value['id'], members.length)
    const session = located && sessions[located.index]
    if (!located || !session) {
      return Promise.resolve({
        kind: 'refused',
        status: 400,
        code: invalidRequest,
        message: 'no request has this id',
      })
    }
    const text = editJson(message.text, ['id'], () => located.name)
    return session.deliver(withText(message, restoreTaskId(text, located.index, names)), context)
  }

  /** Target of a notification, if it has a single one, and the text for that target. */
  function recipientOf({ text, value }: Message): { index: number | undefined; text: string } {
    const params = paramsOf(value)
    if (value['method'] === 'notifications/progress') {
      const located = unwrapId(params['progressToken'], members.length)
      if (!located) return { index: undefined, text }
      return { index: located.index, text: editJson(text, ['params', 'progressToken'], () => located.name) }
    }
    const { requestId } = params
    const cancels = value['method'] === 'notifications/cancelled' && requestId !== undefined
    return { index: cancels ? pending.get(requestId) : undefined, text }
  }

  async function deliverToAll(message: Message, context: CallContext): Promise<TargetFailure | undefined> {
    const deliveries = activeSessions(memberSessions, context).map(async ({ index, session }) => {
      const failure = await session.deliver(message, context)
      return failure && memberFailure(memberSessions, index, failure)
    })
    const results = await Promise.all(deliveries)
    const failures = results.filter((failure) => failure !== undefined)
    return !memberSessions.failOpen || failures.length === results.length ? failures[0] : undefined
  }
}

const cacheMembers = (lifetimes: readonly unknown[]): JsonObject => ({
  resultType: 'complete',
  ...cacheOf(lifetimes),
})

const callWithoutId: TargetFailure = {
  kind: 'refused',
  status: 400,
  code: invalidRequest,
  message: 'this method is a request and needs an id',
}

function listMember(method: JsonValue | undefined): string | undefined {
  if (method === 'tasks/list') return 'tasks'
  return typeof method === 'string' ? itemListOf(method)?.member : undefined
}

/** Target of a request, from its name. */
function destinationOf(request: JsonObject, names: NameMapping): NameLocation | undefined {
  const callTarget = callTargetOf(request)
  if (callTarget === undefined) return locateTask(request, names)
  if (callTarget.name === undefined) return undefined
  return callTarget.kind === 'resource' ? names.locateUri(callTarget.name) : names.locateName(callTarget.name)
}

function locateTask(request: JsonObject, names: NameMapping): NameLocation | undefined {
  const { method } = request
  const { taskId } = paramsOf(request)
  if (typeof method !== 'string' || !method.startsWith('tasks/') || typeof taskId !== 'string')
    return undefined
  return names.locateTask(taskId)
}

/** Restores the server's task id in a response that belongs to a task. */
function restoreTaskId(text: string, index: number, names: NameMapping): string {
  if (!text.includes('related-task')) return text
  const path = ['result', '_meta', 'io.modelcontextprotocol/related-task', 'taskId']
  return editJson(text, path, (written) => {
    const value: unknown = JSON.parse(written)
    const located = typeof value === 'string' ? names.locateTask(value) : undefined
    return located?.index === index ? JSON.stringify(located.name) : written
  })
}
