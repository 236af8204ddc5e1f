import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { parseDataUrl } from '../image-source.ts'
import { shortName } from '../limits.ts'
import { countsFromChat } from '../token-counts.ts'
import type { TranslationContext } from '../translate.ts'
import { invalidResponse } from '../upstream-error.ts'
import { toSignature } from './signature.ts'

/** The fields shared by a response and the events of its stream. */
export function responseHead(
  { id, model }: JsonObject,
  { requestModel, now }: TranslationContext,
): JsonObject {
  return {
    modelVersion: shortName(model) || requestModel,
    responseId: shortName(id).replace(/^(?:chatcmpl-|msg_)/, '') || now().toString(36),
  }
}

/** `usageMetadata` of a chat completion's usage. Thoughts are separate from the candidates. */
export function toUsageMetadata(usage: JsonValue | undefined): JsonObject {
  const { input, cacheRead, cacheWrite, output, reasoning } = countsFromChat(usage)
  const prompt = input + cacheRead + cacheWrite
  const thoughts = Math.min(reasoning, output)
  return {
    promptTokenCount: prompt,
    candidatesTokenCount: output - thoughts,
    ...(thoughts === 0 ? undefined : { thoughtsTokenCount: thoughts }),
    ...(cacheRead === 0 ? undefined : { cachedContentTokenCount: cacheRead }),
    totalTokenCount: prompt + output,
  }
}

const finishReasons: ReadonlyMap<JsonValue, string> = new Map([
  ['length', 'MAX_TOKENS'],
  ['content_filter', 'SAFETY'],
])

/** `finishReason` for a `finish_reason`: `STOP` for calls of functions, `SAFETY` for refusals. */
export function toFinishReason(finishReason: JsonValue | undefined, hasRefused: boolean): string {
  return finishReasons.get(finishReason ?? null) ?? (hasRefused ? 'SAFETY' : 'STOP')
}

/** A call of a function with parsed arguments. */
export type FunctionCall = { readonly id: string; readonly name: string; readonly args: JsonObject }

/** Parts with calls; the first has the thinking before it, which clients return. */
export function callParts(calls: readonly FunctionCall[], thinking: readonly JsonObject[]): JsonObject[] {
  const signature = toSignature(thinking)
  return calls.map(({ id, name, args }, index) => ({
    functionCall: { id, name, args },
    ...(index === 0 && signature !== undefined ? { thoughtSignature: signature } : undefined),
  }))
}

/** The id of a call, generated if absent, because clients return the result with it. */
export function callId(id: JsonValue | undefined, responseId: JsonValue | undefined, index: number): string {
  return typeof id === 'string' && id !== '' ? id : `call_${responseId}_${index}`
}

/** Generated images, in the field that servers of chat completions use for them. */
export function imageParts(images: JsonValue | undefined): JsonObject[] {
  if (!Array.isArray(images)) return []
  return images.flatMap((image) => {
    const source = isJsonObject(image) && isJsonObject(image.image_url) ? image.image_url.url : undefined
    const inline = typeof source === 'string' ? parseDataUrl(source) : undefined
    return inline === undefined ? [] : [{ inlineData: { mimeType: inline.mediaType, data: inline.base64 } }]
  })
}

/** Signed thinking of an earlier step of the translation. */
export function thinkingOf({ reasoning_details: details }: JsonObject): JsonObject[] {
  return Array.isArray(details) ? details.filter(isJsonObject) : []
}

/** `logprobsResult` of a choice's log probabilities. */
export function toLogprobsResult(logprobs: JsonValue | undefined): JsonObject | undefined {
  const content = isJsonObject(logprobs) ? logprobs.content : undefined
  if (!Array.isArray(content) || content.length === 0) return undefined
  return {
    topCandidates: content.map((token) => {
      const top = isJsonObject(token) ? token.top_logprobs : undefined
      return { candidates: Array.isArray(top) ? top.map(toLogprob) : [] }
    }),
    chosenCandidates: content.map(toLogprob),
  }
}

function toLogprob(value: JsonValue): JsonObject {
  if (!isJsonObject(value)) throw invalidResponse('a token probability is not an object')
  return { token: value.token ?? '', logProbability: value.logprob ?? 0 }
}

/**
 * `groundingMetadata` for citations of pages. Chat counts the characters of the text, Gemini its bytes.
 * https://ai.google.dev/api/generate-content#GroundingMetadata
 */
export function toGrounding(annotations: JsonValue | undefined, text: string): JsonObject | undefined {
  if (!Array.isArray(annotations)) return undefined
  const citations = annotations.flatMap((annotation) =>
    isJsonObject(annotation) && isJsonObject(annotation.url_citation) ? [annotation.url_citation] : [],
  )
  if (citations.length === 0) return undefined
  return {
    groundingChunks: citations.map(({ url, title }) => ({ web: { uri: url ?? '', title: title ?? '' } })),
    groundingSupports: citations.map(({ start_index: start, end_index: end }, index) => ({
      segment: {
        startIndex: byteIndex(text, start),
        endIndex: byteIndex(text, end),
        text: text.slice(position(start), position(end)),
      },
      groundingChunkIndices: [index],
    })),
  }
}

function byteIndex(text: string, index: JsonValue | undefined): number {
  return Buffer.byteLength(text.slice(0, position(index)))
}

function position(index: JsonValue | undefined): number {
  return typeof index === 'number' ? Math.max(0, index) : 0
}
