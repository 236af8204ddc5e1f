import { GatewayError } from '../../../lib/gateway-error.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'
import { callSubject, listOf, type Subject } from '../message/items.ts'
import { editJson } from '../message/json-edit.ts'
import { invalidRequest, methodNotFound, paramsOf } from '../message/json-rpc.ts'
import { idle, inSteps } from '../message/merged-sink.ts'
import type { Message, MessageFlow, MessageSink, TargetFailure } from '../message/message.ts'
import type { CallContext, Target, TargetSession } from '../targets/target.ts'
import { answerError, findOwners, initializeAll, listFromAll, type Owners, tellAll } from './fan-out.ts'
import { type Fleet, failureOf, liveParts, nameOf } from './member-sessions.ts'
import { listenTo, markOf } from './merged-stream.ts'
import { type Located, type Names, prefixedNames, unwrapId } from './names.ts'
import { withText } from './rename.ts'
import { renamingSink } from './renaming-sink.ts'

export type MultiplexOptions = Pick<Fleet, 'prefixed' | 'failOpen' | 'version'>

/** Several targets as one: what is called goes to the target that its name says, what is listed comes from all. */
export function createMultiplex(members: readonly Target[], options: MultiplexOptions): Target {
  const names = prefixedNames(members.map((member) => member.name))
  return {
    name: members.map((member) => member.name).join('+'),
    sessionless: false,
    open: () => openSession(members.map((member) => member.open())),
    openFor(request) {
      const index = options.prefixed ? destinationOf(request.value, names)?.index : undefined
      return openSession(members.map((m, at) => (index === undefined || at === index ? m.open() : undefined)))
    },
    resume(state) {
      const parts = resumeParts(members, state)
      return parts && openSession(parts)
    },
  }

  function openSession(parts: Fleet['parts']): TargetSession {
    let idCount = 0
    const newId = () => {
      idCount += 1
      return `tollgate/${idCount}`
    }
    return createSession({ members, names, ...options, parts, newId })
  }
}

function resumeParts(members: readonly Target[], { p: states }: JsonObject): Fleet['parts'] | undefined {
  if (!Array.isArray(states) || states.length !== members.length) return undefined
  const parts: Fleet['parts'] = []
  for (const [index, member] of members.entries()) {
    const entry = states[index]
    if (!Array.isArray(entry) || entry[0] !== member.name) return undefined
    const state = entry[1]
    const part = isJsonObject(state) ? member.resume(state) : undefined
    if (part === undefined && state !== null) return undefined
    parts.push(part)
  }
  return parts
}

function stateOf({ members, parts }: Fleet): JsonObject | undefined {
  const states: JsonValue[] = []
  for (const [index, member] of members.entries()) {
    const part = parts[index]
    const state = part ? part.state() : null
    if (state === undefined) return undefined
    states.push([member.name, state])
  }
  return { p: states }
}

function createSession(fleet: Fleet): TargetSession {
  const { members, names, parts } = fleet
  /** Requests under way at one target, by id, so that a cancellation finds it. */
  const pending = new Map<JsonValue, number>()
  const owners: Owners = new Map()
  let died: ((reason: string) => void) | undefined
  for (const [index, part] of parts.entries()) part?.onDeath((reason) => lose(index, reason))

  return {
    request(message, context, sink) {
      const { method } = message.value
      if (method === 'initialize') {
        return inSteps(sink, (joint) => initializeAll(fleet, { message, context, joint }))
      }
      if (method === 'ping' || method === 'logging/setLevel') {
        return inSteps(sink, (joint) => tellAll(fleet, { message, context, joint }))
      }
      const subject = callSubject(message.value)
      if (subject) return call(subject, message, context, sink)
      const member = listMember(method)
      if (member !== undefined) {
        return inSteps(sink, (joint) => listFromAll(fleet, { message, context, joint }, member, owners))
      }
      const task = locateTask(message.value, names)
      if (task) return route(task, ['params', 'taskId'], message, context, sink)
      answerError(message, sink, methodNotFound, `Method not found: ${String(method)}`)
      return idle
    },
    deliver(message, context) {
      if (message.value['method'] === undefined) return answerServer(message, context)
      // What names a tool or the like is for one target, and its name would be another's here.
      if (callSubject(message.value)) return Promise.resolve(callWithoutId)
      const { index, text } = recipientOf(message)
      const part = index === undefined ? undefined : parts[index]
      return part ? part.deliver(withText(message, text), context) : deliverToAll(message, context)
    },
    listen: (context, sink) => listenTo(fleet, context, sink),
    state: () => stateOf(fleet),
    async close() {
      await Promise.all(parts.map((part) => part?.close()))
    },
    onDeath(listener) {
      died = listener
    },
  }

  /** A target has ended. Without it the session goes on only where failures are left out. */
  function lose(index: number, reason: string): void {
    parts[index] = undefined
    if (!fleet.failOpen || parts.every((part) => part === undefined)) died?.(reason)
  }

  function call(subject: Subject, message: Message, context: CallContext, sink: MessageSink): MessageFlow {
    const { kind, name, path } = subject
    const unknown: TargetFailure = { kind: 'unknown', item: kind }
    const member = kind === 'tool' ? 'tools' : 'prompts'
    const located = name === undefined ? undefined : locate(subject, name)
    if (located) return route(located, path, message, context, sink)
    if (name === undefined || fleet.prefixed || kind === 'resource') {
      sink.fail(unknown)
      return idle
    }
    return inSteps(sink, async (joint) => {
      await findOwners(fleet, { context, joint }, member, owners)
      const found = locate(subject, name)
      if (found) joint.add({ flow: route(found, path, message, context, joint.sink) })
      else joint.sink.fail(unknown)
    })
  }

  function locate({ kind }: Subject, name: string): Located | undefined {
    if (kind === 'resource') return names.locateUri(name)
    if (fleet.prefixed) return names.locateName(name)
    const index = owners.get(`${kind === 'tool' ? 'tools' : 'prompts'} ${name}`)
    return index === undefined ? undefined : { index, name }
  }

  /** Passes a request to one target under the name the target knows. */
  function route(
    { index, name }: Located,
    path: readonly string[],
    message: Message,
    context: CallContext,
    sink: MessageSink,
  ): MessageFlow {
    const part = parts[index]
    if (part === undefined) {
      const error = new GatewayError('upstream_connect', `target "${nameOf(fleet, index)}" is not available`)
      sink.fail({ kind: 'error', error })
      return idle
    }
    if (context.noted !== undefined) context.noted.target = nameOf(fleet, index)
    const { id } = message.value
    if (id !== undefined) pending.set(id, index)
    const over = () => {
      if (id !== undefined && pending.get(id) === index) pending.delete(id)
    }
    const text = editJson(message.text, path, () => JSON.stringify(name))
    let flow: MessageFlow | undefined
    const renamed = renamingSink(fleet, index, sink, {
      mark: (mark) => markOf(index, mark),
      over,
      stop: () => flow?.cancel(),
    })
    const requested = part.request(withText(message, text), context, renamed)
    flow = requested
    return {
      resume: () => requested.resume(),
      cancel() {
        over()
        requested.cancel()
      },
    }
  }

  /** The client answers a request of a server: the id says of which. */
  function answerServer(message: Message, context: CallContext): Promise<TargetFailure | undefined> {
    const located = unwrapId(message.value['id'], members.length)
    const part = located && parts[located.index]
    if (!located || !part) {
      return Promise.resolve({
        kind: 'refused',
        status: 400,
        code: invalidRequest,
        message: 'no request has this id',
      })
    }
    const text = editJson(message.text, ['id'], () => located.name)
    return part.deliver(withText(message, withOwnTask(text, located.index, names)), context)
  }

  /** The target a notification concerns, where it is only one, and how the notification reads there. */
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
    const deliveries = liveParts(fleet).map(async ({ index, session }) => {
      const failure = await session.deliver(message, context)
      return failure && failureOf(fleet, index, failure)
    })
    const results = await Promise.all(deliveries)
    const failures = results.filter((failure) => failure !== undefined)
    return !fleet.failOpen || failures.length === results.length ? failures[0] : undefined
  }
}

const callWithoutId: TargetFailure = {
  kind: 'refused',
  status: 400,
  code: invalidRequest,
  message: 'this method is a request and needs an id',
}

function listMember(method: JsonValue | undefined): string | undefined {
  if (method === 'tasks/list') return 'tasks'
  return typeof method === 'string' ? listOf(method)?.member : undefined
}

/** The target that a request names. */
function destinationOf(request: JsonObject, names: Names): Located | undefined {
  const subject = callSubject(request)
  if (subject === undefined) return locateTask(request, names)
  if (subject.name === undefined) return undefined
  return subject.kind === 'resource' ? names.locateUri(subject.name) : names.locateName(subject.name)
}

function locateTask(request: JsonObject, names: Names): Located | undefined {
  const { method } = request
  const { taskId } = paramsOf(request)
  if (typeof method !== 'string' || !method.startsWith('tasks/') || typeof taskId !== 'string')
    return undefined
  return names.locateTask(taskId)
}

/** An answer that belongs to a task says so with the server's own id of it. */
function withOwnTask(text: string, index: number, names: Names): string {
  if (!text.includes('related-task')) return text
  const path = ['result', '_meta', 'io.modelcontextprotocol/related-task', 'taskId']
  return editJson(text, path, (written) => {
    const value: unknown = JSON.parse(written)
    const located = typeof value === 'string' ? names.locateTask(value) : undefined
    return located?.index === index ? JSON.stringify(located.name) : written
  })
}
