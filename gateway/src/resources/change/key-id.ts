import { isJsonObject, type JsonObject } from '../../lib/json/json.ts'

/** The value of a key with its id in `metadata`, as the API returns it. */
export function withId(id: string, value: JsonObject): JsonObject {
  const { metadata } = value
  return { ...value, metadata: { ...(isJsonObject(metadata) ? metadata : {}), id } }
}

/** The value of a key without its id in `metadata`, as it is stored. */
export function withoutId(id: string, value: JsonObject): JsonObject {
  const { metadata } = value
  if (!isJsonObject(metadata) || metadata['id'] !== id) return value
  const { id: _, ...rest } = metadata
  const { metadata: __, ...fields } = value
  const own: JsonObject = Object.keys(rest).length === 0 ? fields : { ...fields, metadata: rest }
  return own
}
