import { isJsonObject, type JsonObject, type JsonValue } from '../../lib/json/json.ts'

/** A value of a request that is not valid. The message names its place. */
export class InvalidRequest extends Error {}

export function invalid(place: string, rule: string): InvalidRequest {
  return new InvalidRequest(`${place} ${rule}`)
}

/** Reads an object with known members only; an absent one is empty. */
export function readObject(
  value: JsonValue | undefined,
  place: string,
  members: readonly string[],
): JsonObject {
  if (value === undefined || value === null) return {}
  if (!isJsonObject(value)) throw invalid(place, 'must be an object')
  checkMembers(value, place, members)
  return value
}

export function checkMembers(value: JsonObject, place: string, members: readonly string[]): void {
  const unknown = Object.keys(value).find((name) => !members.includes(name))
  if (unknown === undefined) return
  const path = place === '' ? shown(unknown) : `${place}.${shown(unknown)}`
  throw invalid(path, `is not known: the members are ${members.join(', ')}`)
}

export function readBoolean(value: JsonValue | undefined, place: string): boolean {
  if (value === undefined || value === null) return false
  if (typeof value !== 'boolean') throw invalid(place, 'must be true or false')
  return value
}

export type IntegerRange = { readonly min: number; readonly max: number }

export function readInteger(
  value: JsonValue | undefined,
  place: string,
  { min, max }: IntegerRange,
): number | undefined {
  if (value === undefined || value === null) return undefined
  if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > max)
    throw invalid(place, `must be an integer from ${min} to ${max}`)
  return value
}

/** Reads a text without characters that no database stores. */
export function readText(value: JsonValue | undefined, place: string, maxLength: number): string {
  if (typeof value !== 'string') throw invalid(place, 'must be a text')
  if (value.length > maxLength) throw invalid(place, `must have at most ${maxLength} characters`)
  if (value.includes('\0')) throw invalid(place, 'must not contain NUL')
  return value
}

const time = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2})$/i
const date = /^\d{4}-\d{2}-\d{2}$/

/** Reads a time (RFC 3339), or a date: its start in UTC. Milliseconds since the epoch. */
export function readTime(value: JsonValue | undefined, place: string): number | undefined {
  if (value === undefined || value === null) return undefined
  const isTime = typeof value === 'string' && (time.test(value) || date.test(value))
  const read = isTime ? Date.parse(value) : Number.NaN
  if (Number.isNaN(read) || read < 0)
    throw invalid(place, 'must be a time such as 2026-11-22T10:00:00Z, or a date')
  return read
}

function shown(text: string): string {
  return text.length > 100 ? `${text.slice(0, 100)}…` : text
}
