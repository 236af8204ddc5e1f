import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { isAbsent } from '../refusals.ts'
import { objectAt } from './fields.ts'
import type { PartOptions } from './parts.ts'
import { closeSchema, toJsonSchema } from './schema.ts'

/** Fields with equal values and another name. */
const renamed: readonly (readonly [gemini: string, chat: string])[] = [
  ['temperature', 'temperature'],
  ['topP', 'top_p'],
  ['topK', 'top_k'],
  ['maxOutputTokens', 'max_tokens'],
  ['seed', 'seed'],
  ['presencePenalty', 'presence_penalty'],
  ['frequencyPenalty', 'frequency_penalty'],
]

const configFields: ReadonlySet<string> = new Set([
  ...renamed.map(([name]) => name),
  ...['stopSequences', 'candidateCount', 'responseLogprobs', 'logprobs', 'responseModalities'],
  ...['responseMimeType', 'responseSchema', 'responseJsonSchema', '_responseJsonSchema', 'thinkingConfig'],
  // Concerns only cost and accuracy of images.
  'mediaResolution',
])

const at = (name: string) => `generationConfig.${name}`

/** Translates `generationConfig` to fields of a chat request. */
export function fromGenerationConfig(value: JsonValue | undefined, options: PartOptions): JsonObject {
  if (isAbsent(value)) return {}
  const { refusals, dialect } = options
  const config = objectAt(value, 'generationConfig', refusals)
  refusals.addUnknown(config, configFields, 'generationConfig')
  const fields: JsonObject = {}
  const set = (name: string, member: JsonValue | undefined) => {
    if (!isAbsent(member)) fields[name] = member
  }
  for (const [gemini, chat] of renamed) set(chat, config[gemini])
  const { stopSequences, candidateCount, responseLogprobs, logprobs } = config
  if (Array.isArray(stopSequences) && stopSequences.length > 0) fields.stop = stopSequences
  if (!isAbsent(candidateCount) && candidateCount !== 1) fields.n = candidateCount
  if (responseLogprobs === true) {
    fields.logprobs = true
    set('top_logprobs', logprobs)
  }
  if (dialect.thinking === 'budget') refuseForMessages(config, options)
  if (dialect.thinking === 'summary') refuseForResponses(config, options)
  set('modalities', toModalities(config.responseModalities, options))
  set('response_format', toResponseFormat(config, options))
  const showsThoughts = dialect.thinking === 'summary' && includesThoughts(value, options)
  return {
    ...fields,
    ...thinkingOf(config.thinkingConfig, config.maxOutputTokens, options),
    ...(showsThoughts ? { reasoning: { summary: 'auto' } } : undefined),
  }
}

/** Fields of chat without a counterpart in the messages API, with their names in the request. */
function refuseForMessages(config: JsonObject, { refusals, dialect }: PartOptions): void {
  const { candidateCount, temperature } = config
  if (!isAbsent(candidateCount) && candidateCount !== 1)
    refusals.add(at('candidateCount'), `must be 1: ${dialect.upstream} gives one answer per request`)
  if (typeof temperature === 'number' && temperature > 1)
    refusals.add(at('temperature'), `${dialect.upstream} takes 0 to 1`)
  for (const name of ['seed', 'presencePenalty', 'frequencyPenalty']) {
    const isNeutral = name !== 'seed' && config[name] === 0
    if (!isAbsent(config[name]) && !isNeutral)
      refusals.add(at(name), `cannot be translated for ${dialect.upstream}`)
  }
  if (config.responseLogprobs === true)
    refusals.add(at('responseLogprobs'), `${dialect.upstream} has no token probabilities`)
}

/** Fields of chat without a counterpart in the Responses API, likewise. */
function refuseForResponses(config: JsonObject, { refusals, dialect }: PartOptions): void {
  const { candidateCount, stopSequences } = config
  if (!isAbsent(candidateCount) && candidateCount !== 1)
    refusals.add(at('candidateCount'), `must be 1: ${dialect.upstream} returns one answer per request`)
  if (Array.isArray(stopSequences) && stopSequences.length > 0)
    refusals.add(at('stopSequences'), `${dialect.upstream} has no stop sequences`)
  for (const name of ['topK', 'seed', 'presencePenalty', 'frequencyPenalty']) {
    const isNeutral = name.endsWith('Penalty') && config[name] === 0
    if (!isAbsent(config[name]) && !isNeutral)
      refusals.add(at(name), `cannot be translated for ${dialect.upstream}`)
  }
}

/** Text is the default. */
function toModalities(
  modalities: JsonValue | undefined,
  { refusals, dialect }: PartOptions,
): JsonValue | undefined {
  if (isAbsent(modalities) || (Array.isArray(modalities) && modalities.length === 0)) return undefined
  const names = Array.isArray(modalities) ? modalities.map((name) => String(name).toUpperCase()) : []
  const hasImages = dialect.media === 'audio and video'
  const isKnown = names.every((name) => name === 'TEXT' || (hasImages && name === 'IMAGE'))
  if (names.length === 0 || !isKnown)
    refusals.add(
      at('responseModalities'),
      `must be TEXT${hasImages ? ' or IMAGE' : ''} for ${dialect.upstream}`,
    )
  return names.includes('IMAGE') ? names.map((name) => name.toLowerCase()) : undefined
}

function toResponseFormat(config: JsonObject, { refusals, dialect }: PartOptions): JsonObject | undefined {
  const { responseMimeType: type, responseSchema } = config
  const jsonSchema = config.responseJsonSchema ?? config['_responseJsonSchema']
  if (isAbsent(type) || type === 'text/plain' || type === '') return undefined
  if (type !== 'application/json') {
    refusals.add(at('responseMimeType'), `must be text/plain or application/json for ${dialect.upstream}`)
    return undefined
  }
  const given = isAbsent(jsonSchema) ? responseSchema : jsonSchema
  const name = at(isAbsent(jsonSchema) ? 'responseSchema' : 'responseJsonSchema')
  if (isAbsent(given)) {
    if (dialect.plainJson === 'no')
      refusals.add(at('responseMimeType'), `application/json requires responseSchema for ${dialect.upstream}`)
    return { type: 'json_object' }
  }
  const read = !isJsonObject(given) ? undefined : isAbsent(jsonSchema) ? toJsonSchema(given) : given
  const closed = read && closeSchema(read)
  if (closed === undefined) {
    refusals.add(name, 'must be a schema of at most 64 levels')
    return undefined
  }
  // Chat guarantees only schemas that require all properties.
  const strict = closed.requiresAll ? { strict: true } : undefined
  return { type: 'json_schema', json_schema: { name: 'answer', schema: closed.schema, ...strict } }
}

const thinkingFields: ReadonlySet<string> = new Set(['includeThoughts', 'thinkingBudget', 'thinkingLevel'])

/** Smallest budget of the messages API, and the tokens of an answer beside its thinking. */
const minBudget = 1024
const answerTokens = 8192

function thinkingOf(
  value: JsonValue | undefined,
  limit: JsonValue | undefined,
  { refusals, dialect }: PartOptions,
): JsonObject {
  if (isAbsent(value)) return {}
  const config = objectAt(value, at('thinkingConfig'), refusals)
  refusals.addUnknown(config, thinkingFields, at('thinkingConfig'))
  const { thinkingBudget: budget, thinkingLevel: level } = config
  if (!isAbsent(level)) {
    const effort = typeof level === 'string' ? efforts.get(level.toUpperCase()) : undefined
    if (effort === undefined)
      refusals.add(at('thinkingConfig.thinkingLevel'), 'must be MINIMAL, LOW, MEDIUM or HIGH')
    return effort === undefined || effort === '' ? {} : { reasoning_effort: effort }
  }
  if (isAbsent(budget)) return {}
  if (typeof budget !== 'number') {
    refusals.add(at('thinkingConfig.thinkingBudget'), 'must be a number')
    return {}
  }
  // The model determines a dynamic budget.
  if (budget < 0) return {}
  if (budget === 0) return { reasoning_effort: 'none' }
  if (dialect.thinking !== 'budget')
    return { reasoning_effort: budget <= 4096 ? 'low' : budget <= 16_384 ? 'medium' : 'high' }
  const tokens = Math.max(budget, minBudget)
  return {
    thinking: { type: 'enabled', budget_tokens: tokens },
    ...(isAbsent(limit) ? { max_tokens: tokens + answerTokens } : undefined),
  }
}

const efforts: ReadonlyMap<string, string> = new Map([
  ['MINIMAL', 'minimal'],
  ['LOW', 'low'],
  ['MEDIUM', 'medium'],
  ['HIGH', 'high'],
  ['THINKING_LEVEL_UNSPECIFIED', ''],
])

/** True if the client requests thoughts in the response. */
export function includesThoughts(config: JsonValue | undefined, { refusals }: PartOptions): boolean {
  if (!isJsonObject(config)) return false
  const { thinkingConfig } = objectAt(config, 'generationConfig', refusals)
  return (
    isJsonObject(thinkingConfig) &&
    (thinkingConfig.includeThoughts ?? thinkingConfig['include_thoughts']) === true
  )
}
