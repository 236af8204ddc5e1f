import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { createRefusals, isAbsent, type Refusals } from '../refusals.ts'
import type { TranslatedRequest } from '../translate.ts'
import { type DocumentNames, toConverseContent, toSystem } from './content.ts'
import { toToolConfig } from './tools.ts'

/** Translates a messages request to a request of the Converse API. */
export function messagesToConverseRequest(body: JsonObject): TranslatedRequest {
  const refusals = createRefusals('the Converse API')
  refusals.addUnknown(body, translatedFields, '')
  const messages = toTurns(body.messages, refusals)
  const translated: JsonObject = { messages }
  setIfPresent(translated, 'system', toSystem(body.system, refusals))
  setIfPresent(translated, 'inferenceConfig', toInferenceConfig(body, refusals))
  setIfPresent(translated, 'toolConfig', toToolConfig(body, messages, refusals))
  setIfPresent(translated, 'outputConfig', toOutputConfig(body.output_config, refusals))
  setIfPresent(translated, 'additionalModelRequestFields', fieldsOfModel(body))
  if (body.service_tier === 'standard_only') translated.serviceTier = { type: 'default' }
  return refusals.result(translated)
}

const translatedFields: ReadonlySet<string> = new Set([
  ...['model', 'messages', 'system', 'tools', 'tool_choice', 'max_tokens', 'stop_sequences', 'stream'],
  ...['temperature', 'top_p', 'top_k', 'thinking', 'output_config', 'service_tier'],
  // Marks, ids of users and requests for diagnostics do not change the response.
  ...['metadata', 'cache_control', 'diagnostics', 'anthropic_version'],
])

/** The service requires alternating roles; consecutive messages of one role become one turn. */
function toTurns(value: JsonValue | undefined, refusals: Refusals): JsonObject[] {
  const turns: JsonObject[] = []
  if (!Array.isArray(value)) {
    refusals.add('messages', 'must be a list')
    return turns
  }
  const names: DocumentNames = { used: new Set() }
  let last: { role: JsonValue; content: JsonObject[] } | undefined
  for (const [index, message] of value.entries()) {
    const path = `messages[${index}]`
    const { role, content } = isJsonObject(message) ? message : {}
    if (role !== 'user' && role !== 'assistant') {
      refusals.add(`${path}.role`, 'must be user or assistant')
      continue
    }
    const blocks = toConverseContent(content, `${path}.content`, names, refusals)
    if (blocks.length === 0) continue
    if (last?.role === role) {
      last.content.push(...blocks)
      continue
    }
    last = { role, content: blocks }
    turns.push(last)
  }
  return turns
}

function toInferenceConfig(body: JsonObject, refusals: Refusals): JsonObject | undefined {
  const config: JsonObject = {}
  setIfPresent(config, 'maxTokens', body.max_tokens)
  setIfPresent(config, 'temperature', body.temperature)
  setIfPresent(config, 'topP', body.top_p)
  const { stop_sequences: stop } = body
  if (Array.isArray(stop) && stop.length > 0) config.stopSequences = stop
  else if (!isAbsent(stop) && !Array.isArray(stop))
    refusals.add('stop_sequences', 'must be a list of strings')
  return Object.keys(config).length === 0 ? undefined : config
}

const outputFields: ReadonlySet<string> = new Set(['format', 'effort'])

function toOutputConfig(config: JsonValue | undefined, refusals: Refusals): JsonObject | undefined {
  if (isAbsent(config)) return undefined
  if (!isJsonObject(config)) {
    refusals.add('output_config', 'must be an object')
    return undefined
  }
  refusals.addUnknown(config, outputFields, 'output_config')
  const { format, effort } = config
  const translated: JsonObject = {}
  setIfPresent(translated, 'effort', effort)
  if (!isAbsent(format)) {
    const schema = isJsonObject(format) && format.type === 'json_schema' ? format.schema : undefined
    if (!isJsonObject(schema))
      refusals.add('output_config.format', 'must be a json_schema format with a schema')
    const jsonSchema = { schema: JSON.stringify(schema ?? {}), name: 'answer' }
    translated.textFormat = { type: 'json_schema', structure: { jsonSchema } }
  }
  return Object.keys(translated).length === 0 ? undefined : translated
}

/** Settings of the model that the Converse API passes on without reading them. */
function fieldsOfModel(body: JsonObject): JsonObject | undefined {
  const fields: JsonObject = {}
  // Nova has a name of its own. https://docs.aws.amazon.com/nova/latest/userguide/using-converse-api.html
  const isNova = typeof body.model === 'string' && /(?:^|[./])amazon\.nova-/.test(body.model)
  if (!isNova) setIfPresent(fields, 'top_k', body.top_k)
  else if (!isAbsent(body.top_k)) fields.inferenceConfig = { topK: body.top_k }
  const { thinking } = body
  if (isJsonObject(thinking) && thinking.type !== 'disabled') fields.thinking = thinking
  return Object.keys(fields).length === 0 ? undefined : fields
}

function setIfPresent(body: JsonObject, name: string, value: JsonValue | undefined): void {
  if (!isAbsent(value)) body[name] = value
}
