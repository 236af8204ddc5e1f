import { isJsonObject, type JsonObject, type JsonValue } from '../../lib/json/json.ts'
import { withId } from '../change/key-id.ts'
import { nameIn } from '../hybrid/record.ts'
import { findKind, type Kind } from '../kinds.ts'
import { maskRecord } from '../secrets/secret-paths.ts'
import { mask } from '../secrets/secret-text.ts'
import type { HistoryRecord } from '../stores/store.ts'
import { type DecodedVersion, findField, setField } from '../stores/value-codec.ts'
import { type Difference, differencesOf, type Side } from './diff.ts'

/** A recorded change as lists show it. */
export type HistorySummary = {
  readonly id: number
  readonly at: string
  readonly operation: HistoryRecord['op']
  readonly origin: HistoryRecord['origin']
  /** Id of the reverted change. */
  readonly reverts?: number
  readonly kind: string
  readonly resourceId: string
  /** Name of the record after the change, or before its deletion; of a virtual key that in its metadata. */
  readonly name?: string
  readonly revision: number
  readonly who: { readonly principal?: string; readonly address: string }
  readonly requestId: string
  /** Changed members of the value. */
  readonly fields: readonly string[]
}

/** A recorded change with its values, secrets masked. */
export type HistoryDetail = HistorySummary & {
  readonly before?: JsonValue
  readonly after?: JsonValue
  readonly differences: readonly Difference[]
  /** Reason why a value is not shown. */
  readonly unreadable?: string
}

/** Creates the view of a record. Secrets are masked; changed secrets are listed as differences. */
export function viewHistory(record: HistoryRecord): HistoryDetail {
  const kind = findKind(record.kind)
  const before = sideOf(kind, record, record.before)
  const after = sideOf(kind, record, record.after)
  const differences = differencesOf(before, after)
  const { id, at, op, origin, reverts, resourceId, revision, principal, address, requestId } = record
  const name = after.name ?? before.name ?? keyName(kind, after.shown ?? before.shown)
  const unreadable = before.unreadable ?? after.unreadable
  return {
    id,
    at,
    operation: op,
    origin,
    ...(reverts === undefined ? {} : { reverts }),
    kind: record.kind,
    resourceId,
    ...(name === undefined ? {} : { name }),
    revision,
    who: { ...(principal === undefined ? {} : { principal }), address },
    requestId,
    fields: fieldsOf(differences, before, after),
    ...(before.shown === undefined ? {} : { before: before.shown }),
    ...(after.shown === undefined ? {} : { after: after.shown }),
    differences,
    ...(unreadable === undefined ? {} : { unreadable }),
  }
}

/** Name of a virtual key, from its metadata. */
function keyName(kind: Kind | undefined, value: JsonValue | undefined): string | undefined {
  const metadata = kind?.placement.kind === 'keys' && isJsonObject(value) ? value['metadata'] : undefined
  const name = isJsonObject(metadata) ? metadata['name'] : undefined
  return typeof name === 'string' ? name : undefined
}

/** The view without values. */
export function summaryOf(detail: HistoryDetail): HistorySummary {
  const { before: _, after: __, differences: ___, unreadable: ____, ...summary } = detail
  return summary
}

type VersionSide = Side & { readonly name?: string | undefined; readonly unreadable?: string }

function sideOf(
  kind: Kind | undefined,
  { resourceId }: HistoryRecord,
  version: DecodedVersion | undefined,
): VersionSide {
  if (version === undefined) return { value: undefined, shown: undefined }
  if (version.kind === 'unreadable') return { value: undefined, shown: undefined, unreadable: version.reason }
  if (kind === undefined) {
    return { value: undefined, shown: undefined, unreadable: 'this version of Tollgate has no such kind' }
  }
  const clear = sentValue(kind, resourceId, version.value)
  const { value } = sentValue(kind, resourceId, withoutRemoved(version))
  return { value: clear.value, shown: maskRecord(kind, clear.name, value), name: clear.name }
}

/** A stored value as clients send and receive it, and its name. */
export function sentValue(
  kind: Kind,
  id: string,
  stored: JsonObject,
): { readonly name: string | undefined; readonly value: JsonValue } {
  const name = kind.placement.kind === 'keys' ? undefined : nameIn(kind, stored)
  if (kind.placement.kind === 'policies') return { name, value: stored['policy'] ?? null }
  return { name, value: kind.placement.kind === 'keys' ? withId(id, stored) : stored }
}

/** The value with masks in place of the fingerprints of removed secrets. */
function withoutRemoved({ value, removed }: DecodedVersion & { kind: 'value' }): JsonObject {
  if (removed.length === 0) return value
  const copy: JsonObject = JSON.parse(JSON.stringify(value))
  for (const { path } of removed) {
    const field = findField(copy, path)
    if (field !== undefined) setField(field.parent, field.name, mask)
  }
  return copy
}

/** First members of the paths of differences; members of the value itself if it was created or deleted. */
function fieldsOf(differences: readonly Difference[], before: Side, after: Side): string[] {
  const whole = before.shown === undefined || after.shown === undefined
  if (whole && differences.length > 0) {
    const value = after.shown ?? before.shown
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.keys(value) : []
  }
  const names = differences.map(({ path }) => path.split('/')[1] ?? '')
  return [...new Set(names)].map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~')).filter(Boolean)
}
