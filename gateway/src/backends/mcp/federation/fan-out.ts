import { isJsonObject, type JsonObject } from '../../../lib/json/json.ts'
import { createPauses, longChars } from '../message/cooperative-yield.ts'
import { ask, errorCodeOf, type Outcome } from '../message/gateway-request.ts'
import { editJson, readTargetObject } from '../message/json-edit.ts'
import { errorText, invalidParams, methodNotFound, paramsOf } from '../message/json-rpc.ts'
import type { Joint } from '../message/merged-sink.ts'
import type { Message, MessageSink } from '../message/message.ts'
import type { CallContext } from '../targets/target.ts'
import { formatPositions, type Positions, readPositions } from './cursors.ts'
import { type Introduction, mergeIntroductions } from './initialize-result.ts'
import { type Listed, listAll } from './list-all.ts'
import { type Fleet, failureOf, liveParts, nameOf } from './member-sessions.ts'
import { renameFromTarget, renameItem } from './rename.ts'

/** A request of the client on its way to all targets. */
export type Asked = { message: Message; context: CallContext; joint: Joint }

/** Begins the session at every target and introduces them as one. */
export async function initializeAll(fleet: Fleet, asked: Asked): Promise<void> {
  const introductions: Introduction[] = []
  const lost: Answered[] = []
  for (const answered of await askEach(fleet, asked)) {
    const result = resultOf(answered.outcome)
    if (result) introductions.push({ target: nameOf(fleet, answered.index), result })
    else lost.push(answered)
  }
  const [first] = lost
  const { message, joint } = asked
  if (first && (!fleet.failOpen || introductions.length === 0)) {
    passOn(first.outcome, joint.sink)
    return
  }
  for (const { index } of lost) {
    void fleet.parts[index]?.close()
    fleet.parts[index] = undefined
  }
  answer(message, joint.sink, JSON.stringify(mergeIntroductions(introductions, fleet.version)))
}

/** Asks all targets for something without a result (`ping`, `logging/setLevel`); not every target has to know it. */
export async function tellAll(fleet: Fleet, asked: Asked): Promise<void> {
  const answered = await askEach(fleet, asked)
  const failed = answered.filter(({ outcome }) => resultOf(outcome) === undefined)
  const [first] = failed
  const { message, joint } = asked
  const bad = failed.find(({ outcome }) => !isUnknownMethod(outcome))
  if (first && failed.length === answered.length) passOn((bad ?? first).outcome, joint.sink)
  else if (bad && !fleet.failOpen) passOn(bad.outcome, joint.sink)
  else answer(message, joint.sink, '{}')
}

/** Which target was the first to list a name, where names do not say. */
export type Owners = Map<string, number>

/** Lists what all targets have; `member` is where lists of this method stand in results. */
export async function listFromAll(fleet: Fleet, asked: Asked, member: string, owners: Owners): Promise<void> {
  const { message, joint } = asked
  const { cursor } = paramsOf(message.value)
  const positions = typeof cursor === 'string' ? readPositions(cursor) : undefined
  if (cursor !== undefined && positions === undefined) {
    answerError(message, joint.sink, invalidParams, 'Invalid cursor')
    return
  }
  const listed = await listEach(fleet, asked, member, positions)
  const failed = listed.filter(({ list }) => list.kind !== 'items')
  const [first] = failed
  if (first && (!fleet.failOpen || failed.length === listed.length)) passOnList(first.list, joint.sink)
  else answerList(message, joint.sink, await mergeLists(fleet, member, listed, owners))
}

/** Learns which target has which tool or prompt. Targets that fail have none. */
export async function findOwners(
  fleet: Fleet,
  { context, joint }: Omit<Asked, 'message'>,
  member: 'tools' | 'prompts',
  owners: Owners,
): Promise<void> {
  const value: JsonObject = { jsonrpc: '2.0', id: fleet.newId(), method: `${member}/list` }
  const message: Message = { text: JSON.stringify(value), value }
  const listed = await listEach(fleet, { message, context, joint }, member, undefined)
  await mergeLists(fleet, member, listed, owners)
}

/** A JSON-RPC error as the response to a request. */
export function answerError(request: Message, sink: MessageSink, code: number, message: string): void {
  respond(errorText(idTextOf(request), code, message), sink)
}

type Answered = { index: number; outcome: Outcome }
type ListedBy = { index: number; list: Listed }

function askEach(fleet: Fleet, { message, context, joint }: Asked): Promise<Answered[]> {
  const answers = liveParts(fleet).map(async ({ index, session }): Promise<Answered> => {
    const asking = joint.add(ask(session, message, context, othersOf(fleet, index, joint.sink)))
    const outcome = await asking.outcome
    if (outcome.kind === 'answer') return { index, outcome }
    return { index, outcome: { ...outcome, failure: failureOf(fleet, index, outcome.failure) } }
  })
  return Promise.all(answers)
}

/** Passes on what a target sends before its response. Its event ids are of no use: no single target can go on with a request to all. */
function othersOf(fleet: Fleet, index: number, sink: MessageSink): (message: Message) => boolean {
  return (message) => sink.message(renameFromTarget(message, index, fleet.names))
}

function listEach(
  fleet: Fleet,
  { message, context, joint }: Asked,
  member: string,
  positions: Positions | undefined,
): Promise<ListedBy[]> {
  const asked = liveParts(fleet).filter(({ index }) => !positions || positions.has(nameOf(fleet, index)))
  const lists = asked.map(async ({ index, session }): Promise<ListedBy> => {
    const cursor = positions?.get(nameOf(fleet, index))
    const others = othersOf(fleet, index, joint.sink)
    const { newId } = fleet
    const list = await listAll({ session, message, member, cursor, context, newId, others, add: joint.add })
    if (list.kind !== 'failed') return { index, list }
    return { index, list: { ...list, failure: failureOf(fleet, index, list.failure) } }
  })
  return Promise.all(lists)
}

async function mergeLists(
  fleet: Fleet,
  member: string,
  listed: readonly ListedBy[],
  owners: Owners,
): Promise<string> {
  const pauseAfter = createPauses()
  const next = new Map<string, string>()
  const seen = new Set<string>()
  const items: string[] = []
  const prefixed = fleet.prefixed || (member !== 'tools' && member !== 'prompts')
  const names = prefixed ? fleet.names : { ...fleet.names, nameOf: (_: number, name: string) => name }
  for (const { index, list } of listed) {
    if (list.kind !== 'items') continue
    if (list.next !== undefined) next.set(nameOf(fleet, index), list.next)
    for (const item of list.items) {
      const pause = pauseAfter(item.length)
      if (pause) await pause
      if (!prefixed && !isFirst(item, seen, (name) => owners.set(`${member} ${name}`, index))) continue
      items.push(renameItem(item, member, index, names))
    }
  }
  const cursor = next.size === 0 ? '' : `,"nextCursor":${JSON.stringify(formatPositions(next))}`
  return `{${JSON.stringify(member)}:[${items.join(',')}]${cursor}}`
}

/** Where names carry no target, the first target that has one serves it. */
function isFirst(item: string, seen: Set<string>, own: (name: string) => void): boolean {
  const name = item.startsWith('{') ? readTargetObject(item).value['name'] : undefined
  if (typeof name !== 'string' || seen.has(name)) return false
  seen.add(name)
  own(name)
  return true
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

function answer(request: Message, sink: MessageSink, resultText: string): void {
  respond(`{"jsonrpc":"2.0","id":${idTextOf(request)},"result":${resultText}}`, sink)
}

/** A response with a list. A long one is not read again: its value has only the envelope. */
function answerList(request: Message, sink: MessageSink, resultText: string): void {
  if (resultText.length < longChars) {
    answer(request, sink, resultText)
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

/** The id as the client wrote it, which a number may not survive. */
function idTextOf({ text, value }: Message): string {
  let idText = JSON.stringify(value['id'] ?? null)
  editJson(text, ['id'], (written) => {
    idText = written
    return written
  })
  return idText
}
