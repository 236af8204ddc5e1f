import { isJsonObject, type JsonValue } from '../../lib/json/json.ts'
import { nameIn } from '../hybrid/record.ts'
import { isKeyPolicy, type Kind, keyKind, singletonName } from '../kinds.ts'

/** A new secret of a key. The id of its record stays, and with it usage, budgets and limits. */
export type Rotation = {
  /** Hash of the new secret. */
  readonly keyHash: string
  /** Time for which earlier secrets stay valid, in milliseconds; 0 ends them at once. */
  readonly overlapMs: number
  /** Time of the request, in milliseconds since the epoch. */
  readonly nowMs: number
}

/** A change of records of one kind. `id` is an address: the id or, of a named record, the name. */
export type KindChange =
  | { readonly op: 'upsert'; readonly kind: Kind; readonly values: readonly JsonValue[] }
  | { readonly op: 'replace'; readonly kind: Kind; readonly id: string; readonly value: JsonValue }
  | { readonly op: 'remove'; readonly kind: Kind; readonly id: string }
  | { readonly op: 'rotate'; readonly kind: Kind; readonly id: string; readonly rotation: Rotation }

/** A requested change. */
export type Change =
  | KindChange
  | { readonly op: 'import'; readonly records: readonly ImportedRecord[] }
  | RevertChange

/** Restores the value of a record before a change: an earlier one, or none. */
export type RevertChange = {
  readonly op: 'revert'
  /** Id of the reverted change in the history. */
  readonly of: number
  readonly kind: Kind
  readonly id: string
  /** Undefined removes the record. */
  readonly draft: Draft | undefined
}

/** A record of an export, with its id. */
export type ImportedRecord = { readonly kind: Kind; readonly id: string; readonly draft: Draft }

export type ChangeRequest = {
  readonly change: Change
  /** Returns the outcome without storing anything. */
  readonly dryRun: boolean
  /** The header `if-match`, as sent. */
  readonly ifMatch: string | undefined
}

/** A record as the API returns it (specification, "Resource envelope"). */
export type Envelope = {
  readonly kind: string
  readonly id: string
  /** Only of policies, whose value does not contain it. */
  readonly name?: string
  readonly value: JsonValue
  readonly revision?: number
  readonly createdAt?: string
  readonly updatedAt?: string
  /** The file has the same entry or field, so this record is not active, or only in part. */
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

/** A value to store under a name; not validated against the schema. Keys have an empty name. */
export type Draft = { readonly kind: 'draft'; readonly name: string; readonly value: JsonValue }

/**
 * Reads the value of a request as a record. `name` is the name of the address, if it has one. Refusals have
 * status 400 and the messages of the reference product. Does not validate the value against the schema.
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

/** Kind and id for messages; long ids are truncated. */
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
  const reserved = Object.keys(metadata ?? {}).find(isReserved)
  if (reserved !== undefined) {
    const field = reserved.slice(0, 200)
    return refusal(400, `${name} metadata field ${field} uses the reserved ${reservedPrefix} prefix`)
  }
  // Decisions 5: an empty key is a mistake in the request, not in the configuration.
  if (sent['key'] === '') return refusal(400, `${name} resources must not have an empty key`)
  return { kind: 'draft', name: '', value: sent }
}

/** Metadata that agentgateway writes itself; its UI sends the hint. */
const reservedPrefix = 'agentgateway.dev/'

function isReserved(field: string): boolean {
  return field.startsWith(reservedPrefix) && field !== `${reservedPrefix}keyHint`
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
    return refusal(400, `${labelOf(kind, name)} must not include keys; use ${keyKind.name} resources`)
  }
  if (typeof sent !== 'object' || sent === null) {
    return refusal(400, `${kind.name} resources must be JSON objects or lists`)
  }
  return { kind: 'draft', name, value: sent }
}

function readSingletonDraft(kind: Kind, sent: JsonValue, fields: readonly string[]): Draft | Refusal {
  if (!isJsonObject(sent)) return refusal(400, `${kind.name} resources must be JSON objects`)
  const stray = Object.keys(sent).find((field) => !fields.includes(field))
  if (stray === undefined) return { kind: 'draft', name: singletonName, value: sent }
  return refusal(400, `${kind.name}/${singletonName} contains unsupported field: ${stray.slice(0, 100)}`)
}

function readNamedDraft(kind: Kind, sent: JsonValue): Draft | Refusal {
  if (!isJsonObject(sent)) return refusal(400, `${kind.name} resources must be JSON objects`)
  const name = nameIn(kind, sent)
  if (name !== undefined) return { kind: 'draft', name, value: sent }
  const members = kind.placement.kind === 'list' ? kind.placement.identity : ['name']
  const words = members.map((member) => `value.${member}`).join(' or ')
  return refusal(400, `${kind.name} resources require ${words}`)
}

/** Reads the values of a collection. Two of the same name are refused. */
export function readDrafts(
  kind: Kind,
  values: readonly JsonValue[],
): { readonly kind: 'drafts'; readonly drafts: readonly Draft[] } | Refusal {
  const drafts: Draft[] = []
  const names = new Set<string>()
  for (const value of values) {
    const draft = readDraft(kind, value)
    if (draft.kind === 'refused') return draft
    if (names.has(draft.name) && kind.placement.kind !== 'keys') {
      return refusal(400, `${labelOf(kind, draft.name)} is in this request more than once`)
    }
    names.add(draft.name)
    drafts.push(draft)
  }
  return { kind: 'drafts', drafts }
}

/** Whether records of this kind have a name, which addresses may use. */
export function isNamed(kind: Kind): boolean {
  return kind.placement.kind !== 'keys'
}

/** Whether a PUT to an item address creates the record (decisions 6). */
export function putCreates(kind: Kind): boolean {
  return kind.placement.kind === 'policies'
}
