import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { createRefusals, isAbsent, type Refusals } from '../refusals.ts'
import type { TranslatedRequest } from '../translate.ts'
import type { ChatForm } from './chat-form.ts'
import { toChatMessages } from './messages.ts'
import { toChatToolChoice, toChatTools } from './tools.ts'

/** Translates a messages request to a chat completions request. */
export function messagesToChatRequest(body: JsonObject, form: ChatForm): TranslatedRequest {
  const refusals = { ...createRefusals(form.upstream), form }
  refusals.addUnknown(body, translatedFields, '')
  refuseUntranslatable(body, refusals)
  const translated: JsonObject = {
    model: body.model ?? '',
    messages: toChatMessages(body, refusals),
  }
  const tools = toChatTools(body.tools, refusals)
  setIfPresent(translated, 'tools', tools)
  const { toolChoice, parallelToolCalls } = toChatToolChoice(body.tool_choice, refusals)
  setIfPresent(translated, 'tool_choice', toolChoice)
  if (tools !== undefined) setIfPresent(translated, 'parallel_tool_calls', parallelToolCalls)
  const stop = emptyToUndefined(body.stop_sequences)
  if (!isAbsent(stop) && !form.stopSequences)
    refusals.add('stop_sequences', `${form.upstream} has no stop sequences`)
  setIfPresent(translated, 'stop', stop)
  setIfPresent(translated, 'response_format', toResponseFormat(body.output_config, refusals))
  setIfPresent(translated, 'reasoning_effort', toReasoningEffort(body, refusals))
  if (form.signedThinking) translated.reasoning = { summary: isThinking(body) ? 'auto' : null }
  setIfPresent(translated, 'user', toUser(body.metadata))
  if (body.service_tier === 'standard_only') translated.service_tier = 'default'
  // The last event of a message contains the token counts, which chat streams report on request only.
  if (body.stream === true) translated.stream_options = { include_usage: true }
  for (const name of ['max_tokens', 'stream', 'temperature', 'top_p'])
    setIfPresent(translated, name, body[name])
  return refusals.result(translated)
}

const translatedFields: ReadonlySet<string> = new Set([
  ...['model', 'messages', 'system', 'tools', 'tool_choice', 'max_tokens', 'stop_sequences', 'stream'],
  ...['temperature', 'top_p', 'thinking', 'output_config', 'metadata', 'service_tier'],
  // Accepted only with a value that has no effect.
  ...['speed', 'context_management'],
  // Cache marks and requests for diagnostics do not change the response.
  ...['cache_control', 'diagnostics'],
])

/** Refuses fields without a counterpart unless their value equals the default behaviour. */
function refuseUntranslatable(body: JsonObject, refusals: Refusals): void {
  if (!isAbsent(body.speed) && body.speed !== 'standard') {
    refusals.add('speed', 'cannot be translated for chat completions')
  }
  if (!isAbsent(body.context_management) && !onlyClears(body.context_management)) {
    refusals.add(
      'context_management',
      'only edits that clear old content can be left out for chat completions',
    )
  }
}

/** Edits that clear old tool results or thinking save tokens and can be omitted. */
function onlyClears(management: JsonValue): boolean {
  if (!isJsonObject(management)) return false
  const edits = management.edits ?? []
  if (!Array.isArray(edits)) return false
  return edits.every(
    (edit) => isJsonObject(edit) && typeof edit.type === 'string' && edit.type.startsWith('clear_'),
  )
}

function emptyToUndefined(list: JsonValue | undefined): JsonValue | undefined {
  return Array.isArray(list) && list.length === 0 ? undefined : list
}

function toResponseFormat(config: JsonValue | undefined, refusals: Refusals): JsonObject | undefined {
  if (isAbsent(config)) return undefined
  if (!isJsonObject(config)) {
    refusals.add('output_config', 'must be an object')
    return undefined
  }
  refusals.addUnknown(config, outputFields, 'output_config')
  if (isAbsent(config.format)) return undefined
  const schema =
    isJsonObject(config.format) && config.format.type === 'json_schema' ? config.format.schema : undefined
  if (!isJsonObject(schema)) {
    refusals.add('output_config.format', 'must be a json_schema format with a schema')
    return undefined
  }
  // The messages API guarantees the schema; chat guarantees it only with `strict`.
  return { type: 'json_schema', json_schema: { name: 'answer', schema, strict: true } }
}

const outputFields: ReadonlySet<string> = new Set(['format', 'effort'])

/**
 * The explicit effort, else one derived from the thinking budget. Adaptive and disabled thinking are the
 * default of chat.
 */
function toReasoningEffort(body: JsonObject, refusals: Refusals): JsonValue | undefined {
  const effort = isJsonObject(body.output_config) ? body.output_config.effort : undefined
  if (!isAbsent(effort)) return effort
  if (isAbsent(body.thinking)) return undefined
  if (!isJsonObject(body.thinking)) {
    refusals.add('thinking', 'must be an object')
    return undefined
  }
  const { type, budget_tokens: budget } = body.thinking
  if (type !== 'enabled') {
    if (type !== 'adaptive' && type !== 'disabled')
      refusals.add('thinking.type', 'must be enabled, adaptive or disabled')
    return undefined
  }
  if (typeof budget !== 'number') {
    refusals.add('thinking.budget_tokens', 'must be a number')
    return undefined
  }
  if (budget <= 4096) return 'low'
  return budget <= 16_384 ? 'medium' : 'high'
}

/** Clients that do not request thinking expect a text as the first block. */
function isThinking({ thinking }: JsonObject): boolean {
  return isJsonObject(thinking) && (thinking.type === 'enabled' || thinking.type === 'adaptive')
}

/** Upstreams reject longer ids, which only serve abuse detection. */
const maxUserLength = 64

function toUser(metadata: JsonValue | undefined): string | undefined {
  const user = isJsonObject(metadata) ? metadata.user_id : undefined
  return typeof user === 'string' && user.length <= maxUserLength ? user : undefined
}

function setIfPresent(body: JsonObject, name: string, value: JsonValue | undefined): void {
  if (!isAbsent(value)) body[name] = value
}
