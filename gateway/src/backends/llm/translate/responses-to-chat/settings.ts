import type { JsonObject, JsonValue } from '../../../../lib/json/json.ts'
import { writeJson } from '../exact-json.ts'

/** Settings of a request that its response repeats, with their defaults. */
const defaults: Readonly<Record<string, JsonValue>> = {
  instructions: null,
  max_output_tokens: null,
  metadata: {},
  parallel_tool_calls: true,
  previous_response_id: null,
  reasoning: { effort: null, summary: null },
  temperature: 1,
  text: { format: { type: 'text' } },
  tool_choice: 'auto',
  tools: [],
  top_p: 1,
  truncation: 'disabled',
}

/** Longest setting that a response repeats: settings are retained until its end, and streams repeat them. */
const maxLength = 32 * 1024

/** The settings of a request that its response repeats. Longer ones have their default. */
export function settingsOf(body: JsonObject): JsonObject {
  const settings: JsonObject = { ...defaults }
  for (const name in defaults) {
    const value = body[name]
    if (value === undefined || value === null) continue
    const text = typeof value === 'object' ? writeJson(value) : String(value)
    if (text !== undefined && text.length <= maxLength) settings[name] = value
  }
  return settings
}
