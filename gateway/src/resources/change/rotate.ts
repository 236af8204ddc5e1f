import type { JsonObject, JsonValue } from '../../lib/json/json.ts'
import { parseTimestamp } from '../../lib/timestamp.ts'
import {
  type ApiKeyRecord,
  keyHashOf,
  maxPreviousKeys,
  type PreviousKey,
  recordDigest,
} from '../../policies/api-key/record.ts'
import { type Refusal, type Rotation, refusal } from './change.ts'

/** Fields of a key record that a rotation changes. */
export type RotatedFields = {
  readonly kind: 'rotated'
  readonly keyHash: string
  /** Undefined if no earlier secret stays valid. */
  readonly previousKeys: readonly PreviousKey[] | undefined
}

/**
 * Computes the fields of a rotated record. No earlier secret is valid after the overlap: those of previous
 * rotations end at their own time or with it.
 */
export function rotatedFields(
  record: ApiKeyRecord,
  { keyHash, overlapMs, nowMs }: Rotation,
): RotatedFields | Refusal {
  if (overlapMs === 0) return { kind: 'rotated', keyHash, previousKeys: undefined }
  const end = nowMs + overlapMs
  const earlier = (record.previousKeys ?? []).flatMap((previous) => {
    const until = Math.min(parseTimestamp(previous.expiresAt) ?? 0, end)
    return until > nowMs ? [{ keyHash: previous.keyHash, expiresAt: timeOf(until) }] : []
  })
  if (earlier.length >= maxPreviousKeys) {
    const reason = `the key has ${earlier.length} earlier secrets that are still valid`
    return refusal(409, `${reason}: rotate with overlap "0", or wait for the end of one`)
  }
  const current = { keyHash: keyHashOf(recordDigest(record) ?? ''), expiresAt: timeOf(end) }
  return { kind: 'rotated', keyHash, previousKeys: [current, ...earlier] }
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString()
}

/** The value of a key record after a rotation; the rest of the value stays. */
export function rotatedValue(value: JsonObject, { keyHash, previousKeys }: RotatedFields): JsonValue {
  const { key: _, keyHash: __, previousKeys: ___, ...rest } = value
  const previous = previousKeys === undefined ? {} : { previousKeys: previousKeys.map((one) => ({ ...one })) }
  return { keyHash, ...rest, ...previous }
}
