export type JsonValue = string | number | boolean | null | JsonValue[] | JsonObject
export type JsonObject = { [key: string]: JsonValue }

/** JSON whose integers beyond 2^53 are bigints, up to the 64 bits that expressions calculate with. */
export type ExactJsonValue =
  | string
  | number
  | bigint
  | boolean
  | null
  | readonly ExactJsonValue[]
  | ExactJsonObject
export type ExactJsonObject = { readonly [key: string]: ExactJsonValue }

/** True for a JSON object, as opposed to an array, a scalar or nothing. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The same for JSON with exact integers. */
export function isExactJsonObject(value: ExactJsonValue | undefined): value is ExactJsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The object that a JSON text is; undefined for malformed text and for any other value. */
export function parseJsonObject(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isJsonObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
