import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { createRefusals, isAbsent, type Refusals } from '../refusals.ts'
import type { TranslatedRequest } from '../translate.ts'
import { type RequestForm, toMessages } from './items.ts'
import { settingsOf } from './settings.ts'
import { toChatTools, toToolChoice } from './tools.ts'

/** Translates a responses request to a chat completions request. */
export function responsesToChatRequest(body: JsonObject, form: RequestForm): TranslatedRequest {
  const refusals = createRefusals('chat completions')
  refusals.addUnknown(body, translatedFields, '')
  refuseStoredState(body, refusals)
  const translated: JsonObject = {
    model: body.model ?? '',
    messages: toMessages(body, { ...refusals, ...form }),
  }
  const tools = toChatTools(body.tools, refusals)
  setIfPresent(translated, 'tools', tools)
  if (tools !== undefined) {
    setIfPresent(translated, 'tool_choice', toToolChoice(body.tool_choice, refusals))
    if (body.parallel_tool_calls === false) translated.parallel_tool_calls = false
  }
  setIfPresent(translated, 'max_tokens', body.max_output_tokens)
  setText(translated, body.text, refusals)
  if (isJsonObject(body.reasoning)) setIfPresent(translated, 'reasoning_effort', body.reasoning.effort)
  if (wantsLogprobs(body)) translated.logprobs = true
  setIfPresent(translated, 'top_logprobs', wantsLogprobs(body) ? body.top_logprobs : undefined)
  // The last event of a response contains the token counts, which chat streams report on request only.
  if (body.stream === true) translated.stream_options = { include_usage: true }
  for (const name of ['stream', 'temperature', 'top_p', 'user']) setIfPresent(translated, name, body[name])
  const result = refusals.result(translated)
  return result.kind === 'body' ? { ...result, settings: settingsOf(body) } : result
}

const translatedFields: ReadonlySet<string> = new Set([
  ...['model', 'input', 'instructions', 'tools', 'tool_choice', 'parallel_tool_calls', 'max_output_tokens'],
  ...['text', 'reasoning', 'include', 'top_logprobs', 'stream', 'temperature', 'top_p', 'user'],
  // Refused with a reason of their own.
  ...['previous_response_id', 'conversation', 'prompt', 'background'],
  // Hints without effect on the content of the response: storage, caching, abuse detection, price.
  ...['store', 'metadata', 'prompt_cache_key', 'prompt_cache_retention', 'prompt_cache_options'],
  ...['safety_identifier', 'service_tier', 'stream_options'],
  // `truncation` concerns conversations that are too long, `max_tool_calls` tools of the provider.
  ...['truncation', 'max_tool_calls'],
])

/** Refuses references to state that OpenAI stores. */
function refuseStoredState(body: JsonObject, refusals: Refusals): void {
  const hint = 'the provider stores no responses: send the whole conversation in input'
  if (!isAbsent(body.previous_response_id)) refusals.add('previous_response_id', hint)
  if (!isAbsent(body.conversation)) refusals.add('conversation', hint)
  if (!isAbsent(body.prompt)) refusals.add('prompt', 'the provider stores no prompts: use instructions')
  if (!isAbsent(body.background) && body.background !== false)
    refusals.add('background', 'must be false: the provider stores no responses')
}

/** Token probabilities are requested by `include`. */
function wantsLogprobs({ include }: JsonObject): boolean {
  return Array.isArray(include) && include.includes('message.output_text.logprobs')
}

function setText(translated: JsonObject, text: JsonValue | undefined, refusals: Refusals): void {
  if (isAbsent(text)) return
  if (!isJsonObject(text)) {
    refusals.add('text', 'must be an object')
    return
  }
  refusals.addUnknown(text, textFields, 'text')
  setIfPresent(translated, 'response_format', toResponseFormat(text.format, refusals))
  if (text.verbosity !== 'medium') setIfPresent(translated, 'verbosity', text.verbosity)
}

const textFields: ReadonlySet<string> = new Set(['format', 'verbosity'])

function toResponseFormat(format: JsonValue | undefined, refusals: Refusals): JsonObject | undefined {
  if (isAbsent(format)) return undefined
  const type = isJsonObject(format) ? format.type : undefined
  if (!isJsonObject(format) || typeof type !== 'string') {
    refusals.add('text.format', 'must be an object with a type')
    return undefined
  }
  if (type === 'text') return undefined
  if (type === 'json_object') return { type }
  if (type === 'json_schema') {
    const { type: _, ...schema } = format
    return { type, json_schema: schema }
  }
  refusals.add('text.format.type', 'must be text, json_object or json_schema')
  return undefined
}

function setIfPresent(body: JsonObject, name: string, value: JsonValue | undefined): void {
  if (!isAbsent(value)) body[name] = value
}
