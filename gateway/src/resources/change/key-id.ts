import { isJsonObject, type JsonObject } from '../../lib/json/json.ts'

/** The value of a key with its id in `metadata`, as the API returns it. */
export function withId(id: string, value: JsonObject): JsonObject {
  const { metadata } = value
  return { ...value, metadata: { ...(isJsonObject(metadata) ? metadata : {}), id } }
}
