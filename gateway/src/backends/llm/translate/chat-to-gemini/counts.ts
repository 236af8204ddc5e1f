import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { type TokenCounts, toChatUsage } from '../token-counts.ts'

/** Counts of a `usageMetadata`. Tokens of tool results count as input, thoughts as output. */
function countsFromGemini(metadata: JsonValue | undefined): TokenCounts {
  const usage = isJsonObject(metadata) ? metadata : {}
  const prompt = count(usage.promptTokenCount) + count(usage.toolUsePromptTokenCount)
  const cacheRead = Math.min(count(usage.cachedContentTokenCount), prompt)
  const reasoning = count(usage.thoughtsTokenCount)
  return {
    input: prompt - cacheRead,
    cacheRead,
    cacheWrite: 0,
    output: count(usage.candidatesTokenCount) + reasoning,
    reasoning,
  }
}

/** `usage` of a chat completion for a `usageMetadata`. */
export function usageFromGemini(metadata: JsonValue | undefined): JsonObject {
  const usage = toChatUsage(countsFromGemini(metadata))
  if (!isJsonObject(metadata)) return usage
  const { promptTokensDetails, candidatesTokensDetails } = metadata
  setAudio(usage.prompt_tokens_details, promptTokensDetails)
  setAudio(usage.completion_tokens_details, candidatesTokensDetails)
  return usage
}

function setAudio(details: JsonValue | undefined, modalities: JsonValue | undefined): void {
  if (isJsonObject(details)) details.audio_tokens = audioTokens(modalities) ?? 0
}

/** Tokens of audio in counts by modality; undefined without such counts. */
function audioTokens(modalities: JsonValue | undefined): number | undefined {
  if (!Array.isArray(modalities)) return undefined
  const audio = modalities.filter(isJsonObject).filter(({ modality }) => modality === 'AUDIO')
  return audio.reduce((sum, { tokenCount }) => sum + count(tokenCount), 0)
}

function count(value: JsonValue | undefined): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : 0
}
