import { valuesOf } from '../../lib/bucket-map.ts'
import type { JsonValue } from '../../lib/json/json.ts'
import type { Envelope } from '../change/change.ts'
import { withId } from '../change/key-id.ts'
import { type Kind, kinds } from '../kinds.ts'
import { shadowKey } from './overlay.ts'
import { findKey, findNamed } from './plan-state.ts'
import type { KeyRecord, NamedRecord } from './record.ts'
import type { RecordIndex } from './record-index.ts'

/** The record at an address, as the API returns it. Records with unreadable secrets are not returned. */
export function findEnvelope(
  kind: Kind,
  address: string,
  index: RecordIndex,
  shadowed: ReadonlySet<string>,
): Envelope | undefined {
  if (kind.placement.kind === 'keys') {
    const key = findKey(address, index)
    return key && keyEnvelope(kind, key, shadowed)
  }
  const record = findNamed(kind, address, index)
  return record === undefined || record.isPlaceholder ? undefined : namedEnvelope(record, shadowed)
}

function namedEnvelope(record: NamedRecord, shadowed: ReadonlySet<string>): Envelope {
  const { kind, id, name, value, revision, createdAt, updatedAt } = record
  const stamps = { revision, createdAt, updatedAt, ...shadowMark(kind.name, id, shadowed) }
  return kind.placement.kind === 'policies'
    ? { kind: kind.name, id, name, value, ...stamps }
    : { kind: kind.name, id, value, ...stamps }
}

/** A virtual key as the API returns it, with its id in its metadata. */
function keyEnvelope(kind: Kind, record: KeyRecord, shadowed: ReadonlySet<string>): Envelope {
  const { id, item, sent, revision, createdAt, updatedAt } = record
  const value = sent === undefined ? asJson(item) : withId(id, sent)
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

/** All records, or those of one kind, in the order of kinds and then of ids; created on iteration. */
export function* envelopesOf(
  index: RecordIndex,
  shadowed: ReadonlySet<string>,
  only: Kind | undefined,
): Generator<Envelope> {
  for (const kind of only === undefined ? kinds : [only]) {
    if (kind.placement.kind === 'keys') {
      for (const key of byId(valuesOf(index.keysById))) yield keyEnvelope(kind, key, shadowed)
    } else {
      const records = index.ordered.filter((record) => record.kind === kind && record.isPlaceholder !== true)
      for (const record of byId(records)) yield namedEnvelope(record, shadowed)
    }
  }
}

/** Records in the order of ids. Sorted in groups by the first two characters, so that no step takes long. */
function* byId<T extends { readonly id: string }>(records: Iterable<T>): Generator<T> {
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

/** The guard: keys are parsed from JSON. */
function asJson(item: KeyRecord['item']): JsonValue {
  return item as unknown as JsonValue
}
