import { decodeCursor, encodeCursor } from '../../lib/json/cursor.ts'

/** Selection and order of a list of records with their origins. */
export type RecordQuery = {
  /** Part of the id, the name, or a text of the value, in lower case. */
  readonly search: string | undefined
  readonly origin: 'file' | 'database' | undefined
  readonly sort: RecordOrder
  readonly limit: number
  readonly after: RecordPosition | undefined
}

export type RecordOrder = {
  /** `id`, `name`, `createdAt`, `updatedAt`, or the path of a member of the value. */
  readonly field: readonly string[]
  readonly isDescending: boolean
  /** As sent. */
  readonly text: string
}

/** Place in an order: value of the field, then rank of the kind, id and source. */
export type RecordPosition = readonly [value: string | number, rank: number, id: string, source: string]

/** Parameters of lists with origins. Any of them selects this form of the list. */
export const recordParameters = ['search', 'sort', 'origin'] as const

const defaultLimit = 100
const maxSearchLength = 200
const maxSortLength = 200
const fieldForm = /^-?[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*){0,9}$/

export type InvalidRecordQuery = { readonly kind: 'invalid'; readonly message: string }

/** Reads the parameters of a list with origins; undefined for other lists. */
export function readRecordQuery(
  sent: ReadonlyMap<string, string>,
  limit: number | undefined,
): RecordQuery | InvalidRecordQuery | undefined {
  if (!recordParameters.some((name) => sent.has(name))) return undefined
  const search = sent.get('search')
  if (search !== undefined && search.length > maxSearchLength)
    return invalid(`search must have at most ${maxSearchLength} characters`)
  const origin = sent.get('origin') ?? 'all'
  if (origin !== 'all' && origin !== 'file' && origin !== 'database')
    return invalid('origin must be all, file or database')
  const text = sent.get('sort') ?? 'name'
  if (text.length > maxSortLength || !fieldForm.test(text))
    return invalid('sort must be a field such as name or params.model, with a leading - for descending order')
  const isDescending = text.startsWith('-')
  const sort = { field: (isDescending ? text.slice(1) : text).split('.'), isDescending, text }
  const cursor = sent.get('cursor')
  const after = cursor === undefined ? undefined : readCursor(cursor, text)
  if (cursor !== undefined && after === undefined)
    return invalid('cursor must be the nextCursor of a response with the same sort')
  return {
    search: search === undefined || search === '' ? undefined : search.toLowerCase(),
    origin: origin === 'all' ? undefined : origin,
    sort,
    limit: limit ?? defaultLimit,
    after,
  }
}

function invalid(message: string): InvalidRecordQuery {
  return { kind: 'invalid', message }
}

export function writeRecordCursor(position: RecordPosition, { text }: RecordOrder): string {
  return encodeCursor([text, ...position])
}

function readCursor(cursor: string, order: string): RecordPosition | undefined {
  const [sentOrder, value, rank, id, source] = decodeCursor(cursor, 5) ?? []
  const isValue = typeof value === 'number' || typeof value === 'string'
  if (sentOrder !== order || !isValue || typeof rank !== 'number') return undefined
  return typeof id === 'string' && typeof source === 'string' ? [value, rank, id, source] : undefined
}
