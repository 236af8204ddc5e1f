import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'

/** Parts of messages with files that Anthropic's containers have created. */
const outputs: ReadonlySet<JsonValue | undefined> = new Set([
  'code_execution_output',
  'bash_code_execution_output',
  'container_upload',
])

/** Results of code that runs at Anthropic. Results of other tools have data of others. */
const results = /^(?:[a-z]+_)*code_execution_(?:tool_)?result$/

/** Ids of files that code has created, in a message of Anthropic or an event of its stream. */
export function filesOf({ content, content_block: block }: JsonObject): JsonValue[] {
  const found: JsonValue[] = []
  for (const part of [content, block].flat()) collect(part, found)
  return found
}

function collect(part: JsonValue | undefined, found: JsonValue[]): void {
  if (!isJsonObject(part)) return
  const { type, file_id: id, content } = part
  if (outputs.has(type) && id !== undefined) found.push(id)
  if (typeof type !== 'string' || !results.test(type)) return
  for (const each of [content].flat()) collect(each, found)
}
