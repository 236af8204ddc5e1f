import { isJsonObject, type JsonObject, type JsonValue } from '../../lib/json/json.ts'
import { nameIn } from '../hybrid/record-index.ts'
import { findKind, isKeyPolicy, type Kind, singletonName } from '../kinds.ts'
import { maskRecord } from '../secrets/secret-paths.ts'

/** A change of records of one kind. Paths of items accept the id and, where there is one, the name. */
export type KindChange =
  | { readonly op: 'upsert'; readonly kind: Kind; readonly values: readonly JsonValue[] }
  | { readonly op: 'replace'; readonly kind: Kind; readonly id: string; readonly value: JsonValue }
  | { readonly op: 'remove'; readonly kind: Kind; readonly id: string }

/** What a client wants changed. */
export type Change = KindChange | { readonly op: 'import'; readonly records: readonly ImportedRecord[] }

/** A record of an export, with the id it is stored under. */
export type ImportedRecord = { readonly kind: Kind; readonly id: string; readonly draft: Draft }

export type ChangeRequest = {
  readonly change: Change
  /** Says what would happen, and leaves everything as it is. */
  readonly dryRun: boolean
  /** The header `if-match`, as sent. */
  readonly ifMatch: string | undefined
}

/** A record as the API shows it (specification, "Resource envelope"). */
export type Envelope = {
  readonly kind: string
  readonly id: string
  /** Of a policy, whose value does not hold it. */
  readonly name?: string
  readonly value: JsonValue
  readonly revision?: number
  readonly createdAt?: string
  readonly updatedAt?: string
  /** The file says the same thing, so this record does not count, or not fully. */
  readonly shadowed?: true
}

export type Refusal = { readonly kind: 'refused'; readonly status: number; readonly message: string }

export type ChangeOutcome =
  | Refusal
  | { readonly kind: 'stored'; readonly resources: readonly Envelope[] }
  | { readonly kind: 'removed'; readonly id: string }

export function refusal(status: number, message: string): Refusal {
  return { kind: 'refused', status, message }
}

/** A value that may be stored under this name, as far as it can be told from itself. */
export type Draft = { readonly name: string; readonly value: JsonValue }

/**
 * Reads what a client sent as a record. `name` is what its address says, where that is a name. The refusals are of status 400
 * (reference product's messages); what the schema says about the value is not looked at here.
 */
export function readDraft(kind: Kind, sent: JsonValue, name?: string): Draft | Refusal {
  switch (kind.placement.kind) {
    case 'keys':
      return readKeyDraft(kind, sent)
    case 'policies':
      return readPolicyDraft(kind, sent, name)
    case 'settings':
    case 'catalog':
      return readSingletonDraft(kind, sent, kind.placement.fields)
    case 'list':
    case 'map':
      return readNamedDraft(kind, sent)
  }
}

/** The words for a record in messages: never longer than what a person reads. */
export function labelOf(kind: Kind, id: string): string {
  const shown = id.length > 200 ? `${id.slice(0, 200)}…` : id
  return `${kind.name}/${shown}`
}

export function notFound(kind: Kind, id: string): Refusal {
  return refusal(404, `config resource not found: ${labelOf(kind, id)}`)
}

function readKeyDraft({ name }: Kind, sent: JsonValue): Draft | Refusal {
  if (!isJsonObject(sent)) return refusal(400, `${name} resources must be JSON objects`)
  const { metadata } = sent
  if (metadata !== undefined && !isJsonObject(metadata)) {
    return refusal(400, `${name} resources require value.metadata to be an object`)
  }
  if (metadata !== undefined && Object.hasOwn(metadata, 'id')) {
    return refusal(400, `${name} resources must not include value.metadata.id`)
  }
  // Decisions 5: an empty key is a mistake of the request, not of the configuration.
  if (sent['key'] === '') return refusal(400, `${name} resources must not have an empty key`)
  return { name: '', value: sent }
}

function readPolicyDraft(kind: Kind, sent: JsonValue, name: string | undefined): Draft | Refusal {
  if (name === undefined) {
    const found = isJsonObject(sent) ? nameIn(kind, sent) : undefined
    if (found === undefined || !isJsonObject(sent))
      return refusal(400, `${kind.name} resources require an item ID`)
    const { name: _, ...policy } = sent
    return readPolicyDraft(kind, policy, found)
  }
  if (isKeyPolicy(kind, name) && isJsonObject(sent) && Object.hasOwn(sent, 'keys')) {
    return refusal(400, `${labelOf(kind, name)} must not include keys; use ${keyKindName} resources`)
  }
  if (typeof sent !== 'object' || sent === null) {
    return refusal(400, `${kind.name} resources must be JSON objects or lists`)
  }
  return { name, value: sent }
}

const keyKindName = findKind('llm.apiKey')?.name ?? ''

function readSingletonDraft(kind: Kind, sent: JsonValue, fields: readonly string[]): Draft | Refusal {
  if (!isJsonObject(sent)) return refusal(400, `${kind.name} resources must be JSON objects`)
  const stray = Object.keys(sent).find((field) => !fields.includes(field))
  if (stray === undefined) return { name: singletonName, value: sent }
  return refusal(400, `${kind.name}/${singletonName} contains unsupported field: ${stray.slice(0, 100)}`)
}

function readNamedDraft(kind: Kind, sent: JsonValue): Draft | Refusal {
  if (!isJsonObject(sent)) return refusal(400, `${kind.name} resources must be JSON objects`)
  const name = nameIn(kind, sent)
  if (name !== undefined) return { name, value: sent }
  const members = kind.placement.kind === 'list' ? kind.placement.identity : ['name']
  const words = members.map((member) => `value.${member}`).join(' or ')
  return refusal(400, `${kind.name} resources require ${words}`)
}

/** Drafts of a collection, which must be about different records. */
export function readDrafts(kind: Kind, values: readonly JsonValue[]): Draft[] | Refusal {
  const drafts: Draft[] = []
  const names = new Set<string>()
  for (const value of values) {
    const draft = readDraft(kind, value)
    if ('status' in draft) return draft
    const known = names.has(draft.name)
    if (known && kind.placement.kind !== 'keys') {
      return refusal(400, `${labelOf(kind, draft.name)} is in this request more than once`)
    }
    names.add(draft.name)
    drafts.push(draft)
  }
  return drafts
}

/** Whether a record of this kind is known by a name that paths may use. */
export function isNamed(kind: Kind): boolean {
  return kind.placement.kind !== 'keys'
}

/** Whether the item address of a record may make it (decisions 6). */
export function putCreates(kind: Kind): boolean {
  return kind.placement.kind === 'policies'
}

/** For audit: a member of a value that has changed, before and after; secrets are masked and long values cut. */
export type ChangedField = { readonly field: string; readonly before?: string; readonly after?: string }

const maxChangedFields = 50
const maxShownChars = 200

/** For audit: the members that a value has and another has not, or has otherwise. A value that is no object has no members. */
export function changedFields(
  { kind, name }: { kind: Kind; name?: string | undefined },
  before: JsonValue | undefined,
  after: JsonValue | undefined,
): ChangedField[] {
  const [one, other] = [before, after].map((value) => membersOf(value))
  const [shownOne, shownOther] = [before, after].map((value) =>
    membersOf(value === undefined ? undefined : maskRecord(kind, name, value)),
  )
  return [...new Set([...Object.keys(one ?? {}), ...Object.keys(other ?? {})])]
    .filter((field) => JSON.stringify(one?.[field]) !== JSON.stringify(other?.[field]))
    .slice(0, maxChangedFields)
    .map((field) => ({
      field: field.slice(0, 100),
      ...textAs('before', shownOne?.[field]),
      ...textAs('after', shownOther?.[field]),
    }))
}

function membersOf(value: JsonValue | undefined): JsonObject {
  if (isJsonObject(value)) return value
  return value === undefined ? {} : { value }
}

function textAs(when: 'before' | 'after', value: JsonValue | undefined): Partial<ChangedField> {
  if (value === undefined) return {}
  const text = JSON.stringify(value)
  return { [when]: text.length > maxShownChars ? `${text.slice(0, maxShownChars)}…` : text }
}
