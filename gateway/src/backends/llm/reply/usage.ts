import {
  type ExactJsonObject,
  type ExactJsonValue,
  isJsonObject,
  type JsonObject,
  type JsonValue,
} from '../../../lib/json/json.ts'
import { defaultJsonLimits } from '../../../lib/json/limits.ts'
import type { Usage } from '../../../pipeline/exchange.ts'
import type { Endpoint } from '../request/endpoints.ts'

/** More tokens than this in one answer is no count but a defect or an attack. */
const maxTokens = 1_000_000_000

/**
 * The usage object of an unstreamed answer or of one stream event, normalised, or undefined where there is none worth
 * believing. Input includes cache reads and writes, output includes reasoning.
 */
export function usageIn(endpoint: Endpoint, message: JsonObject): Usage | undefined {
  switch (endpoint) {
    case 'chat':
    case 'completions':
    case 'embeddings':
      return openAiUsage(message['usage'])
    case 'responses':
      return responsesUsage(nested(message, 'response'))
    case 'messages':
      return anthropicUsage(nested(message, 'message'))
    case 'count_tokens':
      return undefined
  }
}

/** A longer name is none, and would be kept and looked up all the same. */
const maxModelLength = 256

/** The model that an unstreamed answer, or a stream event with usage, says has answered; undefined where it does not. */
export function modelIn(endpoint: Endpoint, message: JsonObject): string | undefined {
  const answer = endpoint === 'responses' ? message['response'] : message['message']
  const model = (isJsonObject(answer) ? answer['model'] : undefined) ?? message['model']
  return typeof model === 'string' && model !== '' && model.length <= maxModelLength ? model : undefined
}

/** Stream events wrap the answer they are about; unstreamed answers are that answer. */
function nested(message: JsonObject, wrapper: string): JsonValue | undefined {
  const inner = message[wrapper]
  return isJsonObject(inner) ? inner['usage'] : message['usage']
}

/**
 * https://platform.openai.com/docs/api-reference/chat/object: prompt tokens include cached ones, completion tokens reasoning.
 * Some services that offer this API (Gemini) count reasoning in the total alone.
 */
function openAiUsage(value: JsonValue | undefined): Usage | undefined {
  if (!isJsonObject(value)) return undefined
  const input = count(value['prompt_tokens'])
  const output = count(value['completion_tokens'])
  if (input === undefined && output === undefined) return undefined
  const inTotalAlone = Math.max(0, (count(value['total_tokens']) ?? 0) - (input ?? 0) - (output ?? 0))
  const inputDetails = value['prompt_tokens_details']
  const outputDetails = value['completion_tokens_details']
  return usage({
    inputTokens: input ?? 0,
    outputTokens: (output ?? 0) + inTotalAlone,
    cachedInputTokens: detail(inputDetails, 'cached_tokens'),
    cacheCreationInputTokens: detail(inputDetails, 'cache_write_tokens'),
    reasoningTokens: Math.max(inTotalAlone, detail(outputDetails, 'reasoning_tokens')),
    inputAudioTokens: audioTokens(inputDetails),
    outputAudioTokens: audioTokens(outputDetails),
  })
}

/** https://platform.openai.com/docs/api-reference/responses/object */
function responsesUsage(value: JsonValue | undefined): Usage | undefined {
  if (!isJsonObject(value)) return undefined
  const input = count(value['input_tokens'])
  const output = count(value['output_tokens'])
  if (input === undefined && output === undefined) return undefined
  return usage({
    inputTokens: input ?? 0,
    outputTokens: output ?? 0,
    cachedInputTokens: detail(value['input_tokens_details'], 'cached_tokens'),
    cacheCreationInputTokens: 0,
    reasoningTokens: detail(value['output_tokens_details'], 'reasoning_tokens'),
  })
}

/** https://docs.anthropic.com/en/api/messages: input tokens come without cache reads and writes, which are added. */
function anthropicUsage(value: JsonValue | undefined): Usage | undefined {
  if (!isJsonObject(value)) return undefined
  const input = count(value['input_tokens'])
  const output = count(value['output_tokens'])
  if (input === undefined && output === undefined) return undefined
  const cached = count(value['cache_read_input_tokens']) ?? 0
  const created = count(value['cache_creation_input_tokens']) ?? 0
  return usage({
    inputTokens: (input ?? 0) + cached + created,
    outputTokens: output ?? 0,
    cachedInputTokens: cached,
    cacheCreationInputTokens: created,
    reasoningTokens: detail(value['output_tokens_details'], 'thinking_tokens'),
  })
}

/**
 * Two reports of one stream of messages as one: the opening one counts the input, the closing one the output, and what
 * a report leaves out is zero in it.
 */
export function mergeUsage(earlier: Usage | undefined, later: Usage): Usage {
  if (earlier === undefined) return later
  return usage({
    inputTokens: Math.max(earlier.inputTokens, later.inputTokens),
    outputTokens: Math.max(earlier.outputTokens, later.outputTokens),
    cachedInputTokens: Math.max(earlier.cachedInputTokens, later.cachedInputTokens),
    cacheCreationInputTokens: Math.max(earlier.cacheCreationInputTokens, later.cacheCreationInputTokens),
    reasoningTokens: Math.max(earlier.reasoningTokens, later.reasoningTokens),
  })
}

/**
 * Counts for an answer that ended without usage: bytes / 4. What the upstream did report of the input stands, and its
 * output count is a lower bound.
 */
export function estimateUsage(
  reported: Usage | undefined,
  requestTokens: number,
  generatedBytes: number,
): Usage {
  const generated = Math.ceil(generatedBytes / 4)
  return {
    ...usage({
      inputTokens: reported?.inputTokens ?? requestTokens,
      outputTokens: Math.max(reported?.outputTokens ?? 0, generated),
      cachedInputTokens: reported?.cachedInputTokens ?? 0,
      cacheCreationInputTokens: reported?.cacheCreationInputTokens ?? 0,
      reasoningTokens: reported?.reasoningTokens ?? 0,
      inputAudioTokens: reported?.inputAudioTokens,
      outputAudioTokens: reported?.outputAudioTokens,
    }),
    estimated: true,
  }
}

/** The usage with at least so many output tokens. */
export function withOutputTokens(counts: Usage, atLeast: number): Usage {
  const outputTokens = Math.max(counts.outputTokens, atLeast)
  return { ...counts, outputTokens, totalTokens: counts.inputTokens + outputTokens }
}

/** Input tokens of a request of any API: the bytes of its texts / 4, at least one. */
export function estimateTokens(request: ExactJsonObject): number {
  return Math.max(1, Math.ceil(textBytes(request) / 4))
}

/** Members that hold files and pictures, whose size says nothing about tokens, or no content at all. */
const notText: ReadonlySet<string> = new Set([
  'model',
  'data',
  'file_data',
  'image_url',
  'url',
  'encrypted_content',
  'signature',
])

/** Bytes of the texts of an answer that says nothing of its size; an upstream may nest it without end. */
export function generatedTextBytes(message: JsonObject): number {
  return textBytes(message)
}

const { maxDepth } = defaultJsonLimits

function textBytes(value: ExactJsonValue, depth = 0): number {
  if (typeof value === 'string') return Buffer.byteLength(value)
  if (typeof value !== 'object' || value === null || depth > maxDepth) return 0
  let bytes = 0
  if (isExactList(value)) {
    // Token ids, which embeddings accept in place of text, are tokens themselves.
    for (const item of value) bytes += isNumeric(item) ? 4 : textBytes(item, depth + 1)
    return bytes
  }
  for (const key in value) {
    const member = value[key]
    if (member !== undefined && !notText.has(key)) bytes += textBytes(member, depth + 1)
  }
  return bytes
}

function usage(counts: Omit<Usage, 'totalTokens' | 'estimated'>): Usage {
  const { inputTokens, outputTokens, cachedInputTokens, cacheCreationInputTokens, reasoningTokens } = counts
  return {
    inputTokens,
    outputTokens,
    totalTokens: inputTokens + outputTokens,
    cachedInputTokens,
    cacheCreationInputTokens,
    reasoningTokens,
    inputAudioTokens: counts.inputAudioTokens,
    outputAudioTokens: counts.outputAudioTokens,
    estimated: false,
  }
}

function detail(details: JsonValue | undefined, name: string): number {
  return (isJsonObject(details) ? count(details[name]) : undefined) ?? 0
}

function audioTokens(details: JsonValue | undefined): number | undefined {
  return isJsonObject(details) ? count(details['audio_tokens']) : undefined
}

function count(value: JsonValue | undefined): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= maxTokens
    ? value
    : undefined
}

function isNumeric(value: ExactJsonValue): boolean {
  return typeof value === 'number' || typeof value === 'bigint'
}

/** `Array.isArray` does not narrow read-only lists. */
function isExactList(value: object): value is readonly ExactJsonValue[] {
  return Array.isArray(value)
}
