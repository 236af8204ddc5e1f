import { decodeCursor, encodeCursor } from '../../lib/json/cursor.ts'
import type { YieldPoint } from '../../lib/scheduling/yielding.ts'
import { parseTimestamp } from '../../lib/timestamp.ts'
import { type KeyEntry, type KeyState, metadataText, stateOf } from './key-entries.ts'

/** Selection and order of listed keys. */
export type KeyQuery = {
  readonly kind: 'query'
  /** Part of the id, name, user or group, in lower case. */
  readonly search: string | undefined
  readonly state: KeyState | undefined
  readonly sort: SortField
  readonly isDescending: boolean
  readonly limit: number
  readonly after: Position | undefined
}

export type SortField = (typeof sortFields)[number]

/** Place in an order: value of the sort field, then id and scope. */
export type Position = { readonly value: string | number; readonly id: string; readonly scope: string }

export type KeyPage = {
  readonly entries: readonly KeyEntry[]
  /** Cursor of the next page, if there is one. */
  readonly next: string | undefined
}

const sortFields = ['id', 'name', 'user', 'group', 'expiresAt'] as const
const states = ['active', 'expired', 'disabled'] as const
const defaultLimit = 100
const maxLimit = 1_000
const maxSearchLength = 200

/** Query parameters of the list of keys. */
export const keyQueryParameters = ['search', 'state', 'sort', 'limit', 'cursor'] as const

export type InvalidKeyQuery = { readonly kind: 'invalid'; readonly message: string }

export function readKeyQuery(sent: ReadonlyMap<string, string>): KeyQuery | InvalidKeyQuery {
  const search = sent.get('search')
  if (search !== undefined && search.length > maxSearchLength)
    return invalid(`search must have at most ${maxSearchLength} characters`)
  const stated = sent.get('state')
  const state = states.find((known) => known === stated)
  if (stated !== undefined && state === undefined) return invalid(`state must be ${states.join(', ')}`)
  const order = sent.get('sort') ?? 'id'
  const isDescending = order.startsWith('-')
  const sort = sortFields.find((field) => field === order.slice(isDescending ? 1 : 0))
  if (sort === undefined)
    return invalid(`sort must be ${sortFields.join(', ')}, with a leading - for descending order`)
  const limit = sent.get('limit') ?? String(defaultLimit)
  if (!/^[1-9]\d{0,3}$/.test(limit) || Number(limit) > maxLimit)
    return invalid(`limit must be a number from 1 to ${maxLimit}`)
  const cursor = sent.get('cursor')
  const after = cursor === undefined ? undefined : readCursor(cursor, order)
  if (cursor !== undefined && after === undefined)
    return invalid('cursor must be the nextCursor of a response with the same sort')
  return {
    kind: 'query',
    search: search?.toLowerCase(),
    state,
    sort,
    isDescending,
    limit: Number(limit),
    after,
  }
}

function invalid(message: string): InvalidKeyQuery {
  return { kind: 'invalid', message }
}

type Placed = { readonly entry: KeyEntry; readonly position: Position }

/**
 * Selects a page in one pass. The page is sorted, not the keys: work between two yields is bounded with any
 * number of keys.
 */
export async function selectPage(
  entries: Iterable<KeyEntry>,
  query: KeyQuery,
  nowMs: number,
  yieldPoint: YieldPoint,
): Promise<KeyPage> {
  const { sort, isDescending, limit, after } = query
  const sign = isDescending ? -1 : 1
  const order = (one: Placed, other: Placed) => sign * compare(one.position, other.position)
  let page: Placed[] = []
  let last: Position | undefined
  for (const entry of entries) {
    const pause = yieldPoint()
    if (pause) await pause
    if (!passes(entry, query, nowMs)) continue
    const position = { value: sortValue(entry, sort), id: entry.id, scope: entry.scope }
    if (after !== undefined && sign * compare(position, after) <= 0) continue
    if (last !== undefined && sign * compare(position, last) > 0) continue
    page.push({ entry, position })
    if (page.length < 2 * (limit + 1)) continue
    page = page.sort(order).slice(0, limit + 1)
    last = page.at(-1)?.position
  }
  page.sort(order)
  const shown = page.slice(0, limit)
  const end = page.length > limit ? shown.at(-1)?.position : undefined
  return { entries: shown.map(({ entry }) => entry), next: end && writeCursor(end, query) }
}

function passes({ id, record }: KeyEntry, { search, state }: KeyQuery, nowMs: number): boolean {
  if (state !== undefined && stateOf(record, nowMs) !== state) return false
  if (search === undefined) return true
  return [id, ...searched.map((field) => metadataText(record, field))].some((text) =>
    text.toLowerCase().includes(search),
  )
}

const searched = ['name', 'user', 'group']

/** Keys without an end are after all others. */
function sortValue({ id, record }: KeyEntry, sort: SortField): string | number {
  switch (sort) {
    case 'id':
      return id
    case 'expiresAt':
      return (record.expiresAt && parseTimestamp(record.expiresAt)) || Number.MAX_SAFE_INTEGER
    default:
      return metadataText(record, sort)
  }
}

/** Order by code units, which is fast and the same everywhere. */
function compare(one: Position, other: Position): number {
  if (one.value !== other.value) return one.value < other.value ? -1 : 1
  if (one.id !== other.id) return one.id < other.id ? -1 : 1
  return one.scope < other.scope ? -1 : Number(one.scope > other.scope)
}

function writeCursor({ value, id, scope }: Position, { sort, isDescending }: KeyQuery): string {
  const order = `${isDescending ? '-' : ''}${sort}`
  return encodeCursor([order, value, id, scope])
}

function readCursor(text: string, order: string): Position | undefined {
  const [sentOrder, value, id, scope] = decodeCursor(text, 4) ?? []
  const isValue = order.endsWith('expiresAt') ? typeof value === 'number' : typeof value === 'string'
  if (sentOrder !== order || !isValue || typeof id !== 'string' || typeof scope !== 'string') return undefined
  return { value: value as string | number, id, scope }
}
