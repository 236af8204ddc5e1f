import { isJsonObject, type JsonObject, type JsonValue } from '../../lib/json/json.ts'
import { shadowKey } from '../hybrid/overlay.ts'
import type { KeyRecord, NamedRecord, RecordIndex } from '../hybrid/record-index.ts'
import { type Kind, kinds } from '../kinds.ts'
import type { Envelope } from './change.ts'

/** A named record as the API shows it. */
export function namedEnvelope(record: NamedRecord, shadowed: ReadonlySet<string>): Envelope {
  const { kind, id, name, value, revision, createdAt, updatedAt } = record
  const stamps = { revision, createdAt, updatedAt, ...shadowMark(kind.name, id, shadowed) }
  return kind.placement.kind === 'policies'
    ? { kind: kind.name, id, name, value, ...stamps }
    : { kind: kind.name, id, value, ...stamps }
}

/** A virtual key as the API shows it, with its id in its metadata. */
export function keyEnvelope(kind: Kind, record: KeyRecord, shadowed: ReadonlySet<string>): Envelope {
  const { id, item, sent, revision, createdAt, updatedAt } = record
  const value = sent === undefined ? plain(item) : withId(id, sent)
  return {
    kind: kind.name,
    id,
    value,
    revision,
    createdAt,
    updatedAt,
    ...shadowMark(kind.name, id, shadowed),
  }
}

/** A key's value with its id where the API shows it. */
export function withId(id: string, value: JsonObject): JsonObject {
  const { metadata } = value
  return { ...value, metadata: { ...(isJsonObject(metadata) ? metadata : {}), id } }
}

/** All records, or those of one kind, in the order of kinds and then of ids. Made one by one, as they are asked for. */
export function* envelopesOf(
  known: RecordIndex,
  shadowed: ReadonlySet<string>,
  only: Kind | undefined,
): Generator<Envelope> {
  for (const kind of only === undefined ? kinds : [only]) {
    if (kind.placement.kind === 'keys') {
      for (const key of byId(known.keys)) yield keyEnvelope(kind, key, shadowed)
    } else {
      const records = known.ordered.filter((record) => record.kind === kind && record.isPlaceholder !== true)
      for (const record of byId(records)) yield namedEnvelope(record, shadowed)
    }
  }
}

/** In the order of ids, of which only as many are sorted at a time as begin alike. */
function* byId<T extends { readonly id: string }>(records: readonly T[]): Generator<T> {
  const groups = new Map<number, T[]>()
  for (const record of records) {
    const { id } = record
    const start = id.charCodeAt(0) * 65_536 + (id.charCodeAt(1) || 0)
    const group = groups.get(start)
    if (group) group.push(record)
    else groups.set(start, [record])
  }
  for (const [, group] of [...groups].sort(([one], [other]) => one - other)) {
    yield* group.sort((one, other) => (one.id < other.id ? -1 : 1))
  }
}

function shadowMark(kind: string, id: string, shadowed: ReadonlySet<string>): { shadowed?: true } {
  return shadowed.has(shadowKey(kind, id)) ? { shadowed: true } : {}
}

/** A key came from JSON, so it is JSON. */
function plain(item: KeyRecord['item']): JsonValue {
  return item as unknown as JsonValue
}
