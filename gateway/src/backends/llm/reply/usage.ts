import {
  type ExactJsonObject,
  type ExactJsonValue,
  isJsonObject,
  type JsonObject,
  type JsonValue,
} from '../../../lib/json/json.ts'
import { defaultJsonLimits } from '../../../lib/json/limits.ts'
import type { Usage } from '../../../pipeline/facts/llm-facts.ts'
import type { Endpoint } from '../request/endpoints.ts'
import {
  cohereUsage,
  converseUsage,
  embedUsage,
  predictUsage,
  rerankUsage,
  usageInChunk,
} from './invoke-usage.ts'
import { unitsIn } from './units.ts'

/** Maximum plausible token count of a response; larger counts are defects or attacks. */
const maxTokens = 1_000_000_000

/**
 * Normalised usage of a response object or a stream event; undefined without plausible counts. Input includes
 * cache reads and writes, output includes reasoning.
 */
export function usageIn(endpoint: Endpoint, message: JsonObject): Usage | undefined {
  const tokens = tokensIn(endpoint, message)
  const units = tokens && unitsIn(endpoint, message)
  return tokens === undefined || units === undefined ? tokens : { ...tokens, units }
}

function tokensIn(endpoint: Endpoint, message: JsonObject): Usage | undefined {
  switch (endpoint) {
    case 'chat':
    case 'completions':
    case 'embeddings':
      return openAiUsage(message['usage'])
    case 'responses':
      return responsesUsage(nested(message, 'response'))
    case 'realtime':
      return realtimeUsage(nested(message, 'response'))
    case 'messages':
      return anthropicUsage(nested(message, 'message'))
    case 'generate_content':
    case 'embed_content':
    case 'batch_embed_contents':
      return geminiUsage(message['usageMetadata'])
    case 'predict':
      return predictUsage(message['predictions'])
    case 'rerank':
    case 'rerank_v2':
      return rerankUsage(message)
    case 'embed':
      return embedUsage(message['meta'])
    case 'cohere_chat':
      return cohereUsage(nested(message, 'delta'))
    case 'images':
    case 'image_edits':
    case 'image_variations':
      return imageUsage(message['usage'])
    case 'speech':
      return responsesUsage(message['usage'])
    case 'transcriptions':
    case 'translations':
      return transcriptionUsage(message['usage'])
    case 'converse':
      return converseUsage(message['usage'])
    case 'titan_embeddings':
    case 'cohere_embeddings':
    case 'nova_embeddings':
    case 'invoke':
      return usageInChunk(message)
    default:
      return undefined
  }
}

/** Longer model names are ignored, because names are stored and looked up. */
const maxModelLength = 256

/** The model named in a response object or in a stream event with usage. */
export function modelIn(endpoint: Endpoint, message: JsonObject): string | undefined {
  const response = endpoint === 'responses' ? message['response'] : message['message']
  const own = endpoint === 'generate_content' ? message['modelVersion'] : message['model']
  const model = (isJsonObject(response) ? response['model'] : undefined) ?? own
  return typeof model === 'string' && model !== '' && model.length <= maxModelLength ? model : undefined
}

/** The usage of a response: stream events wrap the response in a member. */
function nested(message: JsonObject, wrapper: string): JsonValue | undefined {
  const inner = message[wrapper]
  return isJsonObject(inner) ? inner['usage'] : message['usage']
}

/**
 * https://platform.openai.com/docs/api-reference/chat/object: prompt tokens include cached tokens, completion
 * tokens include reasoning. Some services with this API (Gemini) count reasoning in the total only.
 */
function openAiUsage(value: JsonValue | undefined): Usage | undefined {
  if (!isJsonObject(value)) return undefined
  const input = count(value['prompt_tokens'])
  const output = count(value['completion_tokens'])
  if (input === undefined && output === undefined) return undefined
  const onlyInTotal = Math.max(0, (count(value['total_tokens']) ?? 0) - (input ?? 0) - (output ?? 0))
  const inputDetails = value['prompt_tokens_details']
  const outputDetails = value['completion_tokens_details']
  return usage({
    inputTokens: input ?? 0,
    outputTokens: (output ?? 0) + onlyInTotal,
    cachedInputTokens: detail(inputDetails, 'cached_tokens'),
    cacheCreationInputTokens: detail(inputDetails, 'cache_write_tokens'),
    reasoningTokens: Math.max(onlyInTotal, detail(outputDetails, 'reasoning_tokens')),
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

/** https://platform.openai.com/docs/api-reference/realtime-server-events/response/done */
function realtimeUsage(value: JsonValue | undefined): Usage | undefined {
  const tokens = responsesUsage(value)
  if (tokens === undefined || !isJsonObject(value)) return tokens
  const input = value['input_token_details']
  return {
    ...tokens,
    cachedInputTokens: detail(input, 'cached_tokens'),
    inputAudioTokens: audioTokens(input),
    cachedInputAudioTokens: isJsonObject(input) ? audioTokens(input['cached_tokens_details']) : undefined,
    outputAudioTokens: audioTokens(value['output_token_details']),
  }
}

/**
 * https://platform.openai.com/docs/api-reference/images/object: the output consists of image tokens, unless
 * its details count other ones.
 */
function imageUsage(value: JsonValue | undefined): Usage | undefined {
  const tokens = responsesUsage(value)
  if (tokens === undefined || !isJsonObject(value)) return tokens
  const { input_tokens_details: input, output_tokens_details: output } = value
  return {
    ...tokens,
    inputImageTokens: detail(input, 'image_tokens'),
    outputImageTokens:
      (isJsonObject(output) ? count(output['image_tokens']) : undefined) ?? tokens.outputTokens,
  }
}

/** https://platform.openai.com/docs/api-reference/audio: older models report seconds, which are no tokens. */
function transcriptionUsage(value: JsonValue | undefined): Usage | undefined {
  const tokens = responsesUsage(value)
  if (tokens === undefined || !isJsonObject(value)) return tokens
  return { ...tokens, inputAudioTokens: audioTokens(value['input_token_details']) }
}

/**
 * https://docs.anthropic.com/en/api/messages: input tokens exclude cache reads and writes, which are added
 * here.
 */
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
 * https://ai.google.dev/api/generate-content#UsageMetadata: the prompt includes cached tokens, candidates
 * exclude thoughts. Results of tools that Google runs are a further part of the input.
 */
function geminiUsage(value: JsonValue | undefined): Usage | undefined {
  if (!isJsonObject(value)) return undefined
  const prompt = count(value['promptTokenCount'])
  const candidates = count(value['candidatesTokenCount'])
  if (prompt === undefined && candidates === undefined) return undefined
  const thoughts = count(value['thoughtsTokenCount']) ?? 0
  return usage({
    inputTokens: (prompt ?? 0) + (count(value['toolUsePromptTokenCount']) ?? 0),
    outputTokens: (candidates ?? 0) + thoughts,
    cachedInputTokens: count(value['cachedContentTokenCount']) ?? 0,
    cacheCreationInputTokens: 0,
    reasoningTokens: thoughts,
    inputAudioTokens: modalityOf(value['promptTokensDetails'], 'AUDIO'),
    outputAudioTokens: modalityOf(value['candidatesTokensDetails'], 'AUDIO'),
    // Images of the prompt cost as much as text.
    outputImageTokens: modalityOf(value['candidatesTokensDetails'], 'IMAGE'),
  })
}

/** Tokens of a kind in counts by modality; undefined without such counts. */
function modalityOf(modalities: JsonValue | undefined, wanted: 'AUDIO' | 'IMAGE'): number | undefined {
  if (!Array.isArray(modalities)) return undefined
  const counts = modalities.filter(isJsonObject).filter(({ modality }) => modality === wanted)
  return counts.reduce((sum, { tokenCount }) => sum + (count(tokenCount) ?? 0), 0)
}

/**
 * Merges two reports of one stream of messages: the first counts the input, the last counts the output, and
 * omitted counts are zero.
 */
export function mergeUsage(earlier: Usage | undefined, later: Usage): Usage {
  if (earlier === undefined) return later
  const units = later.units ?? earlier.units
  const tokens = usage({
    inputTokens: Math.max(earlier.inputTokens, later.inputTokens),
    outputTokens: Math.max(earlier.outputTokens, later.outputTokens),
    cachedInputTokens: Math.max(earlier.cachedInputTokens, later.cachedInputTokens),
    cacheCreationInputTokens: Math.max(earlier.cacheCreationInputTokens, later.cacheCreationInputTokens),
    reasoningTokens: Math.max(earlier.reasoningTokens, later.reasoningTokens),
  })
  return units === undefined ? tokens : { ...tokens, units }
}

/**
 * Estimates the usage of a response without a final report: bytes / 4. Reported input is used as it is,
 * reported output as a lower bound.
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
      outputImageTokens: reported?.outputImageTokens,
    }),
    inputImageTokens: reported?.inputImageTokens,
    units: reported?.units,
    estimated: true,
  }
}

/** The sum of two calls. It is an estimate if one of them is. */
export function addUsage(one: Usage | undefined, other: Usage): Usage {
  if (one === undefined) return other
  return {
    ...usage({
      inputTokens: one.inputTokens + other.inputTokens,
      outputTokens: one.outputTokens + other.outputTokens,
      cachedInputTokens: one.cachedInputTokens + other.cachedInputTokens,
      cacheCreationInputTokens: one.cacheCreationInputTokens + other.cacheCreationInputTokens,
      reasoningTokens: one.reasoningTokens + other.reasoningTokens,
      inputAudioTokens: addIfAny(one.inputAudioTokens, other.inputAudioTokens),
      outputAudioTokens: addIfAny(one.outputAudioTokens, other.outputAudioTokens),
    }),
    estimated: one.estimated || other.estimated,
  }
}

function addIfAny(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined ? other : one + (other ?? 0)
}

/** The usage with at least `atLeast` output tokens. */
export function withOutputTokens(counts: Usage, atLeast: number): Usage {
  const outputTokens = Math.max(counts.outputTokens, atLeast)
  return { ...counts, outputTokens, totalTokens: counts.inputTokens + outputTokens }
}

/** Estimates the input tokens of a request of any API: bytes of its texts / 4, at least one. */
export function estimateTokens(request: ExactJsonObject): number {
  return Math.max(1, Math.ceil(textBytes(request) / 4))
}

/** Members with files and images, whose size is unrelated to tokens, and members without content. */
const notText: ReadonlySet<string> = new Set([
  'model',
  'data',
  'file_data',
  'image_url',
  'url',
  'encrypted_content',
  'signature',
])

/** Documents are text or free JSON, whose members have any names. */
const documents: ReadonlySet<string> = new Set(['document', 'documents'])
const none: ReadonlySet<string> = new Set()

/**
 * Bytes of the texts of a response without usage. Its nesting is unlimited, because it comes from an
 * upstream.
 */
export function generatedTextBytes(endpoint: Endpoint, message: JsonObject): number {
  const isTranscript = endpoint === 'transcriptions' || endpoint === 'translations'
  // Segments and words repeat the text.
  return textBytes(isTranscript ? (message['text'] ?? null) : message)
}

const { maxDepth } = defaultJsonLimits

function textBytes(value: ExactJsonValue, depth = 0, omitted = notText): number {
  if (typeof value === 'string') return Buffer.byteLength(value)
  if (typeof value !== 'object' || value === null || depth > maxDepth) return 0
  let bytes = 0
  if (isExactList(value)) {
    // Embeddings accept token ids in place of text; each is one token.
    for (const item of value) bytes += isNumeric(item) ? 4 : textBytes(item, depth + 1, omitted)
    return bytes
  }
  for (const key in value) {
    const member = value[key]
    if (member === undefined || omitted.has(key)) continue
    bytes += textBytes(member, depth + 1, documents.has(key) ? none : omitted)
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
    outputImageTokens: counts.outputImageTokens,
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
