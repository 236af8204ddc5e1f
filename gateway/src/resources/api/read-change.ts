import { isJsonObject, type JsonObject, type JsonValue } from '../../lib/json/json.ts'
import {
  type Change,
  type Draft,
  type ImportedRecord,
  type Refusal,
  readDraft,
  refusal,
} from '../change/change.ts'
import { withoutId } from '../change/key-id.ts'
import { nameOfAddress } from '../change/plan.ts'
import { findRestriction } from '../change/restrictions.ts'
import type { Kind } from '../kinds.ts'
import { findConfigRecord, idOfRecord, shownValue, storedValue } from '../records/records.ts'
import { retainStored } from '../records/retain.ts'
import { maskedPlace } from '../secrets/secret-paths.ts'
import { exportedItems, readImported } from './import.ts'
import type { ApiPath } from './path.ts'
import { readBody } from './read-body.ts'
import type { ApiOptions, ApiRequest } from './request.ts'

export type KindPath = Extract<ApiPath, { kind: 'collection' | 'item' }>

type ReadChange = { readonly kind: 'change'; readonly change: Change }
type ReadValues = { readonly kind: 'values'; readonly values: readonly JsonValue[] }

/** Reads the change of records of one kind. */
export async function readChange(
  { path, kind, retain }: { readonly path: KindPath; readonly kind: Kind; readonly retain: boolean },
  request: ApiRequest,
  options: ApiOptions,
): Promise<ReadChange | Refusal> {
  if (path.kind === 'item' && request.method === 'DELETE') {
    return { kind: 'change', change: { op: 'remove', kind, id: path.id } }
  }
  const body = await readBody(request, options.workQueue)
  if (body.kind === 'refused') return body
  const read = path.kind === 'item' ? itemValue(body.value, kind) : collectionValues(body.value, kind)
  if (read.kind === 'refused') return read
  const values =
    retain && path.kind === 'item'
      ? read.values.map((value) => withStored(value, kind, path.id, options))
      : read.values
  const name = path.kind === 'item' ? nameOfAddress(kind, path.id) : undefined
  for (const value of values) {
    const pause = options.yieldPoint()
    if (pause) await pause
    const draft = readDraft(kind, value, kind.placement.kind === 'policies' ? name : undefined)
    if (draft.kind === 'refused') {
      // The plan resolves an unknown address; the refusal may apply to the record at it.
      if (path.kind === 'item' && name === undefined && kind.placement.kind === 'policies') continue
      return draft
    }
    const refused = refuseDraft(kind, draft, options)
    if (refused) return refused
  }
  if (path.kind === 'collection') return { kind: 'change', change: { op: 'upsert', kind, values } }
  const [value] = values
  if (value === undefined) return refusal(422, 'value is required')
  return { kind: 'change', change: { op: 'replace', kind, id: path.id, value } }
}

/** The value with the stored parts of the record, where it equals what a read returns. */
function withStored(
  sent: JsonValue,
  kind: Kind,
  address: string,
  { resources }: Pick<ApiOptions, 'resources'>,
): JsonValue {
  const record = findConfigRecord(resources, kind, address)
  if (record === undefined) return sent
  const id = idOfRecord(record)
  const own = (value: JsonValue) =>
    kind.placement.kind === 'keys' && isJsonObject(value) ? withoutId(id, value) : value
  return retainStored(sent, { shown: own(shownValue(record, resources)), stored: own(storedValue(record)) })
}

/** Reads the records of an export: all of them are stored, or none. */
export async function readImport(request: ApiRequest, options: ApiOptions): Promise<ReadChange | Refusal> {
  const body = await readBody(request, options.workQueue)
  if (body.kind === 'refused') return body
  const exported = exportedItems(body.value)
  if (exported.kind === 'refused') return exported
  const records: ImportedRecord[] = []
  for (const item of exported.items) {
    const pause = options.yieldPoint()
    if (pause) await pause
    const imported = readImported(item)
    if (imported.kind === 'refused') return imported
    const { record } = imported
    const refused = refuseDraft(record.kind, record.draft, options)
    if (refused) return refused
    records.push(record)
  }
  return { kind: 'change', change: { op: 'import', records } }
}

/** Refuses values with masks in place of secrets, and values restricted by `config.storage`. */
export function refuseDraft(
  kind: Kind,
  { name, value }: Draft,
  { allowances, expand }: Pick<ApiOptions, 'allowances' | 'expand'>,
): Refusal | undefined {
  const masked = maskedPlace(kind, name, value)
  if (masked !== undefined) return refusal(400, maskSent(masked))
  // Expanded, because a reference may have any default.
  const reason = findRestriction(kind, name, expand(value).value, allowances)
  return reason === undefined ? undefined : refusal(403, reason)
}

function maskSent(place: string): string {
  return `${place.slice(0, 200)} is masked: send the secret itself, which a read with ?reveal=true returns`
}

/** Members of an envelope, which clients may send back. */
const envelopeMembers = new Set([
  ...['id', 'kind', 'name', 'revision', 'createdAt', 'updatedAt', 'shadowed', 'origin'],
])

function itemValue(body: JsonObject, kind: Kind): ReadValues | Refusal {
  const value = body['value']
  if (value === undefined) return refusal(422, 'value is required')
  const stray = Object.keys(body).find((key) => key !== 'value' && !envelopeMembers.has(key))
  if (stray !== undefined) return refusal(400, `unknown member ${stray.slice(0, 100)} beside value`)
  return wrongKind(body, kind) ?? { kind: 'values', values: [value] }
}

function wrongKind({ kind: sent }: JsonObject, kind: Kind): Refusal | undefined {
  return sent === undefined || sent === kind.name
    ? undefined
    : refusal(400, `kind must be ${kind.name}, as in the address`)
}

/** Specification, "Rules" 1: ids are not sent on create. */
function collectionValues(body: JsonObject, kind: Kind): ReadValues | Refusal {
  const { resources, ...rest } = body
  const [stray] = Object.keys(rest)
  if (stray !== undefined) return refusal(400, `unknown member ${stray.slice(0, 100)} beside resources`)
  if (resources === undefined) return { kind: 'values', values: [] }
  if (!Array.isArray(resources)) return refusal(422, 'resources must be a list')
  const values: JsonValue[] = []
  for (const item of resources) {
    if (!isJsonObject(item)) return refusal(422, 'resources must be a list of objects with a value')
    const { value, ...others } = item
    if (Object.hasOwn(others, 'id'))
      return refusal(400, 'resources must not include an id: it is made on create')
    const extra = Object.keys(others).find((key) => !envelopeMembers.has(key))
    if (extra !== undefined) return refusal(400, `unknown member ${extra.slice(0, 100)} beside value`)
    const wrong = wrongKind(item, kind)
    if (wrong !== undefined) return wrong
    if (value === undefined) return refusal(422, 'every item of resources needs a value')
    values.push(value)
  }
  return { kind: 'values', values }
}
