import { isJsonObject, type JsonObject } from '../../../../lib/json/json.ts'
import { shortName } from '../limits.ts'
import type { TranslationContext } from '../translate.ts'
import { invalidResponse } from '../upstream-error.ts'
import { blockedPrompt, indexOf, readCandidate, refusalOf, toFinishReason, toLogprobs } from './candidate.ts'
import { usageFromGemini } from './counts.ts'
import { groundingAnnotations } from './grounding.ts'

/** Translates a `generateContent` response to a chat completion. Throws `upstream_invalid` if it is none. */
export function contentToCompletion(response: JsonObject, context: TranslationContext): JsonObject {
  const { candidates = [] } = response
  const blocked = blockedPrompt(response)
  if (!Array.isArray(candidates) || (candidates.length === 0 && blocked === undefined))
    throw invalidResponse('it has no candidates')
  const head = completionHead(response, context)
  const choices = candidates.map((candidate) => {
    if (!isJsonObject(candidate)) throw invalidResponse('a candidate is not an object')
    return toChoice(candidate, callSeed(response, context))
  })
  if (choices.length === 0) choices.push(blockedChoice(blocked ?? ''))
  return { ...head, object: 'chat.completion', choices, usage: usageFromGemini(response.usageMetadata) }
}

/** The fields shared by a completion and the chunks of its stream. */
export function completionHead(response: JsonObject, context: TranslationContext): JsonObject {
  const { modelVersion } = response
  return {
    id: `chatcmpl-${callSeed(response, context)}`,
    object: 'chat.completion.chunk',
    created: Math.floor(context.now() / 1000),
    model: shortName(modelVersion) || context.requestModel,
    service_tier: 'default',
    // Gemini has none, but clients with strict schemas require a text.
    system_fingerprint: 'fp_gemini',
  }
}

/** Text by which ids of one response differ from those of others. */
export function callSeed({ responseId }: JsonObject, { now }: TranslationContext): string {
  return typeof responseId === 'string' && /^[A-Za-z0-9_-]{1,64}$/.test(responseId)
    ? responseId
    : now().toString(36)
}

function toChoice(candidate: JsonObject, responseId: string): JsonObject {
  const index = indexOf(candidate)
  const ids = { responseId, candidate: index, firstCall: 0 }
  const { text, reasoning, calls, images } = readCandidate(candidate, ids)
  return {
    index,
    message: {
      role: 'assistant',
      content: text === '' && calls.length > 0 ? null : text,
      refusal: refusalOf(candidate),
      annotations: groundingAnnotations(candidate.groundingMetadata, text),
      ...(reasoning === '' ? undefined : { reasoning_content: reasoning }),
      ...(images.length === 0 ? undefined : { images }),
      ...(calls.length === 0 ? undefined : { tool_calls: calls }),
    },
    logprobs: toLogprobs(candidate),
    finish_reason: toFinishReason(candidate.finishReason, calls.length > 0),
  }
}

function blockedChoice(refusal: string): JsonObject {
  return {
    index: 0,
    message: { role: 'assistant', content: null, refusal, annotations: [] },
    logprobs: null,
    finish_reason: 'content_filter',
  }
}
