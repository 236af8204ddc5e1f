import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'

/** Origin of reasoning in `reasoning_details`, a field of other servers of chat completions. */
const format = 'openai-responses-v1'

/**
 * The detail of an encrypted reasoning item; undefined for other items. The provider stores no responses, so
 * that the item returns to it as a whole.
 */
export function reasoningDetail({ type, id, encrypted_content: data }: JsonObject): JsonObject | undefined {
  if (type !== 'reasoning' || typeof data !== 'string' || data === '') return undefined
  return { type: 'reasoning.encrypted', data, format, ...(typeof id === 'string' ? { id } : undefined) }
}

/** The reasoning items of details. An item without its content would refer to the store of the provider. */
export function reasoningItems(details: JsonValue | undefined): JsonObject[] {
  if (!Array.isArray(details)) return []
  return details.flatMap((detail): JsonObject[] => {
    if (!isJsonObject(detail) || detail.format !== format || detail.type !== 'reasoning.encrypted') return []
    const { data, id } = detail
    if (typeof data !== 'string' || data === '') return []
    const ofItem = typeof id === 'string' ? { id } : undefined
    return [{ type: 'reasoning', ...ofItem, summary: [], encrypted_content: data }]
  })
}
