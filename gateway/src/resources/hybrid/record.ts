import type { ConfigTree } from '../../config/load/validate.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../lib/json/json.ts'
import {
  type ApiKeyRecord,
  apiKeyRecordSchema,
  checkRecord,
  recordDigest,
} from '../../policies/api-key/record.ts'
import { check } from '../../schema/check.ts'
import { list } from '../../schema/dsl.ts'
import { namedId } from '../change/identity.ts'
import { withoutId } from '../change/key-id.ts'
import { findKind, isKeyPolicy, isSingleton, type Kind, singletonName } from '../kinds.ts'
import type { StoredResource } from '../stores/store.ts'

type RecordVersion = {
  readonly id: string
  /** Assigned once more, when a planned record has been stored. */
  revision: number
  createdAt: string
  updatedAt: string
}

/** A record with a name. */
export type NamedRecord = RecordVersion & {
  readonly kind: Kind
  readonly name: string
  /** The value as sent and returned by the API. */
  readonly value: JsonValue
  /** The entry of the configuration. */
  readonly item: unknown
  /** Its secrets cannot be decrypted: the value has random texts in their place and is not returned. */
  readonly isPlaceholder?: boolean
}

/** A virtual key. There may be 100,000, so nothing is stored twice. */
export type KeyRecord = RecordVersion & {
  readonly item: ApiKeyRecord
  /** The value as sent, if it differs from the item. */
  readonly sent: JsonObject | undefined
  readonly digest: string
}

/** Expands references to allowed environment variables in a value. Variables in `missing` are not set. */
export type Expand = (value: JsonValue) => { value: JsonValue; missing: readonly string[] }

/** The value of a record in the store. Policies, which may be lists, are stored as `{ name, policy }`. */
export function toStored({ placement }: Kind, name: string, value: JsonValue): JsonObject {
  if (placement.kind === 'policies') return { name, policy: value }
  return isJsonObject(value) ? value : {}
}

/** Name of a record by its value; undefined if there is none. */
export function nameIn(kind: Kind, value: ConfigTree): string | undefined {
  const { placement } = kind
  if (isSingleton(kind)) return singletonName
  const members = placement.kind === 'list' ? placement.identity : ['name']
  for (const member of members) {
    const name = Object.hasOwn(value, member) ? value[member] : undefined
    // `__proto__` cannot be a key of a plain object.
    if (typeof name === 'string' && name !== '' && name !== '__proto__') return name
  }
  return undefined
}

export function readStored(
  kind: Kind,
  stored: StoredResource,
  expand: Expand,
): NamedRecord | KeyRecord | string {
  return kind.placement.kind === 'keys' ? readKey(stored, expand) : readNamed(kind, stored, expand)
}

/**
 * A record whose secrets cannot be decrypted, with random texts in their place. It remains in the
 * configuration, which could otherwise lack a rule or a guard; its credentials are valid nowhere.
 */
export function placeholderOf(stored: StoredResource, expand: Expand): NamedRecord | undefined {
  const kind = findKind(stored.kind)
  if (kind === undefined || kind.placement.kind === 'keys') return undefined
  const record = readNamed(kind, stored, expand)
  return typeof record === 'string' ? undefined : { ...record, isPlaceholder: true }
}

/** A record is identified by its id; it may have been renamed since the id was derived from its name. */
function readNamed(kind: Kind, stored: StoredResource, expand: Expand): NamedRecord | string {
  const { id, revision, createdAt, updatedAt } = stored
  const policy = kind.placement.kind === 'policies' ? stored.value['policy'] : undefined
  const name = nameIn(kind, stored.value)
  if (name === undefined || (kind.placement.kind === 'policies' && policy === undefined)) {
    return 'its value is not valid for its kind'
  }
  // Singletons and policies cannot be renamed.
  const isFixed = isSingleton(kind) || kind.placement.kind === 'policies'
  if (isFixed && namedId(kind.name, name) !== id) return 'its id does not match its name'
  const value = policy ?? stored.value
  const expanded = expand(value)
  if (expanded.missing.length > 0) return missingVariables(expanded.missing)
  return { id, revision, createdAt, updatedAt, kind, name, value, item: itemOf(kind, name, expanded.value) }
}

/** The configuration entry of a named record. */
function itemOf(kind: Kind, name: string, value: JsonValue): unknown {
  if (!isJsonObject(value)) return value
  if (isKeyPolicy(kind, name)) return { ...value, keys: [] }
  if (kind.placement.kind !== 'map') return value
  const { name: _, ...rest } = value
  return rest
}

function readKey(stored: StoredResource, expand: Expand): KeyRecord | string {
  const { id, value, revision, createdAt } = stored
  // One text instead of two equal ones.
  const updatedAt = stored.updatedAt === createdAt ? createdAt : stored.updatedAt
  const expanded = expand(value)
  if (expanded.missing.length > 0) return missingVariables(expanded.missing)
  const item = keyItem(id, expanded.value)
  const digest = item === undefined ? undefined : recordDigest(item)
  if (item === undefined || digest === undefined || !isUsable(item)) return 'its value is not a virtual key'

  const sent = expanded.value === value ? undefined : value
  return { id, revision, createdAt, updatedAt, item, sent, digest }
}

function isUsable(item: ApiKeyRecord): boolean {
  let usable = true
  checkRecord(item, () => {
    usable = false
  })
  return usable
}

function missingVariables(names: readonly string[]): string {
  return names.map((name) => `environment variable not found: ${name}`).join('; ')
}

/** The configuration entry of a key, with its id in its metadata. Undefined if the value is not a key. */
export function keyItem(id: string, value: unknown): ApiKeyRecord | undefined {
  if (!isKeyRecord(value)) return undefined
  return { ...value, metadata: { ...value.metadata, id } }
}

/** The value of a virtual key in the store. */
export function storedKey({ id, item, sent }: KeyRecord): JsonObject {
  // The guard: keys are parsed from JSON.
  return sent ?? withoutId(id, item as unknown as JsonObject)
}

function isKeyRecord(value: unknown): value is ApiKeyRecord {
  return check(apiKeyRecordSchema, value).kind === 'valid'
}

/** Issues of one virtual key. */
export function keyIssues(value: unknown): string[] {
  // Checked as an item of a list, as in the configuration, so that messages have the same paths.
  const checked = check(keyList, [value])
  if (checked.kind === 'mistakes') return checked.mistakes.map(({ message }) => message)
  const found: string[] = []
  for (const record of checked.value) checkRecord(record, (_path, message) => found.push(message))
  return found
}

const keyList = list(apiKeyRecordSchema, { doc: 'Virtual keys.' })

export function byAge(one: RecordVersion, other: RecordVersion): number {
  if (one.createdAt !== other.createdAt) return one.createdAt < other.createdAt ? -1 : 1
  return one.id < other.id ? -1 : Number(one.id > other.id)
}

/** Key of a stored record: kind and id. */
export function recordKey(kind: string, id: string): string {
  return `${kind} ${id}`
}
