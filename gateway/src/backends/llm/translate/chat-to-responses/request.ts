import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { createRefusals, isAbsent, type Refusals } from '../refusals.ts'
import type { TranslatedRequest } from '../translate.ts'
import { toInput } from './input.ts'
import { toResponseTools, toToolChoice } from './tools.ts'

/**
 * Translates a chat completions request to a responses request. The provider stores nothing, because clients
 * of chat send the whole conversation.
 */
export function chatToResponsesRequest(body: JsonObject): TranslatedRequest {
  const refusals = createRefusals('the Responses API')
  refusals.addUnknown(body, translatedFields, '')
  refuseUntranslatable(body, refusals)
  const tools = toResponseTools(body, refusals)
  const translated: JsonObject = {
    model: body.model ?? '',
    input: toInput(body.messages, refusals),
    store: false,
  }
  setIfPresent(translated, 'tools', tools)
  if (tools !== undefined) {
    setIfPresent(translated, 'tool_choice', toToolChoice(body.tool_choice, refusals))
    setIfPresent(translated, 'parallel_tool_calls', body.parallel_tool_calls)
  }
  setIfPresent(translated, 'max_output_tokens', toLimit(body.max_completion_tokens ?? body.max_tokens))
  setIfPresent(translated, 'text', toText(body, refusals))
  const reasoning = toReasoning(body, refusals)
  setIfPresent(translated, 'reasoning', reasoning)
  // Models that reason refuse these fields, also with their default.
  for (const name of ['temperature', 'top_p'])
    if (body[name] !== 1) setIfPresent(translated, name, body[name])
  const include = toInclude(body, reasoning)
  if (include.length > 0) translated.include = include
  if (body.logprobs === true) setIfPresent(translated, 'top_logprobs', body.top_logprobs)
  if (body.stream === true) setIfPresent(translated, 'stream_options', toStreamOptions(body.stream_options))
  for (const name of sameFields) setIfPresent(translated, name, body[name])
  return refusals.result(translated)
}

/** Fields with equal names and values. */
const sameFields = [
  ...(['stream', 'metadata', 'service_tier', 'user', 'safety_identifier'] as const),
  ...(['prompt_cache_key', 'prompt_cache_retention', 'prompt_cache_options'] as const),
]

const translatedFields: ReadonlySet<string> = new Set([
  ...['model', 'messages', 'tools', 'tool_choice', 'parallel_tool_calls', 'response_format', 'verbosity'],
  ...['max_tokens', 'max_completion_tokens', 'temperature', 'top_p', 'logprobs', 'top_logprobs'],
  ...['stream_options', 'web_search_options', 'reasoning_effort'],
  // A field of the Responses API that chat clients may add.
  'reasoning',
  ...sameFields,
  // Accepted only with a value that has no effect.
  ...['n', 'stop', 'frequency_penalty', 'presence_penalty', 'logit_bias', 'modalities'],
  // Hints without effect on the content of the response: storage and speed.
  ...['store', 'prediction'],
])

/** Refuses fields without a counterpart unless their value equals the default behaviour. */
function refuseUntranslatable(body: JsonObject, refusals: Refusals): void {
  const { n, stop, modalities, logit_bias: logitBias } = body
  if (!isAbsent(n) && n !== 1)
    refusals.add('n', 'must be 1: the Responses API returns one answer per request')
  if (!isAbsent(stop) && !(Array.isArray(stop) && stop.length === 0))
    refusals.add('stop', 'the Responses API has no stop sequences')
  for (const name of ['frequency_penalty', 'presence_penalty']) {
    if (!isAbsent(body[name]) && body[name] !== 0)
      refusals.add(name, 'cannot be translated for the Responses API')
  }
  if (!isAbsent(logitBias) && !(isJsonObject(logitBias) && Object.keys(logitBias).length === 0))
    refusals.add('logit_bias', 'cannot be translated for the Responses API')
  if (!isAbsent(modalities) && !(Array.isArray(modalities) && modalities.every((name) => name === 'text')))
    refusals.add('modalities', 'the Responses API answers in text only')
}

/** The API refuses lower limits, which clients send to test a model. */
const minOutputTokens = 16

function toLimit(limit: JsonValue | undefined): JsonValue | undefined {
  return typeof limit === 'number' ? Math.max(limit, minOutputTokens) : limit
}

function toText(body: JsonObject, refusals: Refusals): JsonObject | undefined {
  const format = toFormat(body.response_format, refusals)
  const { verbosity } = body
  if (format === undefined && isAbsent(verbosity)) return undefined
  return {
    ...(format === undefined ? undefined : { format }),
    ...(isAbsent(verbosity) ? undefined : { verbosity }),
  }
}

function toFormat(format: JsonValue | undefined, refusals: Refusals): JsonObject | undefined {
  if (isAbsent(format)) return undefined
  const type = isJsonObject(format) ? format.type : undefined
  if (!isJsonObject(format) || typeof type !== 'string') {
    refusals.add('response_format', 'must be an object with a type')
    return undefined
  }
  if (type === 'text') return undefined
  if (type === 'json_object') return { type }
  if (type !== 'json_schema') {
    refusals.add('response_format.type', 'must be text, json_object or json_schema')
    return undefined
  }
  if (isJsonObject(format.json_schema)) return { type, ...format.json_schema }
  refusals.add('response_format.json_schema', 'must be an object')
  return undefined
}

/** A client that sets the effort receives a summary of the reasoning, unless `reasoning` states otherwise. */
function toReasoning(body: JsonObject, refusals: Refusals): JsonObject | undefined {
  const { reasoning_effort: effort, reasoning } = body
  if (!isAbsent(reasoning) && !isJsonObject(reasoning)) refusals.add('reasoning', 'must be an object')
  const summary = isAbsent(effort) || effort === 'none' ? null : 'auto'
  const translated = { effort: effort ?? null, summary, ...(isJsonObject(reasoning) ? reasoning : undefined) }
  const present = Object.entries(translated).filter(([, value]) => !isAbsent(value))
  return present.length === 0 ? undefined : Object.fromEntries(present)
}

/** Clients that receive a summary of the reasoning return its encrypted text with results of tools. */
function toInclude({ logprobs }: JsonObject, reasoning: JsonObject | undefined): string[] {
  return [
    ...(logprobs === true ? ['message.output_text.logprobs'] : []),
    ...(isAbsent(reasoning?.summary) ? [] : ['reasoning.encrypted_content']),
  ]
}

/** The last event of a response always contains the usage. */
function toStreamOptions(options: JsonValue | undefined): JsonObject | undefined {
  const obfuscation = isJsonObject(options) ? options.include_obfuscation : undefined
  return typeof obfuscation === 'boolean' ? { include_obfuscation: obfuscation } : undefined
}

function setIfPresent(body: JsonObject, name: string, value: JsonValue | undefined): void {
  if (!isAbsent(value)) body[name] = value
}
