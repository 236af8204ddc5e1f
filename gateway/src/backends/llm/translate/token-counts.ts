import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'

/**
 * Token counts of the messages API: `input` excludes tokens read from and written to the cache. Chat
 * completions count both as part of the prompt.
 */
export type TokenCounts = {
  input: number
  cacheRead: number
  cacheWrite: number
  output: number
  reasoning: number
}

export const noTokens: TokenCounts = { input: 0, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0 }

/** Counts of a messages `usage`. Its fields are cumulative; absent fields have the value of `before`. */
export function countsFromMessages(
  usage: JsonValue | undefined,
  before: TokenCounts = noTokens,
): TokenCounts {
  if (!isJsonObject(usage)) return before
  return {
    input: count(usage['input_tokens']) ?? before.input,
    cacheRead: count(usage['cache_read_input_tokens']) ?? before.cacheRead,
    cacheWrite: count(usage['cache_creation_input_tokens']) ?? before.cacheWrite,
    output: count(usage['output_tokens']) ?? before.output,
    reasoning: count(member(usage, 'output_tokens_details', 'thinking_tokens')) ?? before.reasoning,
  }
}

/** Counts of a chat completions `usage`. */
export function countsFromChat(usage: JsonValue | undefined): TokenCounts {
  if (!isJsonObject(usage)) return noTokens
  const prompt = count(usage['prompt_tokens']) ?? 0
  const cacheRead = Math.min(count(member(usage, 'prompt_tokens_details', 'cached_tokens')) ?? 0, prompt)
  const written = count(member(usage, 'prompt_tokens_details', 'cache_write_tokens')) ?? 0
  const cacheWrite = Math.min(written, prompt - cacheRead)
  return {
    input: prompt - cacheRead - cacheWrite,
    cacheRead,
    cacheWrite,
    output: count(usage['completion_tokens']) ?? 0,
    reasoning: count(member(usage, 'completion_tokens_details', 'reasoning_tokens')) ?? 0,
  }
}

/** Counts of a responses `usage`, which has other names. */
export function countsFromResponses(usage: JsonValue | undefined): TokenCounts {
  if (!isJsonObject(usage)) return noTokens
  return countsFromChat({
    prompt_tokens: usage['input_tokens'] ?? 0,
    completion_tokens: usage['output_tokens'] ?? 0,
    prompt_tokens_details: usage['input_tokens_details'] ?? {},
    completion_tokens_details: usage['output_tokens_details'] ?? {},
  })
}

/** `usage` of a chat completion, with every field of the specification's LLM route. */
export function toChatUsage({ input, cacheRead, cacheWrite, output, reasoning }: TokenCounts): JsonObject {
  const prompt = input + cacheRead + cacheWrite
  return {
    prompt_tokens: prompt,
    completion_tokens: output,
    total_tokens: prompt + output,
    prompt_tokens_details: { cached_tokens: cacheRead, cache_write_tokens: cacheWrite, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: reasoning,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  }
}

/** `usage` of a message. */
export function toMessagesUsage({
  input,
  cacheRead,
  cacheWrite,
  output,
  reasoning,
}: TokenCounts): JsonObject {
  return {
    input_tokens: input,
    cache_creation_input_tokens: cacheWrite,
    cache_read_input_tokens: cacheRead,
    output_tokens: output,
    output_tokens_details: { thinking_tokens: reasoning },
  }
}

function member(object: JsonObject, outer: string, inner: string): JsonValue | undefined {
  const details = object[outer]
  return isJsonObject(details) ? details[inner] : undefined
}

/** A token count; other values are treated as absent. */
function count(value: JsonValue | undefined): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined
}
