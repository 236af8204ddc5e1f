import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { writeJson } from '../exact-json.ts'
import { invalidResponse } from '../upstream-error.ts'
import { joinCallId } from './tool-call-id.ts'

/** Content of a candidate. `calls` are tool calls of chat without `index`. */
export type CandidateContent = {
  text: string
  reasoning: string
  calls: JsonObject[]
  images: JsonObject[]
}

/** Properties of a candidate that the ids of its calls contain. */
export type CallIds = { readonly responseId: string; readonly candidate: number; readonly firstCall: number }

/**
 * Reads the parts of a candidate. Parts of tools that the upstream runs itself are not forwarded: chat has no
 * fields for them. Throws `upstream_invalid`.
 */
export function readCandidate({ content }: JsonObject, ids: CallIds): CandidateContent {
  const read: CandidateContent = { text: '', reasoning: '', calls: [], images: [] }
  const parts = isJsonObject(content) ? (content.parts ?? []) : []
  if (!Array.isArray(parts)) throw invalidResponse('the parts of a candidate are not a list')
  for (const part of parts) {
    if (!isJsonObject(part)) throw invalidResponse('a part is not an object')
    if (typeof part.text === 'string') {
      if (part.thought === true) read.reasoning += part.text
      else read.text += part.text
    } else if (isJsonObject(part.functionCall))
      read.calls.push(toToolCall(part.functionCall, part, read, ids))
    else if (isJsonObject(part.inlineData)) read.images.push(...toImages(part.inlineData))
  }
  return read
}

function toToolCall(
  { name, args }: JsonObject,
  { thoughtSignature: signature }: JsonObject,
  { calls }: CandidateContent,
  { responseId, candidate, firstCall }: CallIds,
): JsonObject {
  if (typeof name !== 'string') throw invalidResponse('a function call without name')
  const text = writeJson(args ?? {})
  if (text === undefined) throw invalidResponse('the arguments of a function call are nested too deep')
  const id = `call_${responseId}_${candidate}_${firstCall + calls.length}`
  return {
    id: joinCallId(id, typeof signature === 'string' ? signature : undefined),
    type: 'function',
    function: { name, arguments: text },
  }
}

/** Generated images, in the field that servers of chat completions use for them. */
function toImages({ mimeType, data }: JsonObject): JsonObject[] {
  if (typeof mimeType !== 'string' || typeof data !== 'string') return []
  return [{ type: 'image_url', image_url: { url: `data:${mimeType};base64,${data}` } }]
}

/** `index` of a candidate. */
export function indexOf({ index }: JsonObject): number {
  return typeof index === 'number' && Number.isInteger(index) && index >= 0 ? index : 0
}

const finishReasons: ReadonlyMap<JsonValue, string> = new Map([
  ['MAX_TOKENS', 'length'],
  ['CONTINUATION', 'length'],
  // The response is incomplete, for which chat has no other reason.
  ...[
    ...['MALFORMED_FUNCTION_CALL', 'MALFORMED_RESPONSE', 'UNEXPECTED_TOOL_CALL', 'TOO_MANY_TOOL_CALLS'],
    'MISSING_THOUGHT_SIGNATURE',
  ].map((reason): [string, string] => [reason, 'length']),
  ...[
    ...['SAFETY', 'RECITATION', 'LANGUAGE', 'BLOCKLIST', 'PROHIBITED_CONTENT', 'SPII'],
    ...['IMAGE_SAFETY', 'IMAGE_PROHIBITED_CONTENT', 'IMAGE_RECITATION'],
  ].map((reason): [string, string] => [reason, 'content_filter']),
])

/** `finish_reason` for a `finishReason`. Gemini reports `STOP` for calls of tools. */
export function toFinishReason(finishReason: JsonValue | undefined, calledTools: boolean): string {
  const reason = finishReasons.get(finishReason ?? null) ?? 'stop'
  return reason === 'stop' && calledTools ? 'tool_calls' : reason
}

/** The explanation of a filtered candidate. */
export function refusalOf({ finishReason, finishMessage }: JsonObject): string | null {
  const isFiltered = toFinishReason(finishReason, false) === 'content_filter'
  return isFiltered && typeof finishMessage === 'string' && finishMessage !== '' ? finishMessage : null
}

/** The explanation of a blocked prompt; undefined if it is not blocked. */
export function blockedPrompt({ promptFeedback }: JsonObject): string | undefined {
  if (!isJsonObject(promptFeedback)) return undefined
  const { blockReason, blockReasonMessage } = promptFeedback
  if (typeof blockReason !== 'string') return undefined
  return typeof blockReasonMessage === 'string'
    ? blockReasonMessage
    : `the prompt was blocked: ${blockReason}`
}

/** `logprobs` of a choice. */
export function toLogprobs({ logprobsResult: result }: JsonObject): JsonObject | null {
  if (!isJsonObject(result) || !Array.isArray(result.chosenCandidates)) return null
  const top = Array.isArray(result.topCandidates) ? result.topCandidates : []
  const content = result.chosenCandidates.map((chosen, index) => {
    const alternatives = top[index]
    const candidates = isJsonObject(alternatives) ? alternatives.candidates : undefined
    return { ...toLogprob(chosen), top_logprobs: Array.isArray(candidates) ? candidates.map(toLogprob) : [] }
  })
  return { content, refusal: null }
}

function toLogprob(candidate: JsonValue): JsonObject {
  const { token, logProbability } = isJsonObject(candidate) ? candidate : {}
  const text = typeof token === 'string' ? token : ''
  // Gemini omits numbers that are zero.
  return { token: text, logprob: logProbability ?? 0, bytes: [...Buffer.from(text)] }
}
