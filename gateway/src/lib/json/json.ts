export type JsonValue = string | number | boolean | null | JsonValue[] | JsonObject
export type JsonObject = { [key: string]: JsonValue }

/** JSON with integers beyond 2^53 as bigints, up to the 64 bits of expressions. */
export type ExactJsonValue =
  | string
  | number
  | bigint
  | boolean
  | null
  | readonly ExactJsonValue[]
  | ExactJsonObject
export type ExactJsonObject = { readonly [key: string]: ExactJsonValue }

/** Whether a value is a JSON object, not an array, a scalar or undefined. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** `isJsonObject` for JSON with exact integers. */
export function isExactJsonObject(value: ExactJsonValue | undefined): value is ExactJsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Parses a JSON object; undefined for malformed text and for any other value. */
export function parseJsonObject(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isJsonObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
