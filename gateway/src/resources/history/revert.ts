import type { JsonObject, JsonValue } from '../../lib/json/json.ts'
import { type Draft, type Refusal, type RevertChange, readDraft, refusal } from '../change/change.ts'
import { withoutId } from '../change/key-id.ts'
import { toStored } from '../hybrid/record.ts'
import { findKind, type Kind } from '../kinds.ts'
import type { Resources } from '../resources.ts'
import type { HistoryRecord } from '../stores/store.ts'
import {
  type DecodedVersion,
  findField,
  isFingerprintOf,
  type RemovedSecret,
  setField,
} from '../stores/value-codec.ts'
import { sentValue } from './history-view.ts'

type Revert = { readonly kind: 'revert'; readonly change: RevertChange }

/**
 * The change that restores the value of a record before a recorded change. Removed secrets are restored from
 * the current record if it has the same; otherwise the revert is refused.
 */
export function revertOf(record: HistoryRecord, resources: Pick<Resources, 'find'>): Revert | Refusal {
  const kind = findKind(record.kind)
  if (kind === undefined)
    return refusal(409, `unsupported config resource kind: ${record.kind.slice(0, 200)}`)
  const { id: of, resourceId: id, before } = record
  const change = { op: 'revert', of, kind, id } as const
  if (record.op === 'create') return { kind: 'revert', change: { ...change, draft: undefined } }
  if (before === undefined)
    return refusal(409, 'the value before this change was not readable and is not stored')
  if (before.kind === 'unreadable') {
    return refusal(409, `the value before this change cannot be read: ${before.reason}`)
  }
  const restored = withSecrets(before, () => currentValue(kind, id, resources))
  if (restored.kind === 'refused') return restored
  const draft = draftOf(kind, id, restored.value)
  return draft.kind === 'refused' ? draft : { kind: 'revert', change: { ...change, draft } }
}

function draftOf(kind: Kind, id: string, stored: JsonObject): Draft | Refusal {
  if (kind.placement.kind === 'keys') return readDraft(kind, stored)
  const { name, value } = sentValue(kind, id, stored)
  return readDraft(kind, value, name)
}

type Restored = { readonly kind: 'restored'; readonly value: JsonObject } | Refusal

function withSecrets(
  { value, removed }: DecodedVersion & { kind: 'value' },
  current: () => JsonObject | undefined,
): Restored {
  if (removed.length === 0) return { kind: 'restored', value }
  const copy: JsonObject = JSON.parse(JSON.stringify(value))
  const source = current()
  for (const secret of removed) {
    const field = findField(copy, secret.path)
    const found = secretOf(source, secret)
    if (field === undefined || found === undefined) return refusal(409, missingSecret(secret))
    setField(field.parent, field.name, found)
  }
  return { kind: 'restored', value: copy }
}

function secretOf(
  source: JsonObject | undefined,
  { path, fingerprint }: RemovedSecret,
): JsonValue | undefined {
  const field = source === undefined ? undefined : findField(source, path)
  return field !== undefined && isFingerprintOf(fingerprint, field.value) ? field.value : undefined
}

function missingSecret({ path }: RemovedSecret): string {
  const place = path.join('.').slice(0, 200)
  return `the history does not contain the secret ${place}: write the record with its secret; later changes are reverted with their secrets if config.database.encryptionKey is set`
}

/** The current value of a record as it is stored. */
function currentValue(kind: Kind, id: string, resources: Pick<Resources, 'find'>): JsonObject | undefined {
  const found = resources.find(kind, id)
  if (found.kind === 'refused') return undefined
  const { name = '', value } = found.envelope
  const stored = toStored(kind, name, value)
  return kind.placement.kind === 'keys' ? withoutId(id, stored) : stored
}
