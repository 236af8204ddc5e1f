import {
  type ExactJsonObject,
  type ExactJsonValue,
  isExactJsonObject,
  isJsonObject,
  type JsonObject,
} from '../../../lib/json/json.ts'
import type { Endpoint } from './endpoints.ts'

/** Assumed output tokens of a choice without a limit in the request. */
const assumedTokens = 4_096
/** Maximum charge of one call without a count. */
const maxTokens = 1_000_000

/**
 * Fields that limit the tokens of one choice, alternatives included, and fields that multiply the choices.
 */
const limits: Partial<Record<Endpoint, { tokens: readonly string[]; choices: readonly string[] }>> = {
  chat: { tokens: ['max_completion_tokens', 'max_tokens'], choices: ['n'] },
  completions: { tokens: ['max_tokens'], choices: ['n', 'best_of'] },
  messages: { tokens: ['max_tokens'], choices: [] },
  responses: { tokens: ['max_output_tokens'], choices: [] },
  cohere_chat: { tokens: ['max_tokens'], choices: [] },
  realtime: { tokens: ['max_output_tokens', 'max_response_output_tokens'], choices: [] },
}

/** Configured request fields as JSON texts: `overrides` are always set, `defaults` if absent. */
export type ConfiguredFields = {
  readonly overrides: ReadonlyMap<string, string>
  readonly defaults: ReadonlyMap<string, string>
}

/**
 * Maximum output tokens of a call: the limit of the request, or an assumed limit, per choice. Zero for
 * embeddings.
 */
export function outputLimit(
  endpoint: Endpoint,
  request: ExactJsonObject,
  fields: ConfiguredFields,
  assumed = assumedTokens,
): number {
  if (endpoint === 'generate_content') return contentLimit(request, assumed)
  if (endpoint === 'converse' || endpoint === 'invoke') return bedrockLimit(request, fields, assumed)
  const names = limits[endpoint]
  if (names === undefined) return 0
  const tokens = highest(names.tokens, request, fields) ?? assumed
  const choices = Math.max(1, highest(names.choices, request, fields) ?? 1)
  return Math.min(maxTokens, tokens * choices)
}

/** `generationConfig` of the request, in either spelling. */
function contentLimit(request: ExactJsonObject, assumed: number): number {
  const config = request['generationConfig'] ?? request['generation_config']
  const fields = isExactJsonObject(config) ? config : {}
  const tokens = positive(fields['maxOutputTokens'] ?? fields['max_output_tokens']) ?? assumed
  const choices = positive(fields['candidateCount'] ?? fields['candidate_count']) ?? 1
  return Math.min(maxTokens, tokens * choices)
}

/** Names of the limit in the APIs of Bedrock's models, at the top or in one of these objects. */
const bedrockNames = [
  ...['maxTokens', 'max_tokens', 'max_new_tokens', 'maxTokenCount', 'max_gen_len'],
  ...['max_completion_tokens', 'max_output_tokens', 'max_tokens_to_sample'],
]
const bedrockConfigs = ['inferenceConfig', 'textGenerationConfig', 'additionalModelRequestFields']

function bedrockLimit(request: ExactJsonObject, fields: ConfiguredFields, assumed: number): number {
  const found = [...bedrockLimitsIn(request), ...bedrockLimitsIn(parsedFields(fields.overrides))]
  const limits = found.length === 0 ? bedrockLimitsIn(parsedFields(fields.defaults)) : found
  return Math.min(maxTokens, limits.length === 0 ? assumed : Math.max(...limits))
}

function bedrockLimitsIn(request: ExactJsonObject): number[] {
  const configs = bedrockConfigs.map((name) => request[name]).filter(isExactJsonObject)
  return [request, ...configs].flatMap((fields) =>
    bedrockNames.map((name) => positive(fields[name])).filter((tokens) => tokens !== undefined),
  )
}

function parsedFields(fields: ReadonlyMap<string, string>): ExactJsonObject {
  return Object.fromEntries([...fields].map(([name, text]) => [name, JSON.parse(text)]))
}

/** The largest of several fields; undefined if none is set. */
function highest(
  names: readonly string[],
  request: ExactJsonObject,
  fields: ConfiguredFields,
): number | undefined {
  let largest: number | undefined
  for (const name of names) {
    const value = positive(configured(name, request, fields))
    if (value !== undefined && (largest === undefined || value > largest)) largest = value
  }
  return largest
}

function configured(
  name: string,
  request: ExactJsonObject,
  { overrides, defaults }: ConfiguredFields,
): ExactJsonValue | undefined {
  const override = overrides.get(name)
  if (override !== undefined) return JSON.parse(override)
  const own = request[name]
  const fallback = defaults.get(name)
  return own === undefined && fallback !== undefined ? JSON.parse(fallback) : own
}

function positive(value: ExactJsonValue | undefined): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : undefined
}

/** True for a response that continues after the reply to its request: OpenAI's `background`. */
export function isBackground(
  endpoint: Endpoint | 'passthrough',
  request: ExactJsonObject | undefined,
): boolean {
  return endpoint === 'responses' && request?.['background'] === true
}

/**
 * True if the usage in a message covers the complete response; the responses API also reports in progress.
 */
export function isFinalUsage(endpoint: Endpoint, message: JsonObject): boolean {
  // Counts may follow the content.
  if (endpoint === 'generate_content') return message['candidates'] === undefined || endsContent(message)
  if (endpoint !== 'responses') return true
  const { response } = message
  const { status } = isJsonObject(response) ? response : message
  return status !== 'queued' && status !== 'in_progress'
}

/** True for the end of a `generateContent` response: a candidate that is complete, or a blocked prompt. */
export function endsContent({ candidates, promptFeedback }: JsonObject): boolean {
  if (isJsonObject(promptFeedback) && promptFeedback['blockReason'] !== undefined) return true
  if (!Array.isArray(candidates)) return false
  return candidates.some((candidate) => isJsonObject(candidate) && candidate['finishReason'] !== undefined)
}
