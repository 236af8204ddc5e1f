import { isJsonObject, type JsonObject, type JsonValue } from '../lib/json.ts'
import type { Envelope } from './change.ts'
import { type Kind, kinds } from './kinds.ts'
import type { KeyRecord, Known, NamedRecord } from './known.ts'
import { shadowKey } from './overlay.ts'

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

/** All records, or those of one kind, in the order of kinds and then of ids. */
export function envelopesOf(known: Known, shadowed: ReadonlySet<string>, only: Kind | undefined): Envelope[] {
  const wanted = only === undefined ? kinds : [only]
  return wanted.flatMap((kind) => {
    const envelopes =
      kind.placement.kind === 'keys'
        ? known.keys.map((key) => keyEnvelope(kind, key, shadowed))
        : known.ordered.flatMap((record) => (record.kind === kind ? [namedEnvelope(record, shadowed)] : []))
    return envelopes.sort((one, other) => (one.id < other.id ? -1 : 1))
  })
}

function shadowMark(kind: string, id: string, shadowed: ReadonlySet<string>): { shadowed?: true } {
  return shadowed.has(shadowKey(kind, id)) ? { shadowed: true } : {}
}

/** A key came from JSON, so it is JSON. */
function plain(item: KeyRecord['item']): JsonValue {
  return item as unknown as JsonValue
}
