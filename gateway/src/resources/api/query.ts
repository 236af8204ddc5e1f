import { decodeCursor, encodeCursor } from '../../lib/json/cursor.ts'
import { isJsonObject, type JsonValue } from '../../lib/json/json.ts'
import type { Envelope } from '../change/change.ts'
import { nameIn } from '../hybrid/record.ts'
import { findKind } from '../kinds.ts'
import { type RecordQuery, readRecordQuery, recordParameters } from '../records/record-query.ts'

/** Query of a request to the API; absent parameters have their defaults. */
export type ApiQuery = {
  readonly kind: 'query'
  readonly dryRun: boolean
  /** Whether the response contains secrets. */
  readonly reveal: boolean
  readonly page: Page
  readonly filter: Filter | undefined
  /** Selection of a list with origins; undefined for lists of the database as specified. */
  readonly records: RecordQuery | undefined
  /** Whether parts of the value that equal those of a read are retained as stored. */
  readonly retain: boolean
}

export type Page = {
  /** Maximum number of records; undefined for all. */
  readonly limit: number | undefined
  /** The record before the first. */
  readonly after: RecordKey | undefined
}

type RecordKey = { readonly kind: string; readonly id: string }

type Filter = {
  readonly name: string | undefined
  /** Values of members of `value.metadata`. */
  readonly metadata: ReadonlyMap<string, string>
}

export type ApiUse = 'document' | 'schema' | 'text' | 'list' | 'read' | 'write' | 'remove' | 'import'

const parameters: Readonly<Record<ApiUse, readonly string[]>> = {
  document: [],
  schema: ['name'],
  text: ['dryRun'],
  list: ['limit', 'cursor', 'name', 'metadata.<field>', 'reveal', ...recordParameters],
  read: ['reveal'],
  write: ['dryRun', 'reveal', 'retain'],
  remove: ['dryRun'],
  import: ['import', 'dryRun', 'reveal'],
}

const maxLimit = 1_000
const metadataPrefix = 'metadata.'

/** Reads a query. Unknown and repeated parameters are invalid. */
export function readQuery(text: string, use: ApiUse): ApiQuery | InvalidQuery {
  const sent = new Map<string, string>()
  for (const [name, value] of new URLSearchParams(text)) {
    if (!isKnown(name, use)) return invalid(unknownParameter(name, use))
    if (sent.has(name)) return invalid(`${shown(name)} is in the query more than once`)
    sent.set(name, value)
  }
  for (const name of ['dryRun', 'reveal', 'import', 'retain']) {
    const value = sent.get(name)
    if (value !== undefined && value !== 'true' && value !== 'false') {
      return invalid(`${name} must be true or false`)
    }
  }
  if (use === 'import' && sent.get('import') !== 'true')
    return invalid('a PUT on all kinds needs import=true')
  const limit = sent.get('limit')
  if (limit !== undefined && !(/^[1-9]\d{0,3}$/.test(limit) && Number(limit) <= maxLimit)) {
    return invalid(`limit must be a number from 1 to ${maxLimit}`)
  }
  const records = readRecordQuery(sent, limit === undefined ? undefined : Number(limit))
  if (records !== undefined && 'kind' in records) return records
  const cursor = records === undefined ? sent.get('cursor') : undefined
  const after = cursor === undefined ? undefined : readCursor(cursor)
  if (cursor !== undefined && after === undefined) {
    return invalid('cursor must be the nextCursor of an answer')
  }
  return {
    kind: 'query',
    dryRun: sent.get('dryRun') === 'true',
    reveal: sent.get('reveal') === 'true',
    page: { limit: limit === undefined ? undefined : Number(limit), after },
    filter: filterOf(sent),
    records,
    retain: sent.get('retain') === 'true',
  }
}

export type InvalidQuery = { readonly kind: 'invalid'; readonly message: string }

function invalid(message: string): InvalidQuery {
  return { kind: 'invalid', message }
}

function isKnown(name: string, use: ApiUse): boolean {
  if (parameters[use].includes(name)) return !name.includes('<')
  return use === 'list' && name.startsWith(metadataPrefix) && name.length > metadataPrefix.length
}

function unknownParameter(name: string, use: ApiUse): string {
  const names =
    parameters[use].length === 0 ? 'there are none here' : `known are ${parameters[use].join(', ')}`
  return `unknown query parameter ${shown(name)}: ${names}`
}

function shown(name: string): string {
  return name.slice(0, 100)
}

function filterOf(sent: ReadonlyMap<string, string>): Filter | undefined {
  const name = sent.get('name')
  const fields = [...sent].filter(([field]) => field.startsWith(metadataPrefix))
  if (name === undefined && fields.length === 0) return undefined
  return {
    name,
    metadata: new Map(fields.map(([field, value]) => [field.slice(metadataPrefix.length), value])),
  }
}

/** Whether a record matches the filter. The name of a virtual key is `metadata.name`. */
export function passes(
  envelope: Pick<Envelope, 'kind' | 'name' | 'value'>,
  { name, metadata }: Filter,
): boolean {
  if (name !== undefined && nameOf(envelope) !== name) return false
  for (const [field, wanted] of metadata) if (metadataOf(envelope.value, field) !== wanted) return false
  return true
}

function nameOf({ kind, name, value }: Pick<Envelope, 'kind' | 'name' | 'value'>): string | undefined {
  if (name !== undefined) return name
  const row = findKind(kind)
  if (row === undefined || !isJsonObject(value)) return undefined
  return row.placement.kind === 'keys' ? metadataOf(value, 'name') : nameIn(row, value)
}

function metadataOf(value: JsonValue, field: string): string | undefined {
  const metadata = isJsonObject(value) ? value['metadata'] : undefined
  if (!isJsonObject(metadata) || !Object.hasOwn(metadata, field)) return undefined
  const found = metadata[field]
  return typeof found === 'object' ? undefined : String(found)
}

/** Cursor after a record. The order of lists, kinds and then ids, does not depend on later changes. */
export function cursorAfter({ kind, id }: RecordKey): string {
  return encodeCursor([kind, id])
}

function readCursor(text: string): RecordKey | undefined {
  const [kind, id] = decodeCursor(text, 2) ?? []
  return typeof kind === 'string' && typeof id === 'string' && findKind(kind) ? { kind, id } : undefined
}
