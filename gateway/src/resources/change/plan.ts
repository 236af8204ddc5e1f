import type { JsonObject, JsonValue } from '../../lib/json/json.ts'
import type { ApiKeyRecord } from '../../policies/api-key/record.ts'
import { missingKeyPolicy } from '../hybrid/overlay.ts'
import { isKeyPolicy, isSingleton, type Kind, policyFields } from '../kinds.ts'
import {
  type Change,
  type ChangeRequest,
  type Draft,
  type ImportedRecord,
  isNamed,
  labelOf,
  notFound,
  type Refusal,
  type RevertChange,
  readDraft,
  readDrafts,
  refusal,
} from './change.ts'
import { namedId, readUuid } from './identity.ts'
import { preconditionFails } from './precondition.ts'
import { type RotatedFields, rotatedFields, rotatedValue } from './rotate.ts'

/**
 * A stored record as far as plans depend on it. Keys and unreadable records have no name, records of the file
 * no revision.
 */
export type ExistingRecord = {
  readonly id: string
  readonly name: string | undefined
  readonly revision: number | undefined
}

/** A virtual key to store. */
export type KeyDraft = { readonly kind: Kind; readonly id: string; readonly value: JsonValue }

export type ExistingKey = {
  readonly kind: 'key'
  readonly record: ApiKeyRecord
  readonly value: JsonObject
}

/**
 * Records and rules of one mode: the configuration file, or the database over the file. Created for each
 * plan, because it may collect the keys of the request.
 */
export type PlanState<R extends ExistingRecord> = {
  /** The record at an address: an id, or a name. */
  find(kind: Kind, address: string): R | undefined
  findByName(kind: Kind, name: string): R | undefined
  /** Like `find`; includes unreadable records, which can only be removed. */
  findRemovable(kind: Kind, address: string): R | undefined
  idFor(kind: Kind, name: string, existing: R | undefined): string
  newKeyId(): string
  /**
   * Whether a PUT to an item address creates a record that does not exist. `name` is undefined for unknown
   * ids.
   */
  creates(kind: Kind, name: string | undefined): boolean
  refuseMissing(kind: Kind, address: string): Refusal
  /** Conflicts of a named record with the file, and missing references. */
  refuseNamed(kind: Kind, draft: Draft): Refusal | undefined
  /** Mistakes in a key, and conflicts with other keys, those of the request included. */
  refuseKey(key: KeyDraft, existing: R | undefined): Refusal | undefined
  /** The record of an existing key, with references to the environment expanded, and its value as stored. */
  readKey(existing: R): ExistingKey | Refusal
  hasKeyPolicy(): boolean
  /** Whether keys exist that require this key policy. */
  isKeyPolicyRequired(kind: Kind, name: string): boolean
}

export type PlannedPut<R extends ExistingRecord> = {
  readonly op: 'put'
  readonly kind: Kind
  readonly id: string
  readonly draft: Draft
  /** The record to replace; it may have another name. */
  readonly existing: R | undefined
  /** Fields that a rotation changes; a file retains the text of the others. */
  readonly rotated?: RotatedFields | undefined
}
export type PlannedRemove<R extends ExistingRecord> = {
  readonly op: 'remove'
  readonly kind: Kind
  readonly existing: R
}

/** Record changes for a request, in its order. Either puts, or one removal. */
export type Plan<R extends ExistingRecord> = {
  readonly kind: 'planned'
  readonly changes: readonly (PlannedPut<R> | PlannedRemove<R>)[]
}

/** One step per record, so that traffic continues during a plan of thousands. */
type PlanSteps<R extends ExistingRecord> = Generator<void, Plan<R> | Refusal>

/**
 * Plans a change for either mode: which records to put or remove, or the refusal. Validates neither schema
 * nor configuration.
 */
export function* planSteps<R extends ExistingRecord>(
  request: ChangeRequest,
  state: PlanState<R>,
): PlanSteps<R> {
  const { change } = request
  switch (change.op) {
    case 'upsert':
      return yield* planUpsert(change, state)
    case 'replace':
      return planReplace(change, request, state)
    case 'remove':
      return planRemove(change, request, state)
    case 'import':
      return yield* planImport(change, state)
    case 'rotate':
      return planRotate(change, request, state)
    case 'revert':
      return yield* planRevert(change, request, state)
  }
}

function* planUpsert<R extends ExistingRecord>(
  { kind, values }: Change & { op: 'upsert' },
  state: PlanState<R>,
): PlanSteps<R> {
  const read = readDrafts(kind, values)
  if (read.kind === 'refused') return read
  if (kind.placement.kind === 'keys') return yield* planNewKeys(kind, read.drafts, state)
  const changes: PlannedPut<R>[] = []
  for (const draft of read.drafts) {
    yield
    const refused = state.refuseNamed(kind, draft)
    if (refused) return refused
    const existing = state.findByName(kind, draft.name)
    changes.push({ op: 'put', kind, id: state.idFor(kind, draft.name, existing), draft, existing })
  }
  return { kind: 'planned', changes }
}

function* planNewKeys<R extends ExistingRecord>(
  kind: Kind,
  drafts: readonly Draft[],
  state: PlanState<R>,
): PlanSteps<R> {
  if (drafts.length > 0 && !state.hasKeyPolicy()) return refusal(409, missingKeyPolicy)
  const changes: PlannedPut<R>[] = []
  for (const draft of drafts) {
    yield
    const id = state.newKeyId()
    const refused = state.refuseKey({ kind, id, value: draft.value }, undefined)
    if (refused) return refused
    changes.push({ op: 'put', kind, id, draft, existing: undefined })
  }
  return { kind: 'planned', changes }
}

function planReplace<R extends ExistingRecord>(
  { kind, id: address, value }: Change & { op: 'replace' },
  { ifMatch }: ChangeRequest,
  state: PlanState<R>,
): Plan<R> | Refusal {
  if (address === '') return refusal(400, 'config resource id cannot be empty')
  const existing = state.find(kind, address)
  const isKey = kind.placement.kind === 'keys'
  const name = existing?.name ?? nameOfAddress(kind, address)
  const draft = readDraft(kind, value, kind.placement.kind === 'policies' ? (name ?? address) : undefined)
  if (draft.kind === 'refused') return draft
  if (existing === undefined && isKey) return notFound(kind, address)
  if (existing === undefined && !state.creates(kind, name)) return state.refuseMissing(kind, address)
  const failed = preconditionFails(ifMatch, existing?.revision)
  if (failed) return failed
  const id = isKey && existing ? existing.id : state.idFor(kind, draft.name, existing)
  const refused = isKey
    ? state.refuseKey({ kind, id, value: draft.value }, existing)
    : (state.refuseNamed(kind, draft) ?? refuseRename(kind, draft, existing, state))
  return refused ?? { kind: 'planned', changes: [{ op: 'put', kind, id, draft, existing }] }
}

function refuseRename<R extends ExistingRecord>(
  kind: Kind,
  { name }: Draft,
  existing: R | undefined,
  state: PlanState<R>,
): Refusal | undefined {
  if (existing === undefined || existing.name === name) return undefined
  if (state.findByName(kind, name) === undefined) return undefined
  return refusal(409, `config resource already exists: ${labelOf(kind, name)}`)
}

function planRemove<R extends ExistingRecord>(
  { kind, id: address }: Change & { op: 'remove' },
  { ifMatch }: ChangeRequest,
  state: PlanState<R>,
): Plan<R> | Refusal {
  if (address === '') return refusal(400, 'config resource id cannot be empty')
  const existing = state.findRemovable(kind, address)
  if (existing === undefined) return notFound(kind, address)
  const failed = preconditionFails(ifMatch, existing.revision)
  if (failed) return failed
  const { name } = existing
  if (name !== undefined && isKeyPolicy(kind, name) && state.isKeyPolicyRequired(kind, name)) {
    return refusal(409, missingKeyPolicy)
  }
  return { kind: 'planned', changes: [{ op: 'remove', kind, existing }] }
}

/** Records with ids: each replaces the record of its id, and must not have the name of another record. */
function* planImport<R extends ExistingRecord>(
  { records }: Change & { op: 'import' },
  state: PlanState<R>,
): PlanSteps<R> {
  const hasKeyPolicy =
    state.hasKeyPolicy() || records.some(({ kind, draft }) => isKeyPolicy(kind, draft.name))
  const seen = new Set<string>()
  const changes: PlannedPut<R>[] = []
  for (const record of records) {
    yield
    const { kind, id, draft } = record
    const isKey = kind.placement.kind === 'keys'
    for (const key of [`${kind.name} id ${id}`, ...(isKey ? [] : [`${kind.name} ${draft.name}`])]) {
      if (seen.has(key)) return refusal(400, `${labelOf(kind, id)} is in this request more than once`)
      seen.add(key)
    }
    if (isKey && !hasKeyPolicy) return refusal(409, missingKeyPolicy)
    const existing = state.find(kind, id)
    const refused = isKey
      ? state.refuseKey({ kind, id, value: draft.value }, existing)
      : (refuseId(record, state) ?? state.refuseNamed(kind, draft))
    if (refused) return refused
    changes.push({ op: 'put', kind, id, draft, existing })
  }
  return { kind: 'planned', changes }
}

function planRotate<R extends ExistingRecord>(
  { kind, id: address, rotation }: Change & { op: 'rotate' },
  { ifMatch }: ChangeRequest,
  state: PlanState<R>,
): Plan<R> | Refusal {
  const existing = state.find(kind, address)
  if (existing === undefined) return state.refuseMissing(kind, address)
  const failed = preconditionFails(ifMatch, existing.revision)
  if (failed) return failed
  const key = state.readKey(existing)
  if (key.kind === 'refused') return key
  const rotated = rotatedFields(key.record, rotation)
  if (rotated.kind === 'refused') return rotated
  const { id } = existing
  const draft: Draft = { kind: 'draft', name: '', value: rotatedValue(key.value, rotated) }
  const refused = state.refuseKey({ kind, id, value: draft.value }, existing)
  return refused ?? { kind: 'planned', changes: [{ op: 'put', kind, id, draft, existing, rotated }] }
}

function* planRevert<R extends ExistingRecord>(
  { kind, id, draft }: RevertChange,
  request: ChangeRequest,
  state: PlanState<R>,
): PlanSteps<R> {
  if (draft === undefined) return planRemove({ op: 'remove', kind, id }, request, state)
  const failed = preconditionFails(request.ifMatch, state.find(kind, id)?.revision)
  if (failed) return failed
  return yield* planImport({ op: 'import', records: [{ kind, id, draft }] }, state)
}

function refuseId<R extends ExistingRecord>(
  { kind, id, draft: { name } }: ImportedRecord,
  state: PlanState<R>,
): Refusal | undefined {
  const isFixed = isSingleton(kind) || kind.placement.kind === 'policies'
  if (isFixed && id !== namedId(kind.name, name)) {
    return refusal(400, `the id of ${labelOf(kind, name)} must be ${namedId(kind.name, name)}`)
  }
  const existing = state.findByName(kind, name)
  if (existing === undefined || existing.id === id) return undefined
  return refusal(409, `${labelOf(kind, name)} exists already, with another id`)
}

/**
 * The name an address refers to, of an existing record or not. Undefined for ids that belong to no known
 * name.
 */
export function nameOfAddress(kind: Kind, address: string): string | undefined {
  const uuid = readUuid(address)
  if (uuid === undefined) return isNamed(kind) ? address : undefined
  return policyFields(kind).find((field) => namedId(kind.name, field) === uuid)
}
