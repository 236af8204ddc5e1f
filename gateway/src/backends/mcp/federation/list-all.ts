import { asGatewayError } from '../../../lib/gateway-error.ts'
import { editTopLevel, memberText } from '../../../lib/json/edit.ts'
import type { JsonValue } from '../../../lib/json/json.ts'
import { largeListChars } from '../message/cooperative-yield.ts'
import {
  errorCodeOf,
  type GatewayRequest,
  type Outcome,
  sendGatewayRequest,
} from '../message/gateway-request.ts'
import { readTargetObject } from '../message/json-edit.ts'
import type { EventMark, Message, TargetFailure } from '../message/message.ts'
import { maxListResponseBytes, readList } from '../message/read-list.ts'
import type { CallContext, TargetSession } from '../targets/target.ts'
import { withText } from './rename.ts'
import { isUnknownMethod } from './unknown-method.ts'

/** List of one target. */
export type ListResult =
  /** JSON texts of items; `next` is the cursor of unread pages. */
  | {
      kind: 'items'
      items: string[]
      next: string | undefined
      /** `ttlMs` of each page, in revision 2026-07-28. */
      lifetimes: readonly (JsonValue | undefined)[]
    }
  | { kind: 'error'; message: Message }
  | { kind: 'failed'; failure: TargetFailure }

export type ListRequest = {
  session: TargetSession
  /** The client's request. */
  message: Message
  /** Member of the result with the items. */
  member: string
  cursor: string | undefined
  context: CallContext
  /** Returns an unused request id of the session. */
  newId(): string
  /** Adds a request to the client's flow. */
  add(asking: GatewayRequest): GatewayRequest
  onOther(message: Message, mark?: EventMark): boolean
}

/** Limits per request and target; further pages follow the next cursor. */
const maxPages = 64
const maxListChars = 8 * 1024 * 1024

/**
 * Reads the pages of one target's list. A target without the method has an empty list, since servers need not
 * implement unused methods.
 */
export async function readAllPages(listing: ListRequest): Promise<ListResult> {
  const items: string[] = []
  let cursor = listing.cursor
  let chars = 0
  const lifetimes: (JsonValue | undefined)[] = []
  for (let page = 0; page < maxPages && chars < maxListChars; page += 1) {
    const request = pageRequest(listing, cursor, page)
    const outcome = await readPage(listing, request)
    if (isUnknownMethod(outcome, request)) break
    if (outcome.kind === 'failed') return outcome
    const { message } = outcome
    const code = errorCodeOf(message)
    if (code !== undefined) return { kind: 'error', message }
    if (message.text.length > largeListChars) await yieldToEventLoop()
    const read = tryReadItems(message, listing.member)
    if (read.kind === 'failed') return read
    for (const item of read.items) {
      items.push(item)
      chars += item.length
    }
    lifetimes.push(read.ttlMs)
    // A repeated cursor would never end.
    if (read.next === undefined || read.next === cursor)
      return { kind: 'items', items, next: undefined, lifetimes }
    cursor = read.next
  }
  const next = items.length === 0 ? undefined : cursor
  return { kind: 'items', items, next, lifetimes }
}

function readPage(listing: ListRequest, request: Message): Promise<Outcome> {
  const { session, context, onOther: others, add } = listing
  const bounded: CallContext = { ...context, maxResponseBytes: maxListResponseBytes }
  return add(sendGatewayRequest(session, request, bounded, others)).outcome
}

/** The client's request for another page. Only the first page has its id, which the client may cancel. */
function pageRequest({ message, newId }: ListRequest, cursor: string | undefined, page: number): Message {
  const set = new Map<string, string>()
  const json = readTargetObject(message.text)
  if (page > 0) set.set('id', JSON.stringify(newId()))
  if (cursor !== undefined) {
    const params = readTargetObject(memberText(json, 'params') ?? '{}')
    set.set('params', editTopLevel(params, { set: new Map([['cursor', JSON.stringify(cursor)]]) }))
  }
  return set.size === 0 ? message : withText(message, editTopLevel(json, { set }))
}

/** Reads a page; an invalid page is a failure of its target. */
function tryReadItems(message: Message, member: string): PageItems | Extract<ListResult, { kind: 'failed' }> {
  try {
    return { kind: 'items', ...readPageItems(message, member) }
  } catch (error) {
    return { kind: 'failed', failure: { kind: 'error', error: asGatewayError(error) } }
  }
}

type PageItems = Page & { kind: 'items' }

/** `ttlMs`: lifetime of the list, in revision 2026-07-28. */
type Page = { items: readonly string[]; next: string | undefined; ttlMs: JsonValue | undefined }

/** Separates parsing and splitting of a page, which take up to 30 ms each. */
function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

function readPageItems(message: Message, member: string): Page {
  const list = readList(message, member)
  const nextCursor = list?.result.value['nextCursor']
  return {
    items: list?.texts ?? [],
    next: typeof nextCursor === 'string' && nextCursor !== '' ? nextCursor : undefined,
    ttlMs: list?.result.value['ttlMs'],
  }
}
