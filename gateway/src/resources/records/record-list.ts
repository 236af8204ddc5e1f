import { isJsonObject, type JsonValue } from '../../lib/json/json.ts'
import type { YieldPoint } from '../../lib/scheduling/yielding.ts'
import { childShapes, type Shape } from '../../schema/shape.ts'
import { nameIn } from '../hybrid/record.ts'
import { type Kind, kinds, shapesOf } from '../kinds.ts'
import type { Resources } from '../resources.ts'
import { maskText } from '../secrets/secret-text.ts'
import { type RecordOrder, type RecordPosition, type RecordQuery, writeRecordCursor } from './record-query.ts'
import { type ConfigRecord, idOfRecord, policyName, storedValue, writtenValue } from './records.ts'
import { selectPage } from './select-page.ts'

export type RecordPage = {
  readonly records: readonly ConfigRecord[]
  readonly nextCursor: string | undefined
  /** Number of records on all pages. */
  readonly total: number
}

/** Selects a page of records. Secrets are neither searched nor compared. */
export async function pageOfRecords(
  records: Iterable<ConfigRecord>,
  { search, origin, sort, limit, after }: RecordQuery,
  { resources, yieldPoint }: { readonly resources: Resources; readonly yieldPoint: YieldPoint },
): Promise<RecordPage> {
  const ranks = new Map(kinds.map((kind, rank) => [kind, rank]))
  // Values of variables are neither compared nor searched, only their references.
  const hasReferences = resources.effective().fileIndex?.references !== undefined
  const valueIn = (record: ConfigRecord) =>
    hasReferences ? writtenValue(record, resources) : bareValue(record)
  const sortValue = sortBy(sort, valueIn)
  const sign = sort.isDescending ? -1 : 1
  const { items, end, total } = await selectPage<ConfigRecord, RecordPosition>(
    records,
    {
      limit,
      after,
      compare: (one, other) => sign * comparePositions(one, other),
      positionOf(record) {
        if (origin !== undefined && record.source !== origin) return undefined
        const id = idOfRecord(record)
        if (search !== undefined && !matches(record, id, search, valueIn)) return undefined
        return [sortValue(record, id), ranks.get(record.kind) ?? 0, id, record.source]
      },
    },
    yieldPoint,
  )
  return { records: items, nextCursor: end && writeRecordCursor(end, sort), total }
}

/** Order by code units, which is fast and the same everywhere; numbers before texts. */
function comparePositions(one: RecordPosition, other: RecordPosition): number {
  for (const [index, value] of one.entries()) {
    const against = other[index] ?? 0
    if (value === against) continue
    if (typeof value !== typeof against) return typeof value === 'number' ? -1 : 1
    return value < against ? -1 : 1
  }
  return 0
}

/** The value without the copies that a response needs: there may be 100,000 records. */
function bareValue(record: ConfigRecord): JsonValue {
  if (record.source === 'database' || record.kind.placement.kind !== 'keys') return storedValue(record)
  // The guard: the configuration is parsed from YAML or JSON.
  return record.part.node as JsonValue
}

/** Name of a record, as lists display it. */
function nameOfRecord(record: ConfigRecord): string {
  const policy = policyName(record)
  if (policy !== undefined) return policy
  if (record.source === 'file' && record.part.name !== undefined) return record.part.name
  const value = bareValue(record)
  if (!isJsonObject(value)) return ''
  if (record.kind.placement.kind !== 'keys') return nameIn(record.kind, value) ?? ''
  const { metadata } = value
  const name = isJsonObject(metadata) ? metadata['name'] : undefined
  return typeof name === 'string' ? name : ''
}

/** Records without a value are before all others in ascending order. */
function sortBy(
  { field }: RecordOrder,
  valueIn: (record: ConfigRecord) => JsonValue,
): (record: ConfigRecord, id: string) => string | number {
  const [first = ''] = field
  if (field.length === 1) {
    if (first === 'id') return (_record, id) => id
    if (first === 'name') return (record) => nameOfRecord(record)
    if (first === 'createdAt' || first === 'updatedAt')
      return (record) => (record.source === 'database' ? (record.envelope[first] ?? '') : '')
  }
  const secrets = new Map<Kind, boolean>()
  return (record) => {
    const isFixed = record.kind.placement.kind !== 'policies'
    const isSecret = (isFixed ? secrets.get(record.kind) : undefined) ?? isSecretField(record, field)
    if (isFixed) secrets.set(record.kind, isSecret)
    return isSecret ? '' : sortable(valueIn(record), field)
  }
}

function isSecretField(record: ConfigRecord, field: readonly string[]): boolean {
  let shapes = shapesOf(record.kind, policyName(record))
  for (const step of field) {
    if (hasSecret(shapes)) return true
    shapes = childShapes(shapes, step)
  }
  return hasSecret(shapes)
}

function hasSecret(shapes: readonly Shape[]): boolean {
  return shapes.some(({ meta }) => meta.secret === true)
}

function sortable(value: JsonValue, field: readonly string[]): string | number {
  let here: JsonValue | undefined = value
  for (const step of field) here = isJsonObject(here) && Object.hasOwn(here, step) ? here[step] : undefined
  if (typeof here === 'number') return here
  if (typeof here === 'boolean') return String(here)
  return typeof here === 'string' ? shownText(here, field.at(-1) ?? '') : ''
}

/** Texts without marks cannot be addresses or assignments. */
const plain = /^[\w .]{0,100}$/

function shownText(text: string, name: string): string {
  return plain.test(text) && !/key|token|secret|auth|pass|cookie|session|signature|credential/i.test(name)
    ? text
    : maskText(text, name)
}

/** Levels of a value that are searched. */
const searchedDepth = 4

/** Whether the id, the name or a text of the value contains a text, secrets excluded. */
function matches(
  record: ConfigRecord,
  id: string,
  search: string,
  valueIn: (record: ConfigRecord) => JsonValue,
): boolean {
  if (id.toLowerCase().includes(search) || nameOfRecord(record).toLowerCase().includes(search)) return true
  const shapes = () => shapesOf(record.kind, policyName(record))
  return contains(valueIn(record), { search, shapes, name: '', depth: 0 })
}

type Place = {
  readonly search: string
  /** Looked up for matches only, which are rare. */
  shapes(): readonly Shape[]
  readonly name: string
  readonly depth: number
}

function contains(value: JsonValue, { search, shapes, name, depth }: Place): boolean {
  if (typeof value === 'string') {
    if (!value.toLowerCase().includes(search)) return false
    return !hasSecret(shapes()) && maskText(value, name).toLowerCase().includes(search)
  }
  if (typeof value === 'number') return String(value).includes(search)
  if (typeof value !== 'object' || value === null || depth >= searchedDepth) return false
  if (Array.isArray(value)) {
    // The argument after a flag such as `--token` is a secret, so lists of arguments are searched as masked.
    return value.some((item, index) => {
      const before = value[index - 1]
      if (typeof before === 'string' && before.startsWith('-')) return false
      return contains(item, { search, shapes: () => childShapes(shapes(), 0), name, depth: depth + 1 })
    })
  }
  for (const key of Object.keys(value)) {
    const member = value[key]
    if (member === undefined) continue
    const below = () => (hasSecret(shapes()) ? shapes() : childShapes(shapes(), key))
    if (contains(member, { search, shapes: below, name: key, depth: depth + 1 })) return true
  }
  return false
}
