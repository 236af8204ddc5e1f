import { isJsonObject, type JsonObject, type JsonValue } from '../../lib/json/json.ts'
import { type ImportedRecord, type Refusal, readDraft, refusal } from '../change/change.ts'
import { readUuid } from '../change/identity.ts'
import { withoutId } from '../change/key-id.ts'
import { findKind, type Kind } from '../kinds.ts'

const members = new Set(['kind', 'id', 'name', 'value', 'revision', 'createdAt', 'updatedAt', 'shadowed'])

/** Reads an item of an export: an envelope with kind and id. Revision and times are assigned again. */
export function readImported(
  item: JsonValue,
): { readonly kind: 'imported'; readonly record: ImportedRecord } | Refusal {
  if (!isJsonObject(item)) return refusal(422, 'resources must be a list of objects with a value')
  const stray = Object.keys(item).find((key) => !members.has(key))
  if (stray !== undefined) return refusal(400, `unknown member ${stray.slice(0, 100)} beside value`)
  const { kind: kindName, id: sentId, name, value } = item
  const kind = typeof kindName === 'string' ? findKind(kindName) : undefined
  if (kind === undefined) return refusal(400, 'every item of an import needs its kind')
  const id = typeof sentId === 'string' ? readUuid(sentId) : undefined
  if (id === undefined) return refusal(400, 'every item of an import needs its id, a UUID')
  if (value === undefined) return refusal(422, 'every item of resources needs a value')
  const own = kind.placement.kind === 'keys' && isJsonObject(value) ? withoutId(id, value) : value
  const draft = readDraft(kind, own, nameOf(kind, name))
  return draft.kind === 'refused' ? draft : { kind: 'imported', record: { kind, id, draft } }
}

/** The items of an export, or of one page of it. */
export function exportedItems({
  resources,
  ...rest
}: JsonObject): { readonly kind: 'items'; readonly items: readonly JsonValue[] } | Refusal {
  const stray = Object.keys(rest).find((member) => member !== 'nextCursor')
  if (stray !== undefined) return refusal(400, `unknown member ${stray.slice(0, 100)} beside resources`)
  return Array.isArray(resources)
    ? { kind: 'items', items: resources }
    : refusal(422, 'resources must be a list')
}

function nameOf({ placement }: Kind, name: JsonValue | undefined): string | undefined {
  return placement.kind === 'policies' && typeof name === 'string' ? name : undefined
}
