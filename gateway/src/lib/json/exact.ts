import { buildValue } from './build.ts'
import { inspectValue, type ValueFacts } from './inspect.ts'
import { type ExactJsonObject, type ExactJsonValue, isExactJsonObject, type JsonObject } from './json.ts'
import type { JsonText } from './text.ts'

/** The object with exact integers; the value itself if it has no number beyond 2^53. */
export function exactObject(json: JsonText): ExactJsonObject {
  const { value, hasLargeNumbers, large } = json
  if (large) return large.exact ?? value
  if (hasLargeNumbers === false) return value
  if (hasLargeNumbers === undefined && !containsLarge(value)) return value
  const exact = buildExact(json.text)
  return isExactJsonObject(exact) ? exact : value
}

/** The value of JSON text with exact integers. */
export function buildExact(text: string): ExactJsonValue {
  return buildValue<ExactJsonValue>(text, parseExactScalar)
}

function containsLarge(value: JsonObject): boolean {
  const facts: ValueFacts = { members: 0, hasLargeNumbers: false }
  inspectValue(value, facts)
  return facts.hasLargeNumbers
}

/** The JSON text of a value with exact integers. */
export function exactText(value: unknown): string {
  return JSON.stringify(value, (_key, member: unknown) =>
    typeof member === 'bigint' ? JSON.rawJSON(String(member)) : member,
  )
}

/** Integers beyond 64 bits remain rounded: expressions do not support them. */
function parseExactScalar(text: string): ExactJsonValue {
  if (!/^-?\d{16,19}$/.test(text)) return JSON.parse(text)
  const exact = BigInt(text)
  const isSafe = Number.isSafeInteger(Number(exact))
  return isSafe || BigInt.asIntN(64, exact) !== exact ? Number(exact) : exact
}
