import type { ConfigTree } from '../../config/load/validate.ts'
import { type BucketMap, bucketMap, lookUp, withEntries } from '../../lib/bucket-map.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../lib/json/json.ts'
import { runToCompletion } from '../../lib/scheduling/yielding.ts'
import {
  type ApiKeyRecord,
  apiKeyRecordSchema,
  checkRecord,
  recordDigest,
} from '../../policies/api-key/record.ts'
import { check } from '../../schema/check.ts'
import { list } from '../../schema/dsl.ts'
import { namedId } from '../change/identity.ts'
import { findKind, isKeyPolicy, isSingleton, type Kind, singletonName } from '../kinds.ts'
import type { StoreDelta, StoredResource } from '../stores/store.ts'

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

/** A stored record that is not part of the configuration, with the reason. */
export type Problem = {
  readonly kind: string
  readonly id: string
  readonly reason: string
  /** Whether the record may be a restriction: without it, the configuration must not be active. */
  readonly blocking: boolean
}

/** Records of the database as last read. Immutable; an update of a few of 100,000 keys is cheap. */
export type RecordIndex = {
  readonly generation: number
  /** By `recordKey`: ids are unique within a kind. */
  readonly named: ReadonlyMap<string, NamedRecord>
  /** By `nameKey`. The oldest of records with the same name. */
  readonly byName: ReadonlyMap<string, NamedRecord>
  /** The records of `byName` in order of creation: the same at every replica. */
  readonly ordered: readonly NamedRecord[]
  /** In order of creation as far as possible: a change does not move other keys. */
  readonly keys: readonly KeyRecord[]
  /** Their items in the same order: the list in the configuration. */
  readonly keyItems: readonly ApiKeyRecord[]
  readonly keysById: BucketMap<KeyRecord>
  readonly keysByDigest: BucketMap<KeyRecord>
  readonly problems: ReadonlyMap<string, Problem>
}

export const emptyIndex: RecordIndex = {
  generation: -1,
  named: new Map(),
  byName: new Map(),
  ordered: [],
  keys: [],
  keyItems: [],
  keysById: bucketMap(),
  keysByDigest: bucketMap(),
  problems: new Map(),
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

/**
 * Index after a delta. Unchanged records remain the same objects. `own` are keys (`recordKey`) of records
 * that the index has already with the values of the delta; only their revision and times are updated.
 */
export function updateIndex(
  known: RecordIndex,
  delta: StoreDelta,
  expand: Expand,
  own: ReadonlySet<string> = noKeys,
): RecordIndex {
  return runToCompletion(indexUpdateSteps(known, delta, expand, own))
}

/** Steps of `updateIndex`, one per record, so that traffic continues during thousands. */
export function* indexUpdateSteps(
  known: RecordIndex,
  delta: StoreDelta,
  expand: Expand,
  own: ReadonlySet<string> = noKeys,
): Generator<void, RecordIndex> {
  // Their final times may change their position among the records of other replicas.
  const isReordered =
    own.size > 0 &&
    delta.changed.filter(
      (stored) => own.has(recordKey(stored.kind, stored.id)) && updateVersion(known, stored),
    ).length > 0
  const base = delta.complete ? retainUnchanged(known, delta) : known
  let named: Map<string, NamedRecord> | undefined
  const changeNamed = () => {
    named ??= new Map(base.named)
    return named
  }
  let problems: Map<string, Problem> | undefined
  const changeProblems = () => {
    problems ??= new Map(base.problems)
    return problems
  }
  const solve = (kind: string, id: string) => {
    const key = recordKey(kind, id)
    if ((problems ?? base.problems).has(key)) changeProblems().delete(key)
  }
  const keyChanges: KeyChange[] = []

  const forget = (kind: string, id: string) => {
    solve(kind, id)
    if (findKind(kind)?.placement.kind === 'keys') keyChanges.push({ id, record: undefined })
    else if ((named ?? base.named).has(recordKey(kind, id))) changeNamed().delete(recordKey(kind, id))
  }
  const trouble = (kind: string, id: string, reason: string) => {
    forget(kind, id)
    const blocking = findKind(kind) !== undefined && findKind(kind)?.placement.kind !== 'keys'
    changeProblems().set(recordKey(kind, id), { kind, id, reason, blocking })
  }

  for (const { kind, id } of delta.removed) forget(kind, id)
  for (const { partial, ...record } of delta.unreadable) {
    yield
    const { kind, id, reason } = record
    trouble(kind, id, reason)
    const standIn = partial && placeholderOf({ ...record, value: partial }, expand)
    if (standIn === undefined) continue
    changeNamed().set(recordKey(kind, id), standIn)
    changeProblems().set(recordKey(kind, id), { kind, id, reason, blocking: false })
  }
  for (const stored of delta.changed) {
    yield
    const kind = findKind(stored.kind)
    if (kind === undefined) {
      trouble(stored.kind, stored.id, 'its kind is unknown: it was stored by another version of Tollgate')
      continue
    }
    if (isUnchanged(known, kind, stored)) continue
    const record = readStored(kind, stored, expand)
    solve(stored.kind, stored.id)
    if (typeof record === 'string') trouble(stored.kind, stored.id, record)
    else if ('digest' in record) keyChanges.push({ id: record.id, record })
    else changeNamed().set(recordKey(stored.kind, record.id), record)
  }
  yield
  const next = {
    ...withKeys(base, keyChanges),
    generation: delta.generation,
    ...(named === undefined ? {} : { named }),
    ...(problems === undefined ? {} : { problems }),
  }
  return named === undefined && !isReordered && !delta.complete ? next : withNames(next)
}

export function nameKey(kind: string, name: string): string {
  return `${kind} ${name}`
}

const sameName = 'an older record has the same name'

/**
 * Computes order and names of the named records. A record with the name of an older one is a problem until
 * one is renamed.
 */
function withNames(known: RecordIndex): RecordIndex {
  const byName = new Map<string, NamedRecord>()
  const problems = new Map([...known.problems].filter(([, { reason }]) => reason !== sameName))
  const ordered = [...known.named.values()].sort(byAge).filter((record) => {
    const { id, kind, name } = record
    const key = nameKey(kind.name, name)
    if (!byName.has(key)) {
      byName.set(key, record)
      return true
    }
    problems.set(recordKey(kind.name, id), { kind: kind.name, id, reason: sameName, blocking: true })
    return false
  })
  const hasSameOrder = isSameList(ordered, known.ordered)
  return {
    ...known,
    ordered: hasSameOrder ? known.ordered : ordered,
    byName: hasSameOrder ? known.byName : byName,
    problems: isSameList([...problems.keys()], [...known.problems.keys()]) ? known.problems : problems,
  }
}

function isSameList(one: readonly unknown[], other: readonly unknown[]): boolean {
  return one.length === other.length && one.every((item, at) => item === other[at])
}

const noKeys: ReadonlySet<string> = new Set()

/** The record of a kind by id. */
export function findRecord(
  known: RecordIndex,
  { placement, name }: Kind,
  id: string,
): NamedRecord | KeyRecord | undefined {
  if (placement.kind === 'keys') return lookUp(known.keysById, id)
  return known.named.get(recordKey(name, id))
}

/**
 * Updates revision and times of a record that this process has stored and not published yet. True if it has a
 * name.
 */
function updateVersion(
  known: RecordIndex,
  { kind: name, id, revision, createdAt, updatedAt }: StoredResource,
): boolean {
  const kind = findKind(name)
  const record = kind && findRecord(known, kind, id)
  if (record === undefined) return false
  Object.assign(record, { revision, createdAt, updatedAt })
  return 'name' in record
}

function readStored(kind: Kind, stored: StoredResource, expand: Expand): NamedRecord | KeyRecord | string {
  return kind.placement.kind === 'keys' ? readKey(stored, expand) : readNamed(kind, stored, expand)
}

/**
 * A record whose secrets cannot be decrypted, with random texts in their place. It remains in the
 * configuration, which could otherwise lack a rule or a guard; its credentials are valid nowhere.
 */
function placeholderOf(stored: StoredResource, expand: Expand): NamedRecord | undefined {
  const kind = findKind(stored.kind)
  if (kind === undefined || kind.placement.kind === 'keys') return undefined
  const record = readNamed(kind, stored, expand)
  return typeof record === 'string' ? undefined : { ...record, isPlaceholder: true }
}

/**
 * The index reduced to the records that a complete delta contains in the same state, so that their items
 * remain the same objects.
 */
function retainUnchanged(known: RecordIndex, { changed, generation }: StoreDelta): RecordIndex {
  const same = changed.flatMap((stored) => {
    const kind = findKind(stored.kind)
    return kind !== undefined && isUnchanged(known, kind, stored) ? [stored] : []
  })
  const ids = new Set(same.map(({ kind, id }) => recordKey(kind, id)))
  const keys = known.keys.filter(({ id }) => ids.has(recordKey(keyKind, id)))
  const kept = [...known.named.values()].filter(({ id, kind }) => ids.has(recordKey(kind.name, id)))
  return {
    generation,
    named:
      kept.length === known.named.size
        ? known.named
        : new Map(kept.map((record) => [recordKey(record.kind.name, record.id), record])),
    byName: known.byName,
    ordered: known.ordered,
    keys,
    keyItems: keys.map(({ item }) => item),
    keysById: bucketMap(keys.map((key) => [key.id, key])),
    keysByDigest: bucketMap(keys.map((key) => [key.digest, key])),
    problems: new Map(),
  }
}

const keyKind = 'llm.apiKey'

function isUnchanged(known: RecordIndex, kind: Kind, stored: StoredResource): boolean {
  const record = findRecord(known, kind, stored.id)
  if (record === undefined || ('isPlaceholder' in record && record.isPlaceholder)) return false
  const { revision, createdAt, updatedAt } = record
  return revision === stored.revision && createdAt === stored.createdAt && updatedAt === stored.updatedAt
}

type KeyChange = { readonly id: string; readonly record: KeyRecord | undefined }

/** Above this number of changes, the lists are rebuilt. */
const maxPatchedKeys = 200

function withKeys(known: RecordIndex, all: readonly KeyChange[]): RecordIndex {
  const changes = [...new Map(all.map((change) => [change.id, change])).values()]
  if (changes.length === 0) return known
  const before = changes.map(({ id }) => lookUp(known.keysById, id))
  const digests = new Map<string, KeyRecord | undefined>()
  for (const record of before) {
    if (record !== undefined && lookUp(known.keysByDigest, record.digest) === record)
      digests.set(record.digest, undefined)
  }
  for (const { record } of changes) if (record !== undefined) digests.set(record.digest, record)
  return {
    ...known,
    ...(changes.length > maxPatchedKeys ? rebuildKeys(known, changes) : patchKeys(known, before, changes)),
    keysById: withEntries(
      known.keysById,
      changes.map(({ id, record }) => [id, record]),
    ),
    keysByDigest: withEntries(known.keysByDigest, digests),
  }
}

type KeyLists = Pick<RecordIndex, 'keys' | 'keyItems'>

function rebuildKeys({ keys }: RecordIndex, changes: readonly KeyChange[]): KeyLists {
  const byId = new Map(keys.map((key) => [key.id, key]))
  const added: KeyRecord[] = []
  for (const { id, record } of changes) {
    if (record === undefined) byId.delete(id)
    else if (byId.has(id)) byId.set(id, record)
    else added.push(record)
  }
  const all = [...byId.values(), ...added.sort(byAge)]
  return { keys: all, keyItems: all.map(({ item }) => item) }
}

/** Copies the lists and replaces single entries: ten times as fast as visiting each of 100,000 records. */
function patchKeys(
  known: RecordIndex,
  before: readonly (KeyRecord | undefined)[],
  changes: readonly KeyChange[],
): KeyLists {
  const keys = known.keys.slice()
  const keyItems = known.keyItems.slice()
  const added: KeyRecord[] = []
  changes.forEach(({ record }, index) => {
    const old = before[index]
    // By identity, which is fast.
    const at = old === undefined ? -1 : keys.indexOf(old)
    if (at === -1) {
      if (record !== undefined) added.push(record)
    } else if (record === undefined) {
      keys.splice(at, 1)
      keyItems.splice(at, 1)
    } else {
      keys[at] = record
      keyItems[at] = record.item
    }
  })
  for (const record of added.sort(byAge)) {
    keys.push(record)
    keyItems.push(record.item)
  }
  return { keys, keyItems }
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
  const { id, value, revision, createdAt, updatedAt } = stored
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

function byAge(one: RecordVersion, other: RecordVersion): number {
  if (one.createdAt !== other.createdAt) return one.createdAt < other.createdAt ? -1 : 1
  return one.id < other.id ? -1 : Number(one.id > other.id)
}

/** Key of a stored record: kind and id. */
export function recordKey(kind: string, id: string): string {
  return `${kind} ${id}`
}
