import { GatewayError } from '../../lib/gateway-error.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../lib/json.ts'
import { ask, errorCodeOf, type Outcome } from './ask.ts'
import { type Introduction, mergeIntroductions } from './initialize-result.ts'
import { editJson, readTargetObject } from './json-edit.ts'
import { errorText, invalidParams, methodNotFound, paramsOf } from './json-rpc.ts'
import { type Listed, listAll } from './list-all.ts'
import { type Located, type Names, prefixedNames, unwrapId } from './names.ts'
import {
  formatPositions,
  mergedEventId,
  type Positions,
  readEventId,
  readPositions,
  streamEventId,
} from './positions.ts'
import { renameFromTarget, renameItem, withText } from './rename.ts'
import { callSubject, listOf, type Subject } from './subject.ts'
import type {
  CallContext,
  EventMark,
  Listening,
  Message,
  MessageFlow,
  MessageSink,
  Target,
  TargetFailure,
  TargetSession,
} from './targets/target.ts'

export type MultiplexOptions = {
  /** Whether names of tools and prompts carry their target. URIs of resources always do. */
  prefixed: boolean
  /** Whether a target that fails is left out, instead of failing what all targets are asked. */
  failOpen: boolean
  /** Version the gateway introduces itself with. */
  version: string
}

/** Several targets as one: what is called goes to the target that its name says, what is listed comes from all. */
export function createMultiplex(members: readonly Target[], options: MultiplexOptions): Target {
  const names = prefixedNames(members.map((member) => member.name))
  return {
    name: members.map((member) => member.name).join('+'),
    sessionless: false,
    open: () => createSession(members.map((member) => member.open())),
    resume(state) {
      const parts = resumeParts(state)
      return parts && createSession(parts)
    },
  }

  function resumeParts({ p: states }: JsonObject): Parts | undefined {
    if (!Array.isArray(states) || states.length !== members.length) return undefined
    const parts: Parts = []
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

  function createSession(parts: Parts): TargetSession {
    /** Requests under way at one target, by id, so that a cancellation finds it. */
    const pending = new Map<JsonValue, number>()
    /** Where names without prefix were last listed. */
    const owners = new Map<string, number>()
    let idCount = 0
    const newId = () => {
      idCount += 1
      return `tollgate/${idCount}`
    }
    let died: ((reason: string) => void) | undefined
    for (const [index, part] of parts.entries()) part?.onDeath((reason) => lose(index, reason))

    return {
      request(message, context, sink) {
        const { method } = message.value
        if (method === 'initialize') return whenKnown(sink, (joint) => initialize(message, context, joint))
        if (method === 'ping' || method === 'logging/setLevel') {
          return whenKnown(sink, (joint) => tellAll(message, context, joint))
        }
        const subject = callSubject(message.value)
        if (subject) return call(subject, message, context, sink)
        const list = typeof method === 'string' ? listMember(method) : undefined
        if (list !== undefined) return whenKnown(sink, (joint) => list_(list, message, context, joint))
        const task = taskOf(message)
        if (task) return route(task, ['params', 'taskId'], message, context, sink)
        answerError(message, sink, methodNotFound, `Method not found: ${String(method)}`)
        return idle
      },
      async deliver(message, context) {
        const { value } = message
        if (value['method'] === undefined) return answerServer(message, context)
        const only = destinationOf(value)
        if (only) return parts[only.index]?.deliver(withText(message, only.text(message.text)), context)
        return deliverToAll(message, context)
      },
      listen,
      state() {
        const states: JsonValue[] = []
        for (const [index, member] of members.entries()) {
          const part = parts[index]
          const state = part ? part.state() : null
          if (state === undefined) return undefined
          states.push([member.name, state])
        }
        return { p: states }
      },
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
      if (!options.failOpen || parts.every((part) => part === undefined)) died?.(reason)
    }

    function live(): { index: number; session: TargetSession }[] {
      return parts.flatMap((session, index) => (session ? { index, session } : []))
    }

    /** Sink for what one target sends before its response. */
    function othersOf(index: number, sink: MessageSink): (message: Message, mark?: EventMark) => boolean {
      return (message) => sink.message(renameFromTarget(message, index, names))
    }

    function askEach(message: Message, context: CallContext, joint: Joint): Promise<Answered[]> {
      const askings = live().map(({ index, session }) => {
        const asking = joint.add(ask(session, message, context, othersOf(index, joint.sink)))
        return asking.outcome.then((outcome) => ({ index, outcome }))
      })
      return Promise.all(askings)
    }

    async function initialize(
      message: Message,
      context: CallContext,
      { sink, ...joint }: Joint,
    ): Promise<void> {
      const introductions: Introduction[] = []
      const lost: Answered[] = []
      for (const answered of await askEach(message, context, { sink, ...joint })) {
        const result = resultOf(answered.outcome)
        if (result) introductions.push({ target: members[answered.index]?.name ?? '', result })
        else lost.push(answered)
      }
      const [first] = lost
      if (first && (!options.failOpen || introductions.length === 0)) {
        passOn(first.outcome, sink)
        return
      }
      for (const { index } of lost) {
        void parts[index]?.close()
        parts[index] = undefined
      }
      answer(message, sink, JSON.stringify(mergeIntroductions(introductions, options.version)))
    }

    /** Asks all targets for something without a result; not every target has to know it. */
    async function tellAll(message: Message, context: CallContext, joint: Joint): Promise<void> {
      const answered = await askEach(message, context, joint)
      const failed = answered.filter(({ outcome }) => resultOf(outcome) === undefined)
      const bad = failed.find(({ outcome }) => !isUnknownMethod(outcome))
      const [unknown] = failed
      if (bad && (!options.failOpen || failed.length === answered.length)) passOn(bad.outcome, joint.sink)
      else if (unknown && failed.length === answered.length) passOn(unknown.outcome, joint.sink)
      else answer(message, joint.sink, '{}')
    }

    async function list_(
      member: string,
      message: Message,
      context: CallContext,
      joint: Joint,
    ): Promise<void> {
      const { cursor } = paramsOf(message.value)
      const positions = typeof cursor === 'string' ? readPositions(cursor) : undefined
      if (cursor !== undefined && positions === undefined) {
        answerError(message, joint.sink, invalidParams, 'Invalid cursor')
        return
      }
      const listed = await listEach(member, message, context, joint, positions)
      const failed = listed.filter(({ list }) => list.kind !== 'items')
      const [first] = failed
      if (first && (!options.failOpen || failed.length === listed.length)) {
        passOnList(first.list, joint.sink)
        return
      }
      answer(message, joint.sink, mergeLists(member, listed))
    }

    function listEach(
      member: string,
      message: Message,
      context: CallContext,
      joint: Joint,
      positions: Positions | undefined,
    ): Promise<ListedBy[]> {
      const asked = live().filter(({ index }) => !positions || positions.has(members[index]?.name ?? ''))
      const lists = asked.map(async ({ index, session }) => {
        const cursor = positions?.get(members[index]?.name ?? '')
        const others = othersOf(index, joint.sink)
        const list = await listAll({
          session,
          message,
          member,
          cursor,
          context,
          newId,
          others,
          add: joint.add,
        })
        return { index, list }
      })
      return Promise.all(lists)
    }

    function mergeLists(member: string, listed: readonly ListedBy[]): string {
      const next = new Map<string, string>()
      const seen = new Set<string>()
      const items: string[] = []
      for (const { index, list } of listed) {
        if (list.kind !== 'items') continue
        if (list.next !== undefined) next.set(members[index]?.name ?? '', list.next)
        for (const item of list.items) {
          if (options.prefixed || (member !== 'tools' && member !== 'prompts')) {
            items.push(renameItem(item, member, index, names))
          } else if (isFirst(item, member, index, seen)) items.push(renameWidget(item, member, index, names))
        }
      }
      const cursor = next.size === 0 ? '' : `,"nextCursor":${JSON.stringify(formatPositions(next))}`
      return `{${JSON.stringify(member)}:[${items.join(',')}]${cursor}}`
    }

    /** Where names carry no target, the first target that has one serves it. */
    function isFirst(item: string, member: string, index: number, seen: Set<string>): boolean {
      const name = nameIn(item)
      if (name === undefined || seen.has(name)) return false
      seen.add(name)
      owners.set(`${member} ${name}`, index)
      return true
    }

    function call(subject: Subject, message: Message, context: CallContext, sink: MessageSink): MessageFlow {
      const { kind, name, path } = subject
      if (name === undefined) {
        sink.fail({ kind: 'unknown', item: kind })
        return idle
      }
      if (kind === 'resource') return locatedOr(names.locateUri(name))
      if (options.prefixed) return locatedOr(names.locateName(name))
      const member = kind === 'tool' ? 'tools' : 'prompts'
      const owner = owners.get(`${member} ${name}`)
      if (owner !== undefined) return locatedOr({ index: owner, name })
      return whenKnown(sink, async (joint) => {
        await findOwners(member, context, joint)
        const found = owners.get(`${member} ${name}`)
        if (found === undefined) joint.sink.fail({ kind: 'unknown', item: kind })
        else joint.add({ flow: route({ index: found, name }, path, message, context, joint.sink) })
      })

      function locatedOr(located: Located | undefined): MessageFlow {
        if (located) return route(located, path, message, context, sink)
        sink.fail({ kind: 'unknown', item: kind })
        return idle
      }
    }

    async function findOwners(member: string, context: CallContext, joint: Joint): Promise<void> {
      const value: JsonObject = { jsonrpc: '2.0', id: newId(), method: `${member}/list` }
      const request: Message = { text: JSON.stringify(value), value }
      const listed = await listEach(member, request, context, joint, undefined)
      mergeLists(member, listed)
    }

    /** Passes a request to one target under the name the target knows. */
    function route(
      located: Located,
      path: readonly string[],
      message: Message,
      context: CallContext,
      sink: MessageSink,
    ): MessageFlow {
      const { index, name } = located
      const part = parts[index]
      if (part === undefined) {
        const error = new GatewayError(
          'upstream_connect',
          `target "${members[index]?.name}" is not available`,
        )
        sink.fail({ kind: 'error', error })
        return idle
      }
      const { id } = message.value
      if (id !== undefined) pending.set(id, index)
      const done = () => {
        if (id !== undefined && pending.get(id) === index) pending.delete(id)
      }
      const text = editJson(message.text, path, () => JSON.stringify(name))
      const flow = part.request(
        withText(message, text),
        context,
        renaming(index, sink, done, () => flow.cancel()),
      )
      return {
        resume: () => flow.resume(),
        cancel() {
          done()
          flow.cancel()
        },
      }
    }

    /** What one target sends in a stream of its own. */
    function renaming(index: number, sink: MessageSink, done: () => void, stop: () => void): MessageSink {
      let over = false
      return {
        message(message, mark) {
          if (over) return true
          let renamed: Message
          try {
            renamed = renameFromTarget(message, index, names)
          } catch (error) {
            over = true
            done()
            sink.fail({ kind: 'error', error: asGatewayError(error) })
            stop()
            return true
          }
          return sink.message(renamed, mark && markOf(index, mark))
        },
        mark(mark) {
          if (!over) sink.mark(markOf(index, mark))
        },
        end() {
          if (over) return
          over = true
          done()
          sink.end()
        },
        fail(failure) {
          if (over) return
          over = true
          done()
          sink.fail(failure)
        },
      }
    }

    /** The client answers a request of a server: the id says of which. */
    function answerServer(message: Message, context: CallContext): Promise<TargetFailure | undefined> {
      const located = unwrapId(message.value['id'], members.length)
      const part = located && parts[located.index]
      if (!located || !part) return Promise.resolve({ ...notOurs, message: 'no request has this id' })
      const { index, name: idText } = located
      const text = editJson(message.text, ['id'], () => idText)
      const task = ['result', '_meta', 'io.modelcontextprotocol/related-task', 'taskId']
      const unprefixed = text.includes('related-task')
        ? editJson(text, task, (value) => ownTask(value, index, names))
        : text
      return part.deliver(withText(message, unprefixed), context)
    }

    /** A notification that concerns one target only, and how it reads there. */
    function destinationOf(value: JsonObject): { index: number; text(text: string): string } | undefined {
      const params = paramsOf(value)
      if (value['method'] === 'notifications/progress') {
        const located = unwrapId(params['progressToken'], members.length)
        if (!located) return undefined
        return {
          index: located.index,
          text: (text) => editJson(text, ['params', 'progressToken'], () => located.name),
        }
      }
      if (value['method'] !== 'notifications/cancelled') return undefined
      const { requestId } = params
      const index = requestId === undefined ? undefined : pending.get(requestId)
      return index === undefined ? undefined : { index, text: (text) => text }
    }

    async function deliverToAll(message: Message, context: CallContext): Promise<TargetFailure | undefined> {
      const failures = await Promise.all(live().map(({ session }) => session.deliver(message, context)))
      const failed = failures.filter((failure) => failure !== undefined)
      return !options.failOpen || failed.length === failures.length ? failed[0] : undefined
    }

    async function listen(context: CallContext, sink: MessageSink): Promise<Listening> {
      const position = context.lastEventId === undefined ? undefined : readEventId(context.lastEventId)
      if (position?.kind !== 'one') return listenToAll(context, sink, position?.positions)
      const { index, id } = position
      const part = parts[index]
      if (part === undefined) return { kind: 'none' }
      let flow: MessageFlow | undefined
      const listening = await part.listen(
        { ...context, lastEventId: id },
        renaming(
          index,
          sink,
          () => {},
          () => flow?.cancel(),
        ),
      )
      if (listening.kind === 'flow') flow = listening.flow
      return listening
    }

    /** All targets' own streams as one. It ends with the first of them, so that the client opens it anew, for all. */
    async function listenToAll(
      { lastEventId: _, ...context }: CallContext,
      sink: MessageSink,
      from: Positions | undefined,
    ): Promise<Listening> {
      const positions = new Map(from)
      const flows: MessageFlow[] = []
      let over = false
      const finish = (failure: TargetFailure | undefined) => {
        if (over) return
        over = true
        for (const flow of flows) flow.cancel()
        if (failure) sink.fail(failure)
        else sink.end()
      }
      const opened = live().map(async ({ index, session }) => {
        const name = members[index]?.name ?? ''
        const merged: MessageSink = {
          ...sink,
          message: (message, mark) => over || sink.message(message, mark && place(name, mark)),
          mark: (mark) => over || sink.mark(place(name, mark)),
          end: () => finish(undefined),
          fail: finish,
        }
        const lastEventId = positions.get(name)
        const own = lastEventId === undefined ? context : { ...context, lastEventId }
        let flow: MessageFlow | undefined
        const listening = await session.listen(
          own,
          plainRenaming(index, merged, () => flow?.cancel()),
        )
        if (listening.kind === 'flow') {
          flow = listening.flow
          flows.push(flow)
          if (over) flow.cancel()
        }
        return listening
      })
      const results = await Promise.all(opened)
      const failed = results.find((result) => result.kind === 'failed' && matters(result.failure))
      if (failed && (!options.failOpen || flows.length === 0)) {
        over = true
        for (const flow of flows) flow.cancel()
        return failed
      }
      if (flows.length === 0) return { kind: 'none' }
      return {
        kind: 'flow',
        flow: {
          resume() {
            for (const flow of flows) flow.resume()
          },
          cancel() {
            over = true
            for (const flow of flows) flow.cancel()
          },
        },
      }

      function place(name: string, { id, retry }: EventMark): EventMark {
        if (id === undefined) return retry === undefined ? {} : { retry }
        positions.set(name, id)
        const merged = mergedEventId(positions)
        return retry === undefined ? { id: merged } : { id: merged, retry }
      }
    }

    /** Renames messages and leaves marks to whoever merges them. */
    function plainRenaming(index: number, sink: MessageSink, stop: () => void): MessageSink {
      const renamed = renaming(index, sink, () => {}, stop)
      return { ...renamed, message: (message, mark) => passed(message, mark), mark: sink.mark }

      function passed(message: Message, mark: EventMark | undefined): boolean {
        try {
          return sink.message(renameFromTarget(message, index, names), mark)
        } catch (error) {
          sink.fail({ kind: 'error', error: asGatewayError(error) })
          stop()
          return true
        }
      }
    }
  }

  function taskOf({ value }: Message): Located | undefined {
    const { method } = value
    const { taskId } = paramsOf(value)
    if (typeof method !== 'string' || !method.startsWith('tasks/') || typeof taskId !== 'string')
      return undefined
    return names.locateTask(taskId)
  }
}

/** Sessions at the targets, in the order of the configuration; undefined for one that is lost. */
type Parts = (TargetSession | undefined)[]
type Answered = { index: number; outcome: Outcome }
type ListedBy = { index: number; list: Listed }

const idle: MessageFlow = { resume() {}, cancel() {} }
const notOurs = { kind: 'refused', status: 400, code: -32600 } as const

/** A sink for several targets' messages, and the flows that feed it. */
type Joint = { sink: MessageSink; add<T extends { flow: MessageFlow }>(source: T): T }

/** Runs something that takes several steps, with one flow for all of them. */
function whenKnown(sink: MessageSink, run: (joint: Joint) => Promise<void>): MessageFlow {
  const flows: MessageFlow[] = []
  let over = false
  const guarded: MessageSink = {
    message: (message, mark) => over || sink.message(message, mark),
    mark(mark) {
      if (!over) sink.mark(mark)
    },
    end() {
      if (!over) sink.end()
      over = true
    },
    fail(failure) {
      if (!over) sink.fail(failure)
      over = true
    },
  }
  const joint: Joint = {
    sink: guarded,
    add(source) {
      flows.push(source.flow)
      if (over) source.flow.cancel()
      return source
    },
  }
  run(joint).catch((error: unknown) => guarded.fail({ kind: 'error', error: asGatewayError(error) }))
  return {
    resume() {
      for (const flow of flows) flow.resume()
    },
    cancel() {
      over = true
      for (const flow of flows) flow.cancel()
    },
  }
}

function listMember(method: string): string | undefined {
  return method === 'tasks/list' ? 'tasks' : listOf(method)?.member
}

function markOf(index: number, { id, retry }: EventMark): EventMark {
  return {
    ...(id === undefined ? undefined : { id: streamEventId(index, id) }),
    ...(retry === undefined ? undefined : { retry }),
  }
}

/** A server that cannot stream on its own says so in many ways; only a lost session or server is a failure. */
function matters(failure: TargetFailure): boolean {
  return failure.kind === 'ended' || failure.kind === 'error'
}

function resultOf(outcome: Outcome): JsonObject | undefined {
  if (outcome.kind !== 'answer') return undefined
  const { result } = outcome.message.value
  return isJsonObject(result) ? result : undefined
}

function isUnknownMethod(outcome: Outcome): boolean {
  return outcome.kind === 'answer' && errorCodeOf(outcome.message) === methodNotFound
}

function passOn(outcome: Outcome, sink: MessageSink): void {
  if (outcome.kind === 'failed') {
    sink.fail(outcome.failure)
    return
  }
  sink.message(outcome.message)
  sink.end()
}

function passOnList(list: Listed, sink: MessageSink): void {
  if (list.kind === 'failed') sink.fail(list.failure)
  else if (list.kind === 'error') passOn({ kind: 'answer', message: list.message }, sink)
}

/** The response to a request, with a result made here. */
function answer(request: Message, sink: MessageSink, resultText: string): void {
  const text = `{"jsonrpc":"2.0","id":${idTextOf(request)},"result":${resultText}}`
  respond(text, sink)
}

function answerError(request: Message, sink: MessageSink, code: number, message: string): void {
  respond(errorText(idTextOf(request), code, message), sink)
}

function respond(text: string, sink: MessageSink): void {
  const { value } = readTargetObject(text)
  sink.message({ text, value })
  sink.end()
}

function idTextOf({ text, value }: Message): string {
  let idText = JSON.stringify(value['id'] ?? null)
  editJson(text, ['id'], (written) => {
    idText = written
    return written
  })
  return idText
}

function nameIn(item: string): string | undefined {
  const value: unknown = JSON.parse(item)
  const name = isJsonObject(value) ? value['name'] : undefined
  return typeof name === 'string' ? name : undefined
}

function renameWidget(item: string, member: string, index: number, names: Names): string {
  return renameItem(item, member, index, { ...names, nameOf: (_, name) => name })
}

function ownTask(text: string, index: number, names: Names): string {
  const value: unknown = JSON.parse(text)
  const located = typeof value === 'string' ? names.locateTask(value) : undefined
  return located?.index === index ? JSON.stringify(located.name) : text
}

function asGatewayError(error: unknown): GatewayError {
  return error instanceof GatewayError
    ? error
    : new GatewayError('internal', 'internal error', { cause: error })
}
