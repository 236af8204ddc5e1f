import { editTopLevel, memberText } from '../../lib/json-text.ts'
import { type Asking, ask, errorCodeOf, type Outcome } from './ask.ts'
import { itemTexts, readTargetObject } from './json-edit.ts'
import { methodNotFound } from './json-rpc.ts'
import { withText } from './rename.ts'
import type { CallContext, EventMark, Message, TargetFailure, TargetSession } from './targets/target.ts'

/** What one target lists. */
export type Listed =
  /** JSON texts of items; `next` where there is more than is read at once. */
  | { kind: 'items'; items: string[]; next: string | undefined }
  | { kind: 'error'; message: Message }
  | { kind: 'failed'; failure: TargetFailure }

export type Listing = {
  session: TargetSession
  /** The client's request. */
  message: Message
  /** Member of the result that holds the items. */
  member: string
  cursor: string | undefined
  context: CallContext
  /** An id that no request of the session has had. */
  newId(): string
  /** Takes part in the client's flow. */
  add(asking: Asking): Asking
  others(message: Message, mark?: EventMark): boolean
}

/** Bounds on what one request reads of one target: the rest is behind the next cursor. */
const maxPages = 64
const maxListChars = 8 * 1024 * 1024

/**
 * Follows the pages of one target's list. A target that does not know the method has nothing to list: servers need not
 * implement what they do not offer.
 */
export async function listAll(listing: Listing): Promise<Listed> {
  const items: string[] = []
  let cursor = listing.cursor
  let chars = 0
  for (let page = 0; page < maxPages && chars < maxListChars; page += 1) {
    const outcome = await readPage(listing, cursor, page)
    if (outcome.kind === 'failed') return outcome
    const { message } = outcome
    const code = errorCodeOf(message)
    if (code === methodNotFound) break
    if (code !== undefined) return { kind: 'error', message }
    const read = readItems(message, listing.member)
    for (const item of read.items) {
      items.push(item)
      chars += item.length
    }
    // A cursor that leads to itself leads nowhere.
    if (read.next === undefined || read.next === cursor) return { kind: 'items', items, next: undefined }
    cursor = read.next
  }
  const next = items.length === 0 ? undefined : cursor
  return { kind: 'items', items, next }
}

function readPage(listing: Listing, cursor: string | undefined, page: number): Promise<Outcome> {
  const { session, context, others, add } = listing
  return add(ask(session, pageRequest(listing, cursor, page), context, others)).outcome
}

/** The client's own request, for another page. Only the first carries its id, by which the client may cancel it. */
function pageRequest({ message, newId }: Listing, cursor: string | undefined, page: number): Message {
  const set = new Map<string, string>()
  const json = readTargetObject(message.text)
  if (page > 0) set.set('id', JSON.stringify(newId()))
  if (cursor !== undefined) {
    const params = readTargetObject(memberText(json, 'params') ?? '{}')
    set.set('params', editTopLevel(params, { set: new Map([['cursor', JSON.stringify(cursor)]]) }))
  }
  return set.size === 0 ? message : withText(message, editTopLevel(json, { set }))
}

function readItems({ text }: Message, member: string): { items: string[]; next: string | undefined } {
  const message = readTargetObject(text)
  const resultText = memberText(message, 'result') ?? '{}'
  if (!resultText.startsWith('{')) return { items: [], next: undefined }
  const result = readTargetObject(resultText)
  const list = memberText(result, member) ?? '[]'
  const { nextCursor } = result.value
  return {
    items: list.startsWith('[') ? itemTexts(list) : [],
    next: typeof nextCursor === 'string' && nextCursor !== '' ? nextCursor : undefined,
  }
}
