import type { ConfigTree } from '../../config/load/validate.ts'
import { lookUp } from '../../lib/bucket-map.ts'
import type { JsonObject, JsonValue } from '../../lib/json/json.ts'
import { allDigests } from '../../policies/api-key/record.ts'
import { valueAt } from '../../schema/path.ts'
import { type Draft, labelOf, notFound, putCreates, type Refusal, refusal } from '../change/change.ts'
import { findFileKeys } from '../change/file-keys.ts'
import { namedId, readUuid } from '../change/identity.ts'
import type { ExistingRecord, KeyDraft, Plan, PlanState } from '../change/plan.ts'
import { isKeyPolicy, type Kind, policyFields } from '../kinds.ts'
import type { HistoryOrigin, StoreChange } from '../stores/store.ts'
import { findInheritedCredential } from './inherited-credentials.ts'
import { conflictingFields, fileDefines, fileKeyDigests, hasKeyPolicy, isTree } from './overlay.ts'
import {
  type Expand,
  type KeyRecord,
  keyIssues,
  keyItem,
  type NamedRecord,
  recordKey,
  storedKey,
  toStored,
} from './record.ts'
import { nameKey, type RecordIndex } from './record-index.ts'

export type HybridPlanInput = {
  readonly index: RecordIndex
  readonly file: ConfigTree
  readonly expand: Expand
  readonly randomUuid: () => string
}

/** Plan state of hybrid mode: records of the database, which must not conflict with the file. */
export function createHybridPlanState(input: HybridPlanInput): PlanState<ExistingRecord> {
  const { index, file, randomUuid } = input
  const requestDigests = new Set<string>()
  const find = (kind: Kind, address: string): ExistingRecord | undefined => {
    if (kind.placement.kind !== 'keys') return findNamed(kind, address, index)
    const key = findKey(address, index)
    return key && existingKey(key)
  }
  return {
    find,
    findByName: (kind, name) => index.byName.get(nameKey(kind.name, name)),
    findRemovable: (kind, address) => find(kind, address) ?? findProblem(kind, address, index),
    idFor(kind, name, existing) {
      if (existing !== undefined) return existing.id
      const id = namedId(kind.name, name)
      // A renamed record keeps the id of its first name.
      return index.named.has(recordKey(kind.name, id)) ? randomUuid() : id
    },
    newKeyId: randomUuid,
    creates: (kind, name) => putCreates(kind) && name !== undefined,
    refuseMissing: (kind, address) =>
      isInFile(kind, address, file)
        ? refusal(
            409,
            `file-owned config resource cannot be updated in hybrid mode: ${labelOf(kind, address)}`,
          )
        : notFound(kind, address),
    refuseNamed: (kind, draft) => refuseNamed(kind, draft, input),
    refuseKey: (key) => refuseKey(key, input, requestDigests),
    readKey({ id }) {
      const key = lookUp(index.keysById, id)
      if (key === undefined) return refusal(404, 'the key does not exist')
      return { kind: 'key', record: key.item, value: storedKey(key) }
    },
    hasKeyPolicy: () => hasKeyPolicy(file) || index.ordered.some(({ kind, name }) => isKeyPolicy(kind, name)),
    isKeyPolicyRequired: (kind, name) => index.keyItems.length > 0 && !fileDefines(file, kind, name),
  }
}

/** Changes of the store that apply a plan, each with its note for the history. */
export function* storeChangeSteps(
  { changes }: Plan<ExistingRecord>,
  index: RecordIndex,
  origin: HistoryOrigin,
): Generator<void, StoreChange[]> {
  const planned: StoreChange[] = []
  for (const change of changes) {
    yield
    const { name: kind } = change.kind
    const id = change.op === 'put' ? change.id : change.existing.id
    const before = storedValueOf(change.kind, id, index)
    if (change.op === 'remove') {
      planned.push({ op: 'remove', kind, id, history: { ...origin, op: 'delete', before } })
      continue
    }
    const { draft, existing } = change
    const value = toStored(change.kind, draft.name, draft.value)
    const op = existing === undefined ? 'create' : 'update'
    planned.push({ op: 'put', kind, id, value, history: { ...origin, op, before } })
  }
  return planned
}

/** The value of a record in the store; undefined if it is missing or unreadable. */
function storedValueOf(kind: Kind, id: string, index: RecordIndex): JsonObject | undefined {
  if (kind.placement.kind === 'keys') {
    const key = lookUp(index.keysById, id)
    return key && storedKey(key)
  }
  const record = index.named.get(recordKey(kind.name, id))
  if (record === undefined || record.isPlaceholder === true) return undefined
  return toStored(kind, record.name, record.value)
}

/** A named record by id or name. */
export function findNamed(kind: Kind, address: string, index: RecordIndex): NamedRecord | undefined {
  const uuid = readUuid(address)
  const byId = uuid === undefined ? undefined : index.named.get(recordKey(kind.name, uuid))
  return byId ?? index.byName.get(nameKey(kind.name, address))
}

export function findKey(address: string, { keysById }: RecordIndex): KeyRecord | undefined {
  const uuid = readUuid(address)
  return uuid === undefined ? undefined : lookUp(keysById, uuid)
}

function existingKey({ id, revision }: KeyRecord): ExistingRecord {
  return { id, name: undefined, revision }
}

/** An unreadable record. */
function findProblem(kind: Kind, address: string, { problems }: RecordIndex): ExistingRecord | undefined {
  const problem = problems.get(recordKey(kind.name, readUuid(address) ?? namedId(kind.name, address)))
  return problem && { id: problem.id, name: undefined, revision: undefined }
}

function refuseNamed(
  kind: Kind,
  { name, value }: Draft,
  { file, expand }: HybridPlanInput,
): Refusal | undefined {
  const { placement } = kind
  const [section = ''] = placement.path
  if (placement.kind === 'policies' && placement.orphan !== undefined && !isTree(file[section])) {
    return refusal(409, placement.orphan)
  }
  if (placement.kind === 'policies' && !policyFields(kind).includes(name)) {
    return refusal(
      422,
      `${labelOf(kind, name)}: there is no such policy; known are ${policyFields(kind).join(', ')}`,
    )
  }
  if (fileDefines(file, kind, name)) {
    return refusal(409, `config resource ${labelOf(kind, name)} conflicts with file-owned resource`)
  }
  const [conflict] = isTree(value) ? conflictingFields(file, kind, value) : []
  if (conflict !== undefined) {
    return refusal(
      409,
      `file-owned ${labelOf(kind, name)} field cannot be updated in hybrid mode: ${conflict}`,
    )
  }
  const inherited = findInheritedCredential(kind, value, file)
  if (inherited !== undefined) return refusal(403, inherited)
  return refuseMissingVariables(value, expand)
}

/** `requestDigests` are those of earlier keys of the request. */
function refuseKey(
  { kind, id, value }: KeyDraft,
  { index, file, expand }: HybridPlanInput,
  requestDigests: Set<string>,
): Refusal | undefined {
  const missing = refuseMissingVariables(value, expand)
  if (missing) return missing
  const expanded = expand(value).value
  const issues = keyIssues(expanded)
  if (issues.length > 0) return refusal(422, issues.join('\n'))
  const item = keyItem(id, expanded)
  for (const digest of item === undefined ? [] : allDigests(item)) {
    const owner = lookUp(index.keysByDigest, digest)
    if (fileKeyDigests(file).has(digest)) return refusal(409, 'the same key is in the file already')
    if (owner !== undefined && owner.id !== id) {
      return refusal(409, `the same key exists already: ${labelOf(kind, owner.id)}`)
    }
    if (requestDigests.has(digest)) return refusal(409, 'the same key is in this request more than once')
    requestDigests.add(digest)
  }
  return undefined
}

function refuseMissingVariables(value: JsonValue, expand: Expand): Refusal | undefined {
  const { missing } = expand(value)
  if (missing.length === 0) return undefined
  return refusal(422, missing.map((name) => `environment variable not found: ${name}`).join('\n'))
}

function isInFile(kind: Kind, address: string, file: ConfigTree): boolean {
  if (kind.placement.kind === 'keys') return findFileKeys(address, file).length > 0
  if (fileDefines(file, kind, address)) return true
  const id = readUuid(address)
  if (id === undefined) return false
  return fileNames(kind, file).some((name) => namedId(kind.name, name) === id)
}

function fileNames({ placement }: Kind, file: ConfigTree): string[] {
  const value = valueAt(file, placement.path)
  if (placement.kind !== 'list') return isTree(value) ? Object.keys(value) : []
  const items: readonly unknown[] = Array.isArray(value) ? value : []
  return items.flatMap((item) => {
    const member = placement.identity.find((field) => isTree(item) && typeof item[field] === 'string')
    const name = member !== undefined && isTree(item) ? item[member] : undefined
    return typeof name === 'string' ? [name] : []
  })
}
