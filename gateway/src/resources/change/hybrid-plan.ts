import type { ConfigTree } from '../../config/load/validate.ts'
import { lookUp } from '../../lib/bucket-map.ts'
import type { JsonValue } from '../../lib/json/json.ts'
import { recordDigest } from '../../policies/api-key/record.ts'
import { valueAt } from '../../schema/path.ts'
import {
  conflictingFields,
  fileDefines,
  fileKeyDigests,
  hasKeyPolicy,
  isTree,
  missingKeyPolicy,
} from '../hybrid/overlay.ts'
import {
  type Expand,
  type KeyRecord,
  keyIssues,
  keyItem,
  type NamedRecord,
  nameKey,
  type RecordIndex,
  recordKey,
  toStored,
} from '../hybrid/record-index.ts'
import { isKeyPolicy, isSingleton, type Kind, policyFields } from '../kinds.ts'
import type { StoreChange } from '../stores/store.ts'
import {
  type Change,
  type ChangeRequest,
  type Draft,
  type ImportedRecord,
  isNamed,
  labelOf,
  notFound,
  putCreates,
  type Refusal,
  readDraft,
  readDrafts,
  refusal,
} from './change.ts'
import { namedId, readUuid } from './identity.ts'
import { preconditionFails } from './precondition.ts'

/** What a change is decided by. */
export type PlanFacts = {
  readonly known: RecordIndex
  readonly file: ConfigTree
  readonly expand: Expand
  readonly randomUuid: () => string
}

export type Planned = {
  readonly kind: 'planned'
  readonly changes: readonly StoreChange[]
  /** Records that are stored, in the order of the request. */
  readonly stored: readonly { readonly kind: Kind; readonly id: string }[]
  /** The record that is removed, as its id. */
  readonly removed: string | undefined
}

/** Steps to a plan: one for each record, so that traffic does not wait for thousands. */
type Planning = Generator<void, Planned | Refusal>

/** What to commit for a change, or why not: everything but whether the configuration that results can run. */
export function* planning(request: ChangeRequest, facts: PlanFacts): Planning {
  const { change } = request
  switch (change.op) {
    case 'upsert':
      return yield* planUpsert(change, facts)
    case 'replace':
      return planReplace(change, request, facts)
    case 'remove':
      return planRemove(change, request, facts)
    case 'import':
      return yield* planImport(change, facts)
  }
}

/** Records with their own ids: each replaces the one of its id, and must not have the name of another one. */
function* planImport({ records }: Change & { op: 'import' }, facts: PlanFacts): Planning {
  const hasKeyPolicy =
    keysHavePolicy(facts) || records.some(({ kind, draft }) => isKeyPolicy(kind, draft.name))
  const taken = new Map<string, string>()
  const seen = new Set<string>()
  for (const record of records) {
    yield
    const { kind, id, draft } = record
    const isKey = kind.placement.kind === 'keys'
    for (const key of isKey
      ? [`${kind.name} id ${id}`]
      : [`${kind.name} id ${id}`, nameKey(kind.name, draft.name)]) {
      if (seen.has(key)) return refusal(400, `${labelOf(kind, id)} is in this request more than once`)
      seen.add(key)
    }
    if (isKey && !hasKeyPolicy) return refusal(409, missingKeyPolicy)
    const refused = isKey
      ? refuseKey({ kind, id, value: draft.value }, facts, taken)
      : (refuseId(record, facts) ?? refuseNamed(kind, draft, facts))
    if (refused) return refused
  }
  return {
    kind: 'planned',
    changes: records.flatMap(({ kind, id, draft }) => planned(kind, [{ ...draft, id }]).changes),
    stored: records.map(({ kind, id }) => ({ kind, id })),
    removed: undefined,
  }
}

function refuseId({ kind, id, draft: { name } }: ImportedRecord, { known }: PlanFacts): Refusal | undefined {
  const isFixed = isSingleton(kind) || kind.placement.kind === 'policies'
  if (isFixed && id !== namedId(kind.name, name)) {
    return refusal(400, `the id of ${labelOf(kind, name)} must be ${namedId(kind.name, name)}`)
  }
  const existing = known.byName.get(nameKey(kind.name, name))
  const isTaken = existing !== undefined && existing.id !== id
  return isTaken ? refusal(409, `${labelOf(kind, name)} exists already, with another id`) : undefined
}

function* planUpsert({ kind, values }: Change & { op: 'upsert' }, facts: PlanFacts): Planning {
  const drafts = readDrafts(kind, values)
  if ('status' in drafts) return drafts
  if (kind.placement.kind === 'keys') return yield* planKeys(kind, drafts, facts)
  for (const draft of drafts) {
    yield
    const refused = refuseNamed(kind, draft, facts)
    if (refused) return refused
  }
  return planned(
    kind,
    drafts.map((draft) => ({ ...draft, id: idFor(kind, draft.name, facts) })),
  )
}

function* planKeys(kind: Kind, drafts: readonly Draft[], facts: PlanFacts): Planning {
  if (drafts.length > 0 && !keysHavePolicy(facts)) return refusal(409, missingKeyPolicy)
  const taken = new Map<string, string>()
  const puts: (Draft & { id: string })[] = []
  for (const draft of drafts) {
    yield
    const id = facts.randomUuid()
    const refused = refuseKey({ kind, id, value: draft.value }, facts, taken)
    if (refused) return refused
    puts.push({ ...draft, id })
  }
  return planned(kind, puts)
}

function planReplace(
  { kind, id, value }: Change & { op: 'replace' },
  request: ChangeRequest,
  facts: PlanFacts,
): Planned | Refusal {
  if (id === '') return refusal(400, 'config resource id cannot be empty')
  if (kind.placement.kind === 'keys') return planKeyUpdate({ kind, id, value }, request, facts)
  const known = findNamed(kind, id, facts.known)
  const address = known?.name ?? nameOfAddress(kind, id)
  const draft = readDraft(kind, value, kind.placement.kind === 'policies' ? (address ?? id) : undefined)
  if ('status' in draft) return draft
  if (known === undefined) {
    const creates = putCreates(kind) && address !== undefined
    if (!creates && ownedByFile(kind, id, facts.file)) return fileOwned(kind, id)
    if (!creates) return notFound(kind, id)
  }
  const failed = preconditionFails(request.ifMatch, known?.revision)
  if (failed) return failed
  const refused = refuseNamed(kind, draft, facts)
  if (refused) return refused
  const renamed = known !== undefined && known.name !== draft.name
  if (renamed && facts.known.byName.has(nameKey(kind.name, draft.name))) {
    return refusal(409, `config resource already exists: ${labelOf(kind, draft.name)}`)
  }
  return planned(kind, [{ ...draft, id: known?.id ?? idFor(kind, draft.name, facts) }])
}

/** The id of the record of this name, or of a new one: made of the name, unless a renamed record has that id. */
function idFor(kind: Kind, name: string, { known, randomUuid }: PlanFacts): string {
  const existing = known.byName.get(nameKey(kind.name, name))
  if (existing !== undefined) return existing.id
  const id = namedId(kind.name, name)
  return known.named.has(recordKey(kind.name, id)) ? randomUuid() : id
}

type SentKey = { readonly kind: Kind; readonly id: string; readonly value: JsonValue }

function planKeyUpdate(
  { kind, id, value }: SentKey,
  request: ChangeRequest,
  facts: PlanFacts,
): Planned | Refusal {
  const draft = readDraft(kind, value)
  if ('status' in draft) return draft
  const known = findKey(id, facts.known)
  if (known === undefined) return notFound(kind, id)
  const failed = preconditionFails(request.ifMatch, known.revision)
  if (failed) return failed
  const refused = refuseKey({ kind, id: known.id, value: draft.value }, facts, new Map())
  return refused ?? planned(kind, [{ ...draft, id: known.id }])
}

function planRemove(
  { kind, id }: Change & { op: 'remove' },
  request: ChangeRequest,
  { known, file }: PlanFacts,
): Planned | Refusal {
  if (id === '') return refusal(400, 'config resource id cannot be empty')
  const record = kind.placement.kind === 'keys' ? findKey(id, known) : findNamed(kind, id, known)
  const problem = known.problems.get(`${kind.name} ${readUuid(id) ?? namedId(kind.name, id)}`)
  if (record === undefined && problem === undefined) return notFound(kind, id)
  const failed = preconditionFails(request.ifMatch, record?.revision)
  if (failed) return failed
  const name = record !== undefined && 'name' in record ? record.name : undefined
  const leavesKeys = name !== undefined && isKeyPolicy(kind, name) && !fileDefines(file, kind, name)
  if (leavesKeys && known.keys.length > 0) return refusal(409, missingKeyPolicy)
  const removed = record?.id ?? problem?.id ?? id
  return {
    kind: 'planned',
    changes: [{ op: 'remove', kind: kind.name, id: removed }],
    stored: [],
    removed,
  }
}

function planned(kind: Kind, drafts: readonly (Draft & { id: string })[]): Planned {
  return {
    kind: 'planned',
    changes: drafts.map(({ id, name, value }) => ({
      op: 'put',
      kind: kind.name,
      id,
      value: toStored(kind, name, value),
    })),
    stored: drafts.map(({ id }) => ({ kind, id })),
    removed: undefined,
  }
}

/** Why the database must not have this record beside what the file says. */
function refuseNamed(kind: Kind, { name, value }: Draft, { file, expand }: PlanFacts): Refusal | undefined {
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
  const [clash] = isTree(value) ? conflictingFields(file, kind, value) : []
  if (clash !== undefined) {
    return refusal(409, `file-owned ${labelOf(kind, name)} field cannot be updated in hybrid mode: ${clash}`)
  }
  return missingVariables(value, expand)
}

/** `taken` are the keys of the same request so far, by digest. */
function refuseKey(
  { kind, id, value }: SentKey,
  facts: PlanFacts,
  taken: Map<string, string>,
): Refusal | undefined {
  const missing = missingVariables(value, facts.expand)
  if (missing) return missing
  const expanded = facts.expand(value).value
  const mistakes = keyIssues(expanded)
  if (mistakes.length > 0) return refusal(422, mistakes.join('\n'))
  const item = keyItem(id, expanded)
  const digest = item && recordDigest(item)
  if (digest === undefined) return undefined
  const owner = lookUp(facts.known.keysByDigest, digest)
  if (fileKeyDigests(facts.file).has(digest)) return refusal(409, 'the same key is in the file already')
  if (owner !== undefined && owner.id !== id) {
    return refusal(409, `the same key exists already: ${labelOf(kind, owner.id)}`)
  }
  if (taken.has(digest)) return refusal(409, 'the same key is in this request more than once')
  taken.set(digest, id)
  return undefined
}

function missingVariables(value: JsonValue, expand: Expand): Refusal | undefined {
  const { missing } = expand(value)
  if (missing.length === 0) return undefined
  return refusal(422, missing.map((name) => `environment variable not found: ${name}`).join('\n'))
}

function keysHavePolicy({ known, file }: PlanFacts): boolean {
  return hasKeyPolicy(file) || known.ordered.some(({ kind, name }) => isKeyPolicy(kind, name))
}

function ownedByFile(kind: Kind, name: string, file: ConfigTree): boolean {
  if (fileDefines(file, kind, name)) return true
  const id = readUuid(name)
  if (id === undefined) return false
  return fileNames(kind, file).some((known) => namedId(kind.name, known) === id)
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

function fileOwned(kind: Kind, id: string): Refusal {
  return refusal(409, `file-owned config resource cannot be updated in hybrid mode: ${labelOf(kind, id)}`)
}

/** A named record by its id or its name. */
export function findNamed(kind: Kind, id: string, { named, byName }: RecordIndex): NamedRecord | undefined {
  const uuid = readUuid(id)
  const byId = uuid === undefined ? undefined : named.get(recordKey(kind.name, uuid))
  return byId ?? byName.get(nameKey(kind.name, id))
}

export function findKey(id: string, { keysById }: RecordIndex): KeyRecord | undefined {
  const uuid = readUuid(id)
  return uuid === undefined ? undefined : lookUp(keysById, uuid)
}

/** The name that an address of a record stands for, which need not exist. Ids of names that nobody knows lead nowhere. */
export function nameOfAddress(kind: Kind, id: string): string | undefined {
  const uuid = readUuid(id)
  if (uuid === undefined) return isNamed(kind) ? id : undefined
  return policyFields(kind).find((field) => namedId(kind.name, field) === uuid)
}
