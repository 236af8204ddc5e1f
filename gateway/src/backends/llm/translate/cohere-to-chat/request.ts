import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import type { ChatDialect } from '../gemini-to-chat/dialect.ts'
import { closeSchema } from '../gemini-to-chat/schema.ts'
import { createRefusals, isAbsent, type Refusals } from '../refusals.ts'
import type { TranslatedRequest } from '../translate.ts'
import { toChatMessages } from './messages.ts'
import { toChatTools } from './tools.ts'

/** Fields with equal values, by their names in chat completions. */
const renamed: readonly (readonly [cohere: string, chat: string])[] = [
  ['max_tokens', 'max_tokens'],
  ['temperature', 'temperature'],
  ['p', 'top_p'],
  ['seed', 'seed'],
  ['frequency_penalty', 'frequency_penalty'],
  ['presence_penalty', 'presence_penalty'],
]

/** Translates a request of `/v2/chat` to a chat completions request. */
export function cohereToChatRequest(body: JsonObject, dialect: ChatDialect): TranslatedRequest {
  const refusals = createRefusals(dialect.upstream)
  refusals.addUnknown(body, translatedFields, '')
  refuseUntranslatable(body, refusals)
  const { tools, choice } = toChatTools(body, refusals)
  const translated: JsonObject = {
    model: body.model ?? '',
    messages: toChatMessages(body.messages, refusals),
  }
  for (const [cohere, chat] of renamed) setIfPresent(translated, chat, body[cohere])
  // Zero disables the limit.
  if (body['k'] !== 0) setIfPresent(translated, 'top_k', body['k'])
  setIfPresent(translated, 'tools', tools)
  setIfPresent(translated, 'tool_choice', choice)
  setIfPresent(translated, 'stop', toStop(body.stop_sequences, refusals))
  setIfPresent(translated, 'response_format', toResponseFormat(body.response_format, refusals))
  Object.assign(translated, thinkingOf(body, dialect, refusals))
  // The last event has the token counts, which streams of chat completions report on request only.
  if (body.stream === true)
    Object.assign(translated, { stream: true, stream_options: { include_usage: true } })
  return refusals.result(translated)
}

const translatedFields: ReadonlySet<string> = new Set([
  ...['model', 'messages', 'stream', 'tools', 'tool_choice', 'strict_tools', 'response_format', 'thinking'],
  ...renamed.map(([name]) => name),
  ...['k', 'stop_sequences'],
  // Without documents, they have no effect.
  'citation_options',
  // Refused with a reason of their own, or without effect.
  ...['documents', 'safety_mode', 'logprobs', 'priority'],
])

function refuseUntranslatable(body: JsonObject, refusals: Refusals): void {
  const { documents, safety_mode: safety, logprobs, priority } = body
  if (!isAbsent(documents) && !(Array.isArray(documents) && documents.length === 0))
    refusals.add(
      'documents',
      'only models of Cohere read documents: send their texts in a message or as the result of a tool',
    )
  // The default and `OFF` are instructions for models of Cohere.
  if (!isAbsent(safety) && safety !== 'CONTEXTUAL' && safety !== 'OFF' && safety !== 'NONE')
    refusals.add('safety_mode', 'only CONTEXTUAL and OFF can be translated: send instructions of your own')
  if (logprobs === true) refusals.add('logprobs', 'ids of tokens exist for models of Cohere only')
  if (!isAbsent(priority) && priority !== 0) refusals.add('priority', 'must be 0 for models of other vendors')
}

function toStop(sequences: JsonValue | undefined, refusals: Refusals): JsonValue | undefined {
  if (isAbsent(sequences)) return undefined
  if (!Array.isArray(sequences) || !sequences.every((sequence) => typeof sequence === 'string')) {
    refusals.add('stop_sequences', 'must be a list of strings')
    return undefined
  }
  return sequences.length === 0 ? undefined : sequences
}

function toResponseFormat(format: JsonValue | undefined, refusals: Refusals): JsonObject | undefined {
  if (isAbsent(format)) return undefined
  const { type, json_schema: schema } = isJsonObject(format) ? format : {}
  if (type === 'text') return undefined
  if (type !== 'json_object') {
    refusals.add('response_format.type', 'must be text or json_object')
    return undefined
  }
  if (isAbsent(schema)) return { type: 'json_object' }
  const closed = isJsonObject(schema) ? closeSchema(schema) : undefined
  if (closed === undefined)
    refusals.add('response_format.json_schema', 'must be a schema of at most 64 levels')
  // Chat guarantees only schemas that require all properties.
  const strict = closed?.requiresAll === true ? { strict: true } : undefined
  return { type: 'json_schema', json_schema: { name: 'answer', schema: closed?.schema ?? {}, ...strict } }
}

const thinkingFields: ReadonlySet<string> = new Set(['type', 'token_budget'])

/** Smallest budget of the messages API, and the tokens of an answer beside its thinking. */
const minBudget = 1024
const answerTokens = 8192

function thinkingOf(body: JsonObject, dialect: ChatDialect, refusals: Refusals): JsonObject {
  const { thinking, max_tokens: limit } = body
  if (isAbsent(thinking)) return {}
  if (!isJsonObject(thinking)) {
    refusals.add('thinking', 'must be an object')
    return {}
  }
  refusals.addUnknown(thinking, thinkingFields, 'thinking')
  const { type, token_budget: budget } = thinking
  if (type === 'disabled') return { reasoning_effort: 'none' }
  if (type !== 'enabled') refusals.add('thinking.type', 'must be enabled or disabled')
  const summary = dialect.thinking === 'summary' ? { reasoning: { summary: 'auto' } } : undefined
  if (isAbsent(budget)) return { reasoning_effort: 'medium', ...summary }
  if (typeof budget !== 'number' || budget < 0) {
    refusals.add('thinking.token_budget', 'must be a positive number')
    return {}
  }
  if (dialect.thinking !== 'budget')
    return { reasoning_effort: budget <= 4096 ? 'low' : budget <= 16_384 ? 'medium' : 'high', ...summary }
  const tokens = Math.max(budget, minBudget)
  return {
    thinking: { type: 'enabled', budget_tokens: tokens },
    ...(isAbsent(limit) ? { max_tokens: tokens + answerTokens } : undefined),
  }
}

function setIfPresent(body: JsonObject, name: string, value: JsonValue | undefined): void {
  if (!isAbsent(value)) body[name] = value
}
