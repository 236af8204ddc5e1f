import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { createRefusals, isAbsent, type Refusals } from '../refusals.ts'
import type { TranslatedRequest } from '../translate.ts'
import { toMessages } from './messages.ts'
import { toToolChoice, toTools } from './tools.ts'

/**
 * `max_tokens` for requests without a limit. Messages require one; all current models of the API accept this
 * number. `defaults` of the model's configuration replace it.
 */
const defaultMaxTokens = 8192

/** Translates a chat completions request to a messages request. */
export function chatToMessagesRequest(body: JsonObject, form: { audio: boolean }): TranslatedRequest {
  const refusals = createRefusals('the messages API', form)
  refusals.addUnknown(body, translatedFields, '')
  refuseUntranslatable(body, refusals)
  const { system, messages } = toMessages(body.messages, refusals)
  const tools = toTools(body.tools, refusals)
  const translated: JsonObject = {
    model: body.model ?? '',
    max_tokens: body.max_completion_tokens ?? body.max_tokens ?? defaultMaxTokens,
    messages,
  }
  setIfPresent(translated, 'system', system)
  setIfPresent(translated, 'tools', tools)
  setIfPresent(translated, 'tool_choice', toToolChoice(body, tools !== undefined, refusals))
  setIfPresent(translated, 'stop_sequences', toStopSequences(body.stop, refusals))
  setIfPresent(translated, 'output_config', toOutputConfig(body, refusals))
  setIfPresent(translated, 'thinking', toThinking(body))
  setIfPresent(translated, 'metadata', toMetadata(body))
  setIfPresent(translated, 'service_tier', serviceTiers.get(body.service_tier ?? null))
  for (const name of ['stream', 'temperature', 'top_p', 'top_k']) setIfPresent(translated, name, body[name])
  return refusals.result(translated)
}

const translatedFields: ReadonlySet<string> = new Set([
  ...[
    'model',
    'messages',
    'tools',
    'tool_choice',
    'parallel_tool_calls',
    'response_format',
    'reasoning_effort',
  ],
  ...['max_tokens', 'max_completion_tokens', 'stop', 'stream', 'stream_options', 'temperature', 'top_p'],
  ...['user', 'safety_identifier', 'service_tier'],
  // Fields of the messages API that chat clients may add.
  ...['thinking', 'top_k'],
  // Accepted only with a value that has no effect.
  ...[
    'n',
    'logprobs',
    'top_logprobs',
    'frequency_penalty',
    'presence_penalty',
    'logit_bias',
    'modalities',
    'verbosity',
  ],
  // Hints without effect on the content of the response: storage, caching and speed.
  ...[
    'store',
    'metadata',
    'prompt_cache_key',
    'prompt_cache_retention',
    'prompt_cache_options',
    'prediction',
  ],
])

/** Refuses fields without a counterpart unless their value equals the default behaviour. */
function refuseUntranslatable(body: JsonObject, refusals: Refusals): void {
  const { n, temperature, logprobs, modalities, verbosity, logit_bias: logitBias } = body
  if (!isAbsent(n) && n !== 1) refusals.add('n', 'the messages API gives one answer per request')
  if (typeof temperature === 'number' && temperature > 1) {
    refusals.add('temperature', 'the messages API takes 0 to 1')
  }
  if (logprobs === true) refusals.add('logprobs', 'the messages API has no token probabilities')
  for (const name of ['top_logprobs', 'frequency_penalty', 'presence_penalty']) {
    if (!isAbsent(body[name]) && body[name] !== 0)
      refusals.add(name, 'cannot be translated for the messages API')
  }
  if (!isAbsent(logitBias) && !(isJsonObject(logitBias) && Object.keys(logitBias).length === 0)) {
    refusals.add('logit_bias', 'cannot be translated for the messages API')
  }
  if (!isAbsent(modalities) && !(Array.isArray(modalities) && modalities.every((name) => name === 'text'))) {
    refusals.add('modalities', 'the messages API answers in text only')
  }
  if (!isAbsent(verbosity) && verbosity !== 'medium') {
    refusals.add('verbosity', 'only medium, the default, can be translated for the messages API')
  }
}

function toStopSequences(stop: JsonValue | undefined, refusals: Refusals): JsonValue | undefined {
  if (isAbsent(stop)) return undefined
  if (typeof stop === 'string') return [stop]
  if (Array.isArray(stop) && stop.every((sequence) => typeof sequence === 'string')) return stop
  refusals.add('stop', 'must be a string or a list of strings')
  return undefined
}

function toOutputConfig(body: JsonObject, refusals: Refusals): JsonObject | undefined {
  const format = toOutputFormat(body.response_format, refusals)
  const effort = toEffort(body.reasoning_effort, refusals)
  if (format === undefined && effort === undefined) return undefined
  return {
    ...(effort === undefined ? undefined : { effort }),
    ...(format === undefined ? undefined : { format }),
  }
}

function toOutputFormat(format: JsonValue | undefined, refusals: Refusals): JsonObject | undefined {
  if (isAbsent(format)) return undefined
  if (!isJsonObject(format)) {
    refusals.add('response_format', 'must be an object')
    return undefined
  }
  if (format.type === 'text') return undefined
  if (format.type !== 'json_schema') {
    refusals.add('response_format.type', 'the messages API knows text and json_schema only')
    return undefined
  }
  const schema = isJsonObject(format.json_schema) ? format.json_schema.schema : undefined
  if (isJsonObject(schema)) return { type: 'json_schema', schema }
  refusals.add('response_format.json_schema.schema', 'must be an object')
  return undefined
}

/** `none` becomes disabled thinking in `toThinking`; `minimal` becomes the lowest effort. */
function toEffort(effort: JsonValue | undefined, refusals: Refusals): string | undefined {
  if (isAbsent(effort) || effort === 'none') return undefined
  if (effort === 'minimal') return 'low'
  if (typeof effort === 'string' && efforts.has(effort)) return effort
  refusals.add('reasoning_effort', 'must be none, minimal, low, medium, high, xhigh or max')
  return undefined
}

const efforts: ReadonlySet<string> = new Set(['low', 'medium', 'high', 'xhigh', 'max'])

function toThinking(body: JsonObject): JsonValue | undefined {
  if (!isAbsent(body.thinking)) return body.thinking
  return body.reasoning_effort === 'none' ? { type: 'disabled' } : undefined
}

function toMetadata(body: JsonObject): JsonObject | undefined {
  const user = body.safety_identifier ?? body.user
  return typeof user === 'string' ? { user_id: user } : undefined
}

/** Tiers with a counterpart; others concern price and speed only, and the default applies. */
const serviceTiers: ReadonlyMap<JsonValue, string> = new Map([
  ['auto', 'auto'],
  ['priority', 'auto'],
  ['default', 'standard_only'],
])

function setIfPresent(body: JsonObject, name: string, value: JsonValue | undefined): void {
  if (!isAbsent(value)) body[name] = value
}
