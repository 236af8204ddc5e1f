import { policyScopes } from '../../config/policy-scopes.ts'
import type { Config } from '../../config/schema.ts'
import { trafficSections } from '../../config/traffic/sections.ts'
import { parseTimestamp } from '../../lib/timestamp.ts'
import { idOf } from '../../policies/api-key/entry.ts'
import { type ApiKeyRecord, recordDigest } from '../../policies/api-key/record.ts'

/** State of a key at a time. */
export type KeyState = 'active' | 'expired' | 'disabled'

/** A virtual key of the active configuration. */
export type KeyEntry = {
  readonly id: string
  /** Scope with the key: `llm`, `gateway default`. */
  readonly scope: string
  readonly record: ApiKeyRecord
}

/** Ids derived from keys, by record: the hash of 100,000 keys takes 0.6 s. */
export type DerivedIds = WeakMap<ApiKeyRecord, string>

/** Virtual keys of all scopes, computed on iteration: there may be 100,000. */
export function* keyEntries(config: Config, derived: DerivedIds): Generator<KeyEntry> {
  const sections = trafficSections(config)
  for (const { name, policies } of policyScopes(config, sections)) {
    for (const record of policies.apiKey?.keys ?? []) {
      const id = isNamed(record) ? idOf(record, '') : derivedId(record, derived)
      if (id !== undefined) yield { id, scope: name, record }
    }
  }
}

/** Whether the id is in the metadata, so that the key is not hashed. */
function isNamed({ metadata }: ApiKeyRecord): boolean {
  return typeof metadata?.['id'] === 'string' && metadata['id'] !== ''
}

function derivedId(record: ApiKeyRecord, derived: DerivedIds): string | undefined {
  const known = derived.get(record)
  if (known !== undefined) return known
  const digest = recordDigest(record)
  if (digest === undefined) return undefined
  const id = idOf(record, digest)
  derived.set(record, id)
  return id
}

export function stateOf({ disabled = false, expiresAt }: ApiKeyRecord, nowMs: number): KeyState {
  if (disabled) return 'disabled'
  const end = expiresAt === undefined ? undefined : parseTimestamp(expiresAt)
  return end !== undefined && end <= nowMs ? 'expired' : 'active'
}

/** A text of the metadata of a key; empty if there is none. */
export function metadataText({ metadata }: ApiKeyRecord, field: string): string {
  const value = metadata?.[field]
  return typeof value === 'string' ? value : ''
}
