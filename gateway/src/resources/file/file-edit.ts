import type { Environment } from '../../config/load/environment.ts'
import { escapeReferences } from '../../config/load/escape-references.ts'
import { toPlainValue } from '../../config/load/plain-value.ts'
import type { ConfigTree } from '../../config/load/validate.ts'
import { configSchema } from '../../config/schema.ts'
import type { YamlEdit } from '../../config/yaml/draft.ts'
import { editYaml } from '../../config/yaml/edit.ts'
import { readYaml } from '../../config/yaml/yaml.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../lib/json/json.ts'
import { type ApiKeyRecord, apiKeyRecordSchema, recordDigest } from '../../policies/api-key/record.ts'
import { check } from '../../schema/check.ts'
import { valueAt } from '../../schema/path.ts'
import { shapeOf } from '../../schema/shape.ts'
import {
  type ChangeOutcome,
  type ChangeRequest,
  type Draft,
  type Envelope,
  type KindChange,
  labelOf,
  notFound,
  putCreates,
  type Refusal,
  readDraft,
  readDrafts,
  refusal,
} from '../change/change.ts'
import { withId } from '../change/envelope.ts'
import { nameOfAddress } from '../change/hybrid-plan.ts'
import { namedId, readUuid } from '../change/identity.ts'
import { preconditionFails } from '../change/precondition.ts'
import { hasKeyPolicy, isTree, missingKeyPolicy } from '../hybrid/overlay.ts'
import { keyIssues, keyItem, nameIn } from '../hybrid/record-index.ts'
import { findKind, freshSection, isKeyPolicy, isSingleton, type Kind, policyFields } from '../kinds.ts'

export type FileEditRequest = {
  readonly text: string
  readonly env: Environment
  readonly allowedEnv: readonly string[]
  readonly request: Omit<ChangeRequest, 'change'> & { readonly change: PlainChange }
  /** Ids for the records that may have to be made, one for each value. */
  readonly ids: readonly string[]
}

/** A change with the name of its kind, so that it can be sent to another thread. */
export type PlainChange =
  | { readonly op: 'upsert'; readonly kind: string; readonly values: readonly JsonValue[] }
  | { readonly op: 'replace'; readonly kind: string; readonly id: string; readonly value: JsonValue }
  | { readonly op: 'remove'; readonly kind: string; readonly id: string }

export type FileEdit =
  | Refusal
  | { readonly kind: 'edited'; readonly text: string; readonly outcome: Exclude<ChangeOutcome, Refusal> }

/** The text of the configuration file after a change, and what to answer. Reads the whole text twice: for its own thread. */
export function editFile({ text, env, allowedEnv, request, ids }: FileEditRequest): FileEdit {
  const kind = findKind(request.change.kind)
  if (kind === undefined) return refusal(400, `unsupported config resource kind: ${request.change.kind}`)
  const yaml = readYaml(text.startsWith('\uFEFF') ? text.slice(1) : text)
  const plain = toPlainValue(yaml.tree, shapeOf(configSchema), env)
  if (yaml.mistakes.length + plain.mistakes.length > 0 || !isTree(plain.value)) {
    return refusal(500, 'the configuration file has mistakes; correct them by hand first')
  }
  const file = plain.value
  const allowed = new Set(allowedEnv)
  const plan = planFileChange({ ...request.change, kind }, request.ifMatch, { file, ids })
  if ('status' in plan) return plan
  const edits = plan.edits.map((edit) =>
    edit.op === 'remove' ? edit : { ...edit, value: escapeReferences(edit.value, allowed) },
  )
  if (edits.length === 0) return { kind: 'edited', text, outcome: plan.outcome }
  const edited = editYaml(text, edits)
  if (edited.kind === 'refused') return refusal(500, edited.message)
  return { kind: 'edited', text: edited.text, outcome: plan.outcome }
}

type Facts = { readonly file: ConfigTree; readonly ids: readonly string[] }
type FilePlan = { readonly edits: YamlEdit[]; readonly outcome: Exclude<ChangeOutcome, Refusal> }

function planFileChange(change: KindChange, ifMatch: string | undefined, facts: Facts): FilePlan | Refusal {
  const unconditional = ifMatch === undefined || ifMatch.trim() === '*'
  const failed = unconditional ? undefined : preconditionFails(ifMatch, undefined)
  if (failed) return failed
  switch (change.op) {
    case 'upsert':
      return planUpsert(change, facts)
    case 'replace':
      return planReplace(change, facts)
    case 'remove':
      return planRemove(change, facts)
  }
}

function planUpsert(
  { kind, values }: KindChange & { op: 'upsert' },
  { file, ids }: Facts,
): FilePlan | Refusal {
  const drafts = readDrafts(kind, values)
  if ('status' in drafts) return drafts
  if (kind.placement.kind === 'keys') return planNewKeys(kind, drafts, { file, ids })
  const edits: YamlEdit[] = []
  const resources: Envelope[] = []
  const made = new Set<string>()
  for (const draft of drafts) {
    const put = putEdits(kind, draft, file, made)
    if ('status' in put) return put
    edits.push(...put)
    resources.push(envelopeOf(kind, draft))
  }
  return { edits, outcome: { kind: 'stored', resources } }
}

function planReplace({ kind, id, value }: KindChange & { op: 'replace' }, facts: Facts): FilePlan | Refusal {
  if (id === '') return refusal(400, 'config resource id cannot be empty')
  if (kind.placement.kind === 'keys') return planKeyUpdate(kind, id, value, facts)
  const { file } = facts
  const place = findPlace(kind, id, file)
  const address = place?.name ?? nameOfAddress(kind, id)
  const draft = readDraft(kind, value, kind.placement.kind === 'policies' ? (address ?? id) : undefined)
  if ('status' in draft) return draft
  const creates = putCreates(kind) && address !== undefined
  if (place === undefined && !creates && !isSingleton(kind)) return notFound(kind, id)
  const outcome = { kind: 'stored' as const, resources: [envelopeOf(kind, draft)] }
  if (place === undefined || place.name === draft.name) {
    const edits = putEdits(kind, draft, file, new Set())
    return 'status' in edits ? edits : { edits, outcome }
  }
  if (findPlace(kind, draft.name, file) !== undefined) {
    return refusal(409, `config resource already exists: ${labelOf(kind, draft.name)}`)
  }
  // An item keeps its place under a new name; an entry of a map cannot.
  const edits: YamlEdit[] =
    kind.placement.kind === 'list'
      ? [{ op: 'set', path: place.path, value: draft.value }]
      : [{ op: 'remove', path: place.path }, setEntry(kind, draft)]
  return { edits, outcome }
}

function planRemove({ kind, id }: KindChange & { op: 'remove' }, { file }: Facts): FilePlan | Refusal {
  if (id === '') return refusal(400, 'config resource id cannot be empty')
  if (kind.placement.kind === 'keys') {
    const key = findKey(kind, id, file)
    if (key === undefined) return notFound(kind, id)
    return { edits: [{ op: 'remove', path: key.path }], outcome: { kind: 'removed', id: key.id } }
  }
  const { placement } = kind
  if (placement.kind === 'settings') {
    const own = valueAt(file, placement.path)
    const present = placement.fields.filter((field) => isTree(own) && own[field] !== undefined)
    if (present.length === 0) return notFound(kind, id)
    const edits = present.map((field): YamlEdit => ({ op: 'remove', path: [...placement.path, field] }))
    return { edits, outcome: { kind: 'removed', id: namedId(kind.name, 'default') } }
  }
  const place = findPlace(kind, id, file)
  if (place === undefined) return notFound(kind, id)
  if (isKeyPolicy(kind, place.name) && keysOf(file).length > 0) return refusal(409, missingKeyPolicy)
  const path = kind.placement.kind === 'catalog' ? catalogToRemove(place.path, file) : place.path
  return {
    edits: [{ op: 'remove', path }],
    outcome: { kind: 'removed', id: namedId(kind.name, place.name) },
  }
}

type Place = { readonly name: string; readonly path: readonly (string | number)[] }

/** Where a named record stands in the file, by its id or name. */
function findPlace(kind: Kind, id: string, file: ConfigTree): Place | undefined {
  const uuid = readUuid(id)
  const matches = (name: string) => name === id || (uuid !== undefined && namedId(kind.name, name) === uuid)
  const { placement } = kind
  const holder = valueAt(file, placement.path)
  if (placement.kind === 'catalog') {
    const at = catalogIndex(holder)
    return at === -1 ? undefined : { name: 'default', path: [...placement.path, at] }
  }
  if (placement.kind === 'list') {
    const items: readonly unknown[] = Array.isArray(holder) ? holder : []
    for (const [index, item] of items.entries()) {
      const name = isTree(item) ? nameIn(kind, item) : undefined
      if (name !== undefined && matches(name)) return { name, path: [...placement.path, index] }
    }
    return undefined
  }
  const fields = placement.kind === 'policies' ? policyFields(kind) : undefined
  const name = isTree(holder)
    ? Object.keys(holder).find((key) => matches(key) && (fields === undefined || fields.includes(key)))
    : undefined
  return name === undefined ? undefined : { name, path: [...placement.path, name] }
}

/** The catalog, or the parts around it that hold nothing else. */
function catalogToRemove(path: Place['path'], file: ConfigTree): Place['path'] {
  const around = path.slice(0, -1)
  const holder = valueAt(file, around)
  if (around.length === 0 || typeof holder !== 'object' || holder === null) return path
  return Object.keys(holder).length === 1 ? catalogToRemove(around, file) : path
}

function catalogIndex(holder: unknown): number {
  const items: readonly unknown[] = Array.isArray(holder) ? holder : []
  return items.findLastIndex((item) => isTree(item) && item['inline'] !== undefined)
}

/** `made` are the sections that edits before these make. */
function putEdits(kind: Kind, draft: Draft, file: ConfigTree, made: Set<string>): YamlEdit[] | Refusal {
  const { placement } = kind
  const place = findPlace(kind, draft.name, file)
  const section = sectionEdits(placement.path[0] ?? '', file, made)
  if (section === undefined && !(placement.kind === 'policies')) return []
  if (section === undefined)
    return refusal(409, `${kind.name} needs ${placement.path[0]} in the configuration file`)
  switch (placement.kind) {
    case 'list':
      return place === undefined
        ? [...section, { op: 'append', path: placement.path, value: draft.value }]
        : [{ op: 'set', path: place.path, value: draft.value }]
    case 'map':
      return [setEntry(kind, draft)]
    case 'policies':
      return [...section, ...policyEdits(kind, draft, file)]
    case 'settings':
      return [...section, ...settingsEdits(placement, draft, file)]
    case 'catalog':
      return catalogEdits(placement.path, draft, place)
    case 'keys':
      return []
  }
}

/** What makes a section that is missing whole; undefined where only a person can make it. */
function sectionEdits(name: string, file: ConfigTree, made: Set<string>): YamlEdit[] | undefined {
  const fresh = freshSection(name)
  if (fresh === undefined) return name === 'ui' && !isTree(file[name]) ? undefined : []
  if (isTree(file[name]) || made.has(name)) return []
  made.add(name)
  return Object.entries(fresh).map(([field, value]) => ({ op: 'set', path: [name, field], value }))
}

function setEntry({ placement }: Kind, { name, value }: Draft): YamlEdit {
  const { name: _, ...rest } = isJsonObject(value) ? value : {}
  return { op: 'set', path: [...placement.path, name], value: rest }
}

/** Keys of the key policy are records of their own: they stay as they are written, whatever is said about the rest. */
function policyEdits(kind: Kind, { name, value }: Draft, file: ConfigTree): YamlEdit[] {
  const path = [...kind.placement.path, name]
  const before = valueAt(file, path)
  if (!isKeyPolicy(kind, name) || !isJsonObject(value)) return [{ op: 'set', path, value }]
  if (!isTree(before)) return [{ op: 'set', path, value: { ...value, keys: [] } }]
  const gone = Object.keys(before).filter((field) => field !== 'keys' && !Object.hasOwn(value, field))
  return [
    ...gone.map((field): YamlEdit => ({ op: 'remove', path: [...path, field] })),
    ...Object.entries(value).map(
      ([field, member]): YamlEdit => ({ op: 'set', path: [...path, field], value: member }),
    ),
  ]
}

type SettingsPlacement = Extract<Kind['placement'], { kind: 'settings' }>

function settingsEdits({ path, fields }: SettingsPlacement, { value }: Draft, file: ConfigTree): YamlEdit[] {
  const own = valueAt(file, path)
  const sent: JsonObject = isJsonObject(value) ? value : {}
  return fields.flatMap((field): YamlEdit[] => {
    const member = sent[field]
    if (member !== undefined) return [{ op: 'set', path: [...path, field], value: member }]
    return isTree(own) && own[field] !== undefined ? [{ op: 'remove', path: [...path, field] }] : []
  })
}

/** A file has catalogs of its own for what `base` is; the last one written in place is the custom one. */
function catalogEdits(
  path: readonly string[],
  { value }: Draft,
  place: Place | undefined,
): YamlEdit[] | Refusal {
  const { base, custom } = isJsonObject(value) ? value : {}
  if (base !== undefined) {
    return refusal(
      400,
      'modelCatalog/default: in file mode there is only custom; name other catalogs in the file',
    )
  }
  const entry = { inline: custom ?? {} }
  return [
    place === undefined
      ? { op: 'append', path, value: entry }
      : { op: 'set', path: place.path, value: entry },
  ]
}

const keyKind = findKind('llm.apiKey')
const keysPath = keyKind?.placement.path ?? []

function keysOf(file: ConfigTree): readonly unknown[] {
  const keys = valueAt(file, keysPath)
  return Array.isArray(keys) ? keys : []
}

function planNewKeys(kind: Kind, drafts: readonly Draft[], { file, ids }: Facts): FilePlan | Refusal {
  if (drafts.length > 0 && !hasKeyPolicy(file)) return refusal(409, missingKeyPolicy)
  const taken = digestsIn(file, undefined)
  const edits: YamlEdit[] = []
  const resources: Envelope[] = []
  for (const [index, { value }] of drafts.entries()) {
    const id = ids[index] ?? ''
    const refused = refuseKey(id, value, taken)
    if (refused) return refused
    const stored = isJsonObject(value) ? withId(id, value) : value
    edits.push({ op: 'append', path: keysPath, value: stored })
    resources.push({ kind: kind.name, id, value: stored })
  }
  return { edits, outcome: { kind: 'stored', resources } }
}

function planKeyUpdate(kind: Kind, id: string, value: JsonValue, { file }: Facts): FilePlan | Refusal {
  const draft = readDraft(kind, value)
  if ('status' in draft) return draft
  const place = findKey(kind, id, file)
  if (place === undefined) return notFound(kind, id)
  const refused = refuseKey(place.id, draft.value, digestsIn(file, place.index))
  if (refused) return refused
  const stored = isJsonObject(draft.value) ? withId(place.id, draft.value) : draft.value
  return {
    edits: [{ op: 'set', path: place.path, value: stored }],
    outcome: { kind: 'stored', resources: [{ kind: kind.name, id: place.id, value: stored }] },
  }
}

type KeyPlace = { readonly id: string; readonly index: number; readonly path: readonly (string | number)[] }

/** Keys of the file are known by the `metadata.id` they have there. */
function findKey(_kind: Kind, id: string, file: ConfigTree): KeyPlace | undefined {
  const uuid = readUuid(id) ?? id
  const index = keysOf(file).findIndex((key) => {
    const known = valueAt(key, ['metadata', 'id'])
    return typeof known === 'string' && (readUuid(known) ?? known) === uuid
  })
  const found = valueAt(keysOf(file)[index], ['metadata', 'id'])
  return typeof found === 'string' ? { id: found, index, path: [...keysPath, index] } : undefined
}

function refuseKey(id: string, value: JsonValue, taken: Set<string>): Refusal | undefined {
  const mistakes = keyIssues(value)
  if (mistakes.length > 0) return refusal(500, mistakes.join('\n'))
  const item = keyItem(id, value)
  const digest = item && recordDigest(item)
  if (digest === undefined) return undefined
  if (taken.has(digest)) return refusal(409, 'the same key exists already')
  taken.add(digest)
  return undefined
}

function digestsIn(file: ConfigTree, except: number | undefined): Set<string> {
  const digests = new Set<string>()
  for (const [index, key] of keysOf(file).entries()) {
    const digest = index !== except && isKeyRecord(key) ? recordDigest(key) : undefined
    if (digest !== undefined) digests.add(digest)
  }
  return digests
}

function isKeyRecord(value: unknown): value is ApiKeyRecord {
  return check(apiKeyRecordSchema, value).kind === 'valid'
}

/** In file mode a record has neither revision nor times (specification, "Resource envelope"). */
function envelopeOf(kind: Kind, { name, value }: Draft): Envelope {
  const id = namedId(kind.name, name)
  return kind.placement.kind === 'policies'
    ? { kind: kind.name, id, name, value }
    : { kind: kind.name, id, value }
}
