import type { JsonValue } from '../../lib/json/json.ts'
import { parseTimestamp } from '../../lib/timestamp.ts'
import type { Envelope } from '../../resources/change/change.ts'
import { keyKind } from '../../resources/kinds.ts'
import type { Resources } from '../../resources/resources.ts'
import { maskRecord } from '../../resources/secrets/secret-paths.ts'
import { type KeyEntry, metadataText, stateOf } from './key-entries.ts'

type KeyContext = {
  readonly resources: Resources
  /** Source of keys that are not in a database. */
  readonly source: 'file' | 'object'
  readonly nowMs: number
  readonly lastUsedMs: number | undefined
}

/** A key as the API returns it: never the key or its hash. */
export function viewKey(
  { id, scope, record }: KeyEntry,
  { resources, source, nowMs, lastUsedMs }: KeyContext,
): Record<string, unknown> {
  const { expiresAt, disabled, allowedModels, allowedTargets, limits, budgets, previousKeys } = record
  const stored = scope === 'llm' ? storedEnvelope(id, resources) : undefined
  const earlier = (previousKeys ?? []).filter((one) => (parseTimestamp(one.expiresAt) ?? 0) > nowMs)
  return {
    id,
    scope,
    source: stored === undefined ? source : 'database',
    state: stateOf(record, nowMs),
    name: textOrUndefined(metadataText(record, 'name')),
    user: textOrUndefined(metadataText(record, 'user')),
    group: textOrUndefined(metadataText(record, 'group')),
    metadata: maskedMetadata(record.metadata),
    expiresAt,
    disabled,
    allowedModels,
    allowedTargets,
    limits,
    budgets,
    previousKeys: earlier.length === 0 ? undefined : earlier.map((one) => ({ expiresAt: one.expiresAt })),
    revision: stored?.revision,
    createdAt: stored?.createdAt,
    updatedAt: stored?.updatedAt,
    lastUsedAt: lastUsedMs === undefined ? undefined : new Date(lastUsedMs).toISOString(),
  }
}

function storedEnvelope(id: string, resources: Resources): Envelope | undefined {
  const found = resources.find(keyKind, id)
  return found.kind === 'found' ? found.envelope : undefined
}

function textOrUndefined(text: string): string | undefined {
  return text === '' ? undefined : text
}

function maskedMetadata(metadata: unknown): unknown {
  if (metadata === undefined) return undefined
  // The guard: metadata is parsed from JSON or YAML.
  const masked = maskRecord(keyKind, undefined, { metadata: metadata as JsonValue })
  return (masked as { readonly metadata: unknown }).metadata
}
