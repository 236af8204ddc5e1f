import { isJsonObject, type JsonObject } from '../../../lib/json/json.ts'
import { createCooperativeYield, largeListChars } from '../message/cooperative-yield.ts'
import { type Outcome, sendGatewayRequest } from '../message/gateway-request.ts'
import { editJson, readTargetObject } from '../message/json-edit.ts'
import { errorText, invalidParams, paramsOf } from '../message/json-rpc.ts'
import type { MergedSink } from '../message/merged-sink.ts'
import type { Message, MessageSink } from '../message/message.ts'
import type { CallContext } from '../targets/target.ts'
import { type Cursors, formatCursors, parseCursors } from './cursors.ts'
import { type MemberInitializeResult, mergeInitializeResults } from './initialize-result.ts'
import { type ListResult, readAllPages } from './list-all.ts'
import { availableSessions, type MemberSessions, memberFailure, memberName } from './member-sessions.ts'
import { renameFromTarget, renameItem } from './rename.ts'
import { isUnknownMethod } from './unknown-method.ts'

/** A client request to all targets. */
export type FanOutRequest = {
  message: Message
  context: CallContext
  merged: MergedSink
  /** Further members of a list, from the lifetimes of the lists of targets. */
  cache?: (lifetimes: readonly unknown[]) => JsonObject
}

/** Sends `initialize` to all allowed targets and responds with the merged result. */
export async function initializeAll(memberSessions: MemberSessions, request: FanOutRequest): Promise<void> {
  removeDenied(memberSessions, request.context)
  removeEjected(memberSessions, request.context)
  const results: MemberInitializeResult[] = []
  const failed: MemberOutcome[] = []
  for (const member of await requestEach(memberSessions, request)) {
    const result = resultOf(member.outcome)
    if (result) results.push({ target: memberName(memberSessions, member.index), result })
    else failed.push(member)
  }
  const [first] = failed
  const { message, merged } = request
  if (first && (!memberSessions.failOpen || results.length === 0)) {
    forwardOutcome(first.outcome, merged.sink)
    return
  }
  for (const { index } of failed) {
    void memberSessions.sessions[index]?.close()
    memberSessions.sessions[index] = undefined
  }
  respondWithResult(
    message,
    merged.sink,
    JSON.stringify(mergeInitializeResults(results, memberSessions.version)),
  )
}

/** Removes the targets that the client must not use: they do not start. */
function removeDenied({ members, sessions }: MemberSessions, { targets }: CallContext): void {
  if (targets === undefined) return
  for (const [index, { name }] of members.entries()) {
    if (targets.permits(name)) continue
    void sessions[index]?.close()
    sessions[index] = undefined
  }
}

/** Removes ejected targets while others remain: a session starts at all of its targets or not at all. */
function removeEjected(memberSessions: MemberSessions, context: CallContext): void {
  const available = new Set(availableSessions(memberSessions, context).map(({ index }) => index))
  for (const [index, session] of memberSessions.sessions.entries()) {
    if (session === undefined || available.has(index)) continue
    void session.close()
    memberSessions.sessions[index] = undefined
  }
}

/**
 * Sends a request without a result (`ping`, `logging/setLevel`) to all targets; targets may lack the method.
 */
export async function broadcastRequest(
  memberSessions: MemberSessions,
  request: FanOutRequest,
): Promise<void> {
  const outcomes = await requestEach(memberSessions, request)
  const failed = outcomes.filter(({ outcome }) => resultOf(outcome) === undefined)
  const [first] = failed
  const { message, merged } = request
  const bad = failed.find(({ outcome }) => !isUnknownMethod(outcome, message))
  if (first && failed.length === outcomes.length) forwardOutcome((bad ?? first).outcome, merged.sink)
  else if (bad && !memberSessions.failOpen) forwardOutcome(bad.outcome, merged.sink)
  else respondWithResult(message, merged.sink, '{}')
}

/** Index of the first target with an item name, for names without prefixes. */
export type ItemOwners = Map<string, number>

/** Responds with the merged list of all targets; `member` is the member of the result with the items. */
export async function listFromAll(
  memberSessions: MemberSessions,
  request: FanOutRequest,
  member: string,
  owners: ItemOwners,
): Promise<void> {
  const { message, merged } = request
  const { cursor } = paramsOf(message.value)
  const cursors = typeof cursor === 'string' ? parseCursors(cursor) : undefined
  if (cursor !== undefined && cursors === undefined) {
    respondWithError(message, merged.sink, invalidParams, 'Invalid cursor')
    return
  }
  const lists = await listEach(memberSessions, request, member, cursors)
  const failed = lists.filter(({ list }) => list.kind !== 'items')
  const [first] = failed
  if (first && (!memberSessions.failOpen || failed.length === lists.length))
    forwardListFailure(first.list, merged.sink)
  else {
    const merge = await mergeLists(memberSessions, member, lists, owners)
    respondWithList(
      message,
      merged.sink,
      request.cache === undefined
        ? merge
        : withCache(
            merge,
            // Without a failed target the list is incomplete, so it must not be stored.
            request.cache(lists.flatMap(({ list }) => (list.kind === 'items' ? list.lifetimes : [0]))),
          ),
    )
  }
}

/** Adds members to the text of an object with members. */
function withCache(text: string, members: JsonObject): string {
  return `${text.slice(0, -1)},${JSON.stringify(members).slice(1)}`
}

/** Loads the target of each tool or prompt name. Failing targets have none. */
export async function loadItemOwners(
  memberSessions: MemberSessions,
  request: FanOutRequest,
  member: 'tools' | 'prompts',
  owners: ItemOwners,
): Promise<void> {
  const lists = await listEach(memberSessions, request, member, undefined)
  await mergeLists(memberSessions, member, lists, owners)
}

/** Sends a JSON-RPC error response. */
export function respondWithError(request: Message, sink: MessageSink, code: number, message: string): void {
  respond(errorText(idTextOf(request), code, message), sink)
}

export type MemberOutcome = { index: number; outcome: Outcome }
type MemberList = { index: number; list: ListResult }

/** Sends a request to all targets that the client may use. */
export function requestEach(
  memberSessions: MemberSessions,
  { message, context, merged }: FanOutRequest,
): Promise<MemberOutcome[]> {
  const outcomes = availableSessions(memberSessions, context).map(
    async ({ index, session }): Promise<MemberOutcome> => {
      const sent = merged.add(
        sendGatewayRequest(session, message, context, forwardFrom(memberSessions, index, merged.sink)),
      )
      const outcome = await sent.outcome
      if (outcome.kind === 'response') return { index, outcome }
      return {
        index,
        outcome: { ...outcome, failure: memberFailure(memberSessions, index, outcome.failure) },
      }
    },
  )
  return Promise.all(outcomes)
}

/**
 * Forwards messages before the response. Their event ids are dropped: no single target can resume a request
 * to all.
 */
function forwardFrom(
  memberSessions: MemberSessions,
  index: number,
  sink: MessageSink,
): (message: Message) => boolean {
  return (message) => sink.message(renameFromTarget(message, index, memberSessions.names))
}

function listEach(
  memberSessions: MemberSessions,
  { message, context, merged }: FanOutRequest,
  member: string,
  cursors: Cursors | undefined,
): Promise<MemberList[]> {
  const sessions = availableSessions(memberSessions, context).filter(
    ({ index }) => !cursors || cursors.has(memberName(memberSessions, index)),
  )
  const lists = sessions.map(async ({ index, session }): Promise<MemberList> => {
    const cursor = cursors?.get(memberName(memberSessions, index))
    const onOther = forwardFrom(memberSessions, index, merged.sink)
    const { newId } = memberSessions
    const list = await readAllPages({
      session,
      message,
      member,
      cursor,
      context,
      newId,
      onOther,
      add: merged.add,
    })
    if (list.kind !== 'failed') return { index, list }
    return { index, list: { ...list, failure: memberFailure(memberSessions, index, list.failure) } }
  })
  return Promise.all(lists)
}

async function mergeLists(
  memberSessions: MemberSessions,
  member: string,
  lists: readonly MemberList[],
  owners: ItemOwners,
): Promise<string> {
  const pauseAfter = createCooperativeYield()
  const next = new Map<string, string>()
  const seen = new Set<string>()
  const items: string[] = []
  const prefixed = memberSessions.prefixed || (member !== 'tools' && member !== 'prompts')
  const names = prefixed
    ? memberSessions.names
    : { ...memberSessions.names, nameOf: (_: number, name: string) => name }
  for (const { index, list } of lists) {
    if (list.kind !== 'items') continue
    if (list.next !== undefined) next.set(memberName(memberSessions, index), list.next)
    for (const item of list.items) {
      const pause = pauseAfter(item.length)
      if (pause) await pause
      if (!prefixed && !isFirst(item, seen, (name) => owners.set(`${member} ${name}`, index))) continue
      items.push(renameItem(item, member, index, names))
    }
  }
  const cursor = next.size === 0 ? '' : `,"nextCursor":${JSON.stringify(formatCursors(next))}`
  return `{${JSON.stringify(member)}:[${items.join(',')}]${cursor}}`
}

/** Without prefixes, the first target with a name serves it. */
function isFirst(item: string, seen: Set<string>, own: (name: string) => void): boolean {
  const name = item.startsWith('{') ? readTargetObject(item).value['name'] : undefined
  if (typeof name !== 'string' || seen.has(name)) return false
  seen.add(name)
  own(name)
  return true
}

export function resultOf(outcome: Outcome): JsonObject | undefined {
  if (outcome.kind !== 'response') return undefined
  const { result } = outcome.message.value
  return isJsonObject(result) ? result : undefined
}

export function forwardOutcome(outcome: Outcome, sink: MessageSink): void {
  if (outcome.kind === 'failed') {
    sink.fail(outcome.failure)
    return
  }
  sink.message(outcome.message)
  sink.end()
}

function forwardListFailure(list: ListResult, sink: MessageSink): void {
  if (list.kind === 'failed') sink.fail(list.failure)
  else if (list.kind === 'error') forwardOutcome({ kind: 'response', message: list.message }, sink)
}

export function respondWithResult(request: Message, sink: MessageSink, resultText: string): void {
  respond(`{"jsonrpc":"2.0","id":${idTextOf(request)},"result":${resultText}}`, sink)
}

/** Sends a list response. A large one is not parsed again: its value contains only the envelope. */
function respondWithList(request: Message, sink: MessageSink, resultText: string): void {
  if (resultText.length < largeListChars) {
    respondWithResult(request, sink, resultText)
    return
  }
  const { id = null } = request.value
  const text = `{"jsonrpc":"2.0","id":${idTextOf(request)},"result":${resultText}}`
  sink.message({ text, value: { jsonrpc: '2.0', id, result: {} } })
  sink.end()
}

function respond(text: string, sink: MessageSink): void {
  sink.message(readTargetObject(text))
  sink.end()
}

/** JSON text of the id as sent by the client, since numbers may lose precision. */
function idTextOf({ text, value }: Message): string {
  let idText = JSON.stringify(value['id'] ?? null)
  editJson(text, ['id'], (written) => {
    idText = written
    return written
  })
  return idText
}
