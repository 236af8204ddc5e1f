import { hash } from 'node:crypto'
import { isJsonObject, type JsonObject } from '../../lib/json/json.ts'
import { parseTimestamp } from '../../lib/timestamp.ts'
import type { KeyBudgets, ModelAccess, TargetAccess } from '../../pipeline/exchange.ts'
import { compileKeyLimits, type KeyLimit } from '../../pipeline/keys/key-limits.ts'
import { compilePatterns } from './name-patterns.ts'
import { type ApiKeyRecord, digestOfHash, recordDigest } from './record.ts'

/** Index entry of a key, without the key itself. A record has one, and one for each earlier key. */
export type ApiKeyEntry = {
  /** Metadata with `id`: the variable `apiKey`. */
  readonly facts: JsonObject
  readonly id: string
  readonly group: string
  /** Undefined permits all models. */
  readonly models: ModelAccess | undefined
  /** Undefined permits all MCP targets. */
  readonly targets: TargetAccess | undefined
  readonly limits: readonly KeyLimit[] | undefined
  readonly budgets: readonly KeyBudgets[] | undefined
  /** The key is valid before this time, in milliseconds since the epoch: infinite without an end. */
  readonly validUntil: number
  /** Reason of the refusal after the end. */
  readonly ending: 'disabled' | 'expired' | 'rotated'
}

/** Returns the entries of a valid record (`checkRecord`) by digest of the key. */
export function apiKeyEntries(record: ApiKeyRecord): (readonly [digest: string, entry: ApiKeyEntry])[] {
  const digest = recordDigest(record)
  if (digest === undefined) throw new Error('virtual key record with a malformed keyHash')
  const entry = entryOf(record, digest)
  const entries: [string, ApiKeyEntry][] = []
  for (const { keyHash, expiresAt } of record.previousKeys ?? []) {
    const validUntil = timeOf(expiresAt)
    const isEarlier = validUntil < entry.validUntil
    entries.push([
      digestOfHash(keyHash) ?? '',
      isEarlier ? { ...entry, validUntil, ending: 'rotated' } : entry,
    ])
  }
  // The current key last: it has precedence.
  entries.push([digest, entry])
  return entries
}

function entryOf(record: ApiKeyRecord, digest: string): ApiKeyEntry {
  const { metadata, allowedModels, allowedTargets, limits, budgets, expiresAt, disabled = false } = record
  const id = idOf(record, digest)
  const group = metadata?.['group']
  const hasId = isJsonObject(metadata) && metadata['id'] === id
  return {
    // Without a copy, because there may be 100,000.
    facts: Object.freeze(hasId ? metadata : { ...metadata, id }),
    id,
    group: typeof group === 'string' ? group : '',
    models: compilePatterns(allowedModels),
    targets: compilePatterns(allowedTargets),
    limits: compileKeyLimits(id, limits),
    budgets: budgets && [{ keyId: id, budgets }],
    validUntil: disabled ? Number.NEGATIVE_INFINITY : timeOf(expiresAt),
    ending: disabled ? 'disabled' : 'expired',
  }
}

function timeOf(text: string | undefined): number {
  return text === undefined ? Number.POSITIVE_INFINITY : (parseTimestamp(text) ?? Number.NEGATIVE_INFINITY)
}

/** Metadata field with the id of a key in files of agentgateway. */
const foreignIdField = 'agentgateway.dev/id'

/** Returns the id of a key: that of its metadata, else one derived from the current key. */
export function idOf({ metadata }: ApiKeyRecord, digest: string): string {
  for (const field of ['id', foreignIdField]) {
    const id = metadata?.[field]
    if (typeof id === 'string' && id !== '') return id
  }
  return derivedId(digest)
}

/**
 * Derives a stable UUID (version 8, RFC 9562) of a key. It uses a separate digest, so that the id in a log is
 * not a prefix of the `keyHash`.
 */
function derivedId(digest: string): string {
  const hex = hash('sha256', Buffer.from(`tollgate virtual key id\n${digest}`, 'latin1'), 'hex')
  const variant = '89ab'[Number.parseInt(hex.slice(16, 17), 16) % 4]
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `${variant}${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ].join('-')
}
