import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'
import type { JsonText } from '../../../lib/json/text.ts'

/** Longer bodies are compared by their bytes: sorting their members would cost more than it gains. */
const maxLength = 256 * 1024

/**
 * A number that may be beyond the digits or the range of a double: its value would equal that of another one.
 */
const longNumber = /[0-9.]{16}|[0-9.][eE][+-]?[0-9]{2}/

/**
 * Text that is equal for bodies that differ in the order of members and in white space only, without the
 * member `model`. Undefined for bodies that are long or have long numbers.
 */
export function canonicalBody({ text, value }: JsonText): string | undefined {
  if (text.length > maxLength || longNumber.test(text)) return undefined
  return JSON.stringify(sortedMembers(value, 'model'))
}

/**
 * A copy with sorted members. One serialization of a copy takes half the time of one per value. The depth of
 * requests is limited.
 */
function sorted(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(sorted)
  return isJsonObject(value) ? sortedMembers(value, undefined) : value
}

function sortedMembers(object: JsonObject, omitted: string | undefined): JsonObject {
  const copy: JsonObject = {}
  for (const name of Object.keys(object).sort()) {
    if (name === omitted) continue
    const value = object[name] ?? null
    const member = typeof value === 'object' && value !== null ? sorted(value) : value
    // An assignment would set the prototype.
    if (name === '__proto__') Object.defineProperty(copy, name, { value: member, enumerable: true })
    else copy[name] = member
  }
  return copy
}
