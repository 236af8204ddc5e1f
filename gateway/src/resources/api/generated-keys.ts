import { isJsonObject, type JsonValue } from '../../lib/json/json.ts'
import { createNewKey, type RandomBytes } from '../../policies/api-key/new-key.ts'
import { digestOf, keyHashOf } from '../../policies/api-key/record.ts'
import type { Change, ChangeOutcome, Envelope } from '../change/change.ts'

/** An envelope with a key that the gateway generated. The key is in no other response. */
export type ShownEnvelope = Envelope & { readonly key?: string }

export type Generation = {
  /** The change with the hashes of the generated keys. */
  readonly change: Change
  /** Generated keys by position in the request. */
  readonly keys: ReadonlyMap<number, string>
}

/** Generates keys for new key records with neither `key` nor `keyHash`. */
export function generateKeys(change: Change, randomBytes: RandomBytes): Generation {
  const keys = new Map<number, string>()
  if (change.op !== 'upsert' || change.kind.placement.kind !== 'keys') return { change, keys }
  const values = change.values.map((value, index): JsonValue => {
    if (!isJsonObject(value) || Object.hasOwn(value, 'key') || Object.hasOwn(value, 'keyHash')) return value
    const key = createNewKey(randomBytes)
    keys.set(index, key)
    return { keyHash: keyHashOf(digestOf(key)), ...value }
  })
  return keys.size === 0 ? { change, keys } : { change: { ...change, values }, keys }
}

/** Adds the generated keys to the outcome. That of a dry run has neither keys nor their hashes. */
export function withGeneratedKeys(
  outcome: ChangeOutcome,
  { keys }: Generation,
  { dryRun }: { readonly dryRun: boolean },
): ChangeOutcome {
  if (outcome.kind !== 'stored' || keys.size === 0) return outcome
  const resources = outcome.resources.map((envelope, index): ShownEnvelope => {
    const key = keys.get(index)
    if (key === undefined) return envelope
    return dryRun ? { ...envelope, value: withoutHash(envelope.value) } : { ...envelope, key }
  })
  return { kind: 'stored', resources }
}

function withoutHash(value: JsonValue): JsonValue {
  if (!isJsonObject(value)) return value
  const { keyHash: _, ...rest } = value
  return rest
}
