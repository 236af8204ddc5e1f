import {
  type ExactJsonObject,
  type ExactJsonValue,
  isJsonObject,
  type JsonObject,
} from '../../../lib/json/json.ts'
import type { Endpoint } from './endpoints.ts'

/** Output of a choice that is assumed where the request does not limit it. */
const assumedTokens = 4_096
/** Bound on what one call is charged without a count. */
const maxTokens = 1_000_000

/** Fields that limit the tokens of one choice, of which servers read different ones; and those that multiply the choices. */
const limits: Partial<Record<Endpoint, { tokens: readonly string[]; choices: readonly string[] }>> = {
  chat: { tokens: ['max_completion_tokens', 'max_tokens'], choices: ['n'] },
  completions: { tokens: ['max_tokens'], choices: ['n', 'best_of'] },
  messages: { tokens: ['max_tokens'], choices: [] },
  responses: { tokens: ['max_output_tokens'], choices: [] },
}

/** Fields of the configuration that are set in every request or where the client leaves them out, as JSON texts. */
export type ConfiguredFields = {
  readonly overrides: ReadonlyMap<string, string>
  readonly defaults: ReadonlyMap<string, string>
}

/** The most output tokens a call may produce: its own limit for each choice, or an assumption. Zero for embeddings. */
export function outputLimit(endpoint: Endpoint, request: ExactJsonObject, fields: ConfiguredFields): number {
  const names = limits[endpoint]
  if (names === undefined) return 0
  const read = (name: string) => positive(configured(name, request, fields))
  const set = names.tokens.map(read).filter((value) => value !== undefined)
  const tokens = set.length === 0 ? assumedTokens : Math.max(...set)
  const choices = names.choices.map((name) => read(name) ?? 1)
  return Math.min(maxTokens, tokens * Math.max(1, ...choices))
}

function configured(
  name: string,
  request: ExactJsonObject,
  { overrides, defaults }: ConfiguredFields,
): ExactJsonValue | undefined {
  const override = overrides.get(name)
  if (override !== undefined) return JSON.parse(override)
  const own = request[name]
  const otherwise = defaults.get(name)
  return own === undefined && otherwise !== undefined ? JSON.parse(otherwise) : own
}

function positive(value: ExactJsonValue | undefined): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : undefined
}

/** True for a response that goes on after its answer: OpenAI's `background`. */
export function isBackground(
  endpoint: Endpoint | 'passthrough',
  request: ExactJsonObject | undefined,
): boolean {
  return endpoint === 'responses' && request?.['background'] === true
}

/** True if the usage in an answer or event counts all of it: responses report while they are under way. */
export function isFinalUsage(endpoint: Endpoint, message: JsonObject): boolean {
  if (endpoint !== 'responses') return true
  const { response } = message
  const { status } = isJsonObject(response) ? response : message
  return status !== 'queued' && status !== 'in_progress'
}
