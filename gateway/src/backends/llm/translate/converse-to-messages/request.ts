import { isJsonObject, type JsonObject, type JsonValue, parseJsonObject } from '../../../../lib/json/json.ts'
import { createRefusals, isAbsent, type Refusals } from '../refusals.ts'
import type { TranslatedRequest } from '../translate.ts'
import { toBlocks, withCacheMarks } from './content.ts'

/** Output tokens of a request without a limit, which messages require. */
const defaultMaxTokens = 8192

/** Translates a request of the Converse API to a messages request; `model` and `stream` are in its body. */
export function converseToMessagesRequest(body: JsonObject, form: { audio: boolean }): TranslatedRequest {
  const refusals = createRefusals('the messages API', form)
  refusals.addUnknown(body, translatedFields, '')
  const { inferenceConfig, toolConfig, additionalModelRequestFields: fields } = body
  const inference = objectAt(inferenceConfig, 'inferenceConfig', inferenceFields, refusals)
  const tools = objectAt(toolConfig, 'toolConfig', toolFields, refusals)
  const translated: JsonObject = {
    model: body.model ?? '',
    messages: toMessages(body.messages, refusals),
    max_tokens: inference.maxTokens ?? defaultMaxTokens,
    ...(body.stream === true ? { stream: true } : undefined),
  }
  const system = isAbsent(body.system) ? [] : toBlocks(body.system, 'system', refusals)
  if (system.length > 0) translated.system = system
  setIfPresent(translated, 'temperature', inference.temperature)
  setIfPresent(translated, 'top_p', inference.topP)
  setIfPresent(translated, 'stop_sequences', inference.stopSequences)
  if (!isAbsent(tools.tools)) translated.tools = toTools(tools.tools, refusals)
  setIfPresent(translated, 'tool_choice', toToolChoice(tools.toolChoice, refusals))
  setIfPresent(translated, 'output_config', toOutputConfig(body.outputConfig, refusals))
  const own = objectAt(fields, 'additionalModelRequestFields', modelFields, refusals)
  for (const name of ownFields) setIfPresent(translated, name, own[name])
  return refusals.result(translated)
}

const translatedFields: ReadonlySet<string> = new Set([
  ...['model', 'stream', 'messages', 'system', 'inferenceConfig', 'toolConfig', 'outputConfig'],
  'additionalModelRequestFields',
  // Labels, prices and speed do not change the response.
  ...['requestMetadata', 'performanceConfig', 'serviceTier'],
])
const inferenceFields: ReadonlySet<string> = new Set(['maxTokens', 'temperature', 'topP', 'stopSequences'])
const toolFields: ReadonlySet<string> = new Set(['tools', 'toolChoice'])
/** Fields of messages without one in the Converse API. */
const ownFields: ReadonlySet<string> = new Set(['top_k', 'thinking'])
/** Betas are read with the call: the service of the provider determines their place. */
const modelFields: ReadonlySet<string> = new Set([...ownFields, 'anthropic_beta'])

function objectAt(
  value: JsonValue | undefined,
  path: string,
  known: ReadonlySet<string>,
  refusals: Refusals,
): JsonObject {
  if (isAbsent(value)) return {}
  if (!isJsonObject(value)) {
    refusals.add(path, 'must be an object')
    return {}
  }
  refusals.addUnknown(value, known, path)
  return value
}

function toMessages(value: JsonValue | undefined, refusals: Refusals): JsonObject[] {
  if (!Array.isArray(value)) {
    refusals.add('messages', 'must be a list')
    return []
  }
  return value.map((message, index) => {
    const { role, content } = isJsonObject(message) ? message : {}
    if (role !== 'user' && role !== 'assistant')
      refusals.add(`messages[${index}].role`, 'must be user or assistant')
    return { role: role ?? 'user', content: toBlocks(content, `messages[${index}].content`, refusals) }
  })
}

function toTools(value: JsonValue, refusals: Refusals): JsonObject[] {
  if (!Array.isArray(value)) {
    refusals.add('toolConfig.tools', 'must be a list')
    return []
  }
  return withCacheMarks(value, 'toolConfig.tools', refusals, ({ toolSpec }, path) => {
    if (!isJsonObject(toolSpec)) {
      refusals.add(path, 'must be a toolSpec: other tools exist in Amazon Bedrock only')
      return undefined
    }
    const { name, description, inputSchema, strict } = toolSpec
    const schema = isJsonObject(inputSchema) ? inputSchema.json : undefined
    if (!isJsonObject(schema)) refusals.add(`${path}.toolSpec.inputSchema.json`, 'must be an object')
    return {
      name: name ?? '',
      ...(isAbsent(description) ? undefined : { description }),
      input_schema: schema ?? {},
      ...(strict === true ? { strict } : undefined),
    }
  })
}

function toToolChoice(choice: JsonValue | undefined, refusals: Refusals): JsonObject | undefined {
  if (isAbsent(choice)) return undefined
  const { auto, any, tool } = isJsonObject(choice) ? choice : {}
  if (auto !== undefined) return { type: 'auto' }
  if (any !== undefined) return { type: 'any' }
  if (isJsonObject(tool)) return { type: 'tool', name: tool.name ?? '' }
  refusals.add('toolConfig.toolChoice', 'must be auto, any or tool with a name')
  return undefined
}

const outputFields: ReadonlySet<string> = new Set(['textFormat', 'effort'])

function toOutputConfig(value: JsonValue | undefined, refusals: Refusals): JsonObject | undefined {
  if (isAbsent(value)) return undefined
  const { textFormat, effort } = objectAt(value, 'outputConfig', outputFields, refusals)
  const config: JsonObject = {}
  setIfPresent(config, 'effort', effort)
  if (!isAbsent(textFormat)) config.format = { type: 'json_schema', schema: schemaOf(textFormat, refusals) }
  return config
}

/** The schema is a JSON text. */
function schemaOf(textFormat: JsonValue, refusals: Refusals): JsonObject {
  const { structure } = isJsonObject(textFormat) ? textFormat : {}
  const { jsonSchema } = isJsonObject(structure) ? structure : {}
  const text = isJsonObject(jsonSchema) ? jsonSchema.schema : undefined
  const schema = typeof text === 'string' ? parseJsonObject(text) : undefined
  if (schema === undefined)
    refusals.add('outputConfig.textFormat.structure.jsonSchema.schema', 'must be a JSON schema as a text')
  return schema ?? {}
}

function setIfPresent(body: JsonObject, name: string, value: JsonValue | undefined): void {
  if (!isAbsent(value)) body[name] = value
}
