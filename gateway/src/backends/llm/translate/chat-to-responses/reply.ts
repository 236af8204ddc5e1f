import { GatewayError } from '../../../../lib/gateway-error.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { shortName } from '../limits.ts'
import { stringOf } from '../messages-to-chat/reply.ts'
import { countsFromResponses, toChatUsage } from '../token-counts.ts'
import type { TranslationContext } from '../translate.ts'
import { invalidResponse, readStreamError } from '../upstream-error.ts'
import { reasoningDetail } from './encrypted-reasoning.ts'

/**
 * Translates a response to a chat completion. Throws `upstream_invalid` if it is not a complete response, and
 * if it failed.
 */
export function responseToCompletion(response: JsonObject, context: TranslationContext): JsonObject {
  if (!Array.isArray(response.output)) throw invalidResponse('it is not a response')
  const { status } = response
  if (status === 'failed')
    throw new GatewayError('upstream_invalid', `the response failed: ${failureOf(response).message}`)
  if (status !== undefined && status !== 'completed' && status !== 'incomplete')
    throw invalidResponse(`the status of the response is ${String(status)}`)
  const { text, refusal, reasoning, details, toolCalls, annotations, logprobs } = readOutput(response.output)
  const hasCalls = toolCalls.length > 0
  return {
    ...completionHead(response, context),
    object: 'chat.completion',
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: text === '' && (hasCalls || refusal !== '') ? null : text,
          refusal: refusal === '' ? null : refusal,
          annotations,
          ...(reasoning === '' ? undefined : { reasoning_content: reasoning }),
          ...(details.length > 0 ? { reasoning_details: details } : undefined),
          ...(hasCalls ? { tool_calls: toolCalls } : undefined),
        },
        logprobs: logprobs.length === 0 ? null : { content: logprobs, refusal: null },
        finish_reason: toFinishReason(response, hasCalls),
      },
    ],
    usage: toChatUsage(countsFromResponses(response.usage)),
  }
}

/** The fields shared by a completion and the chunks of its stream. */
export function completionHead(response: JsonObject, { requestModel, now }: TranslationContext): JsonObject {
  const createdMs = now()
  const { id, model, created_at: created, service_tier: tier } = response
  return {
    id: `chatcmpl-${shortName(id).replace(/^resp[-_]/, '') || createdMs.toString(36)}`,
    object: 'chat.completion.chunk',
    created: typeof created === 'number' ? Math.floor(created) : Math.floor(createdMs / 1000),
    model: shortName(model) || requestModel,
    service_tier: tiers.has(tier ?? '') ? (tier ?? null) : 'default',
    // Responses have none, but clients with strict schemas require a text.
    system_fingerprint: 'fp_responses',
  }
}

const tiers: ReadonlySet<JsonValue> = new Set(['default', 'flex', 'scale', 'priority'])

/** The error of a response that failed. */
export function failureOf({ error }: JsonObject): ReturnType<typeof readStreamError> {
  return readStreamError(isJsonObject(error) ? { error } : {})
}

/** `finish_reason` of a complete response; `length` for unknown reasons of incomplete ones. */
export function toFinishReason(
  { status, incomplete_details: details }: JsonObject,
  hasCalls: boolean,
): string {
  if (status === 'incomplete')
    return isJsonObject(details) && details.reason === 'content_filter' ? 'content_filter' : 'length'
  return hasCalls ? 'tool_calls' : 'stop'
}

/** Separates texts of different items. */
export const betweenTexts = '\n\n'

type Output = {
  text: string
  refusal: string
  reasoning: string
  details: JsonObject[]
  toolCalls: JsonObject[]
  annotations: JsonObject[]
  logprobs: JsonObject[]
}

/** Reads the items of a response. Chat has no fields for other items: traces of tools of the provider. */
function readOutput(items: readonly JsonValue[]): Output {
  const output: Output = {
    ...{ text: '', refusal: '', reasoning: '', details: [] },
    ...{ toolCalls: [], annotations: [], logprobs: [] },
  }
  let precedes = true
  for (const item of items) {
    if (!isJsonObject(item)) throw invalidResponse('an item of the output is not an object')
    if (item.type === 'reasoning') {
      // Chat returns reasoning in front of the whole turn: earlier reasoning would lose its place.
      if (!precedes) output.details = []
      precedes = true
      readReasoning(item, output)
      continue
    }
    if (item.type === 'message') readMessage(item, output)
    else if (item.type === 'function_call' || item.type === 'custom_tool_call')
      output.toolCalls.push(toToolCall(item))
    else continue
    precedes = false
  }
  return output
}

function readReasoning(item: JsonObject, output: Output): void {
  const summaries = textsOf(item.summary)
  const texts = summaries.length > 0 ? summaries : textsOf(item.content)
  for (const text of texts) {
    const separator = output.reasoning === '' || text === '' ? '' : betweenTexts
    output.reasoning += separator + text
  }
  const detail = reasoningDetail(item)
  if (detail !== undefined) output.details.push(detail)
}

/** Texts of summaries, or of the reasoning itself, which some servers report. */
export function textsOf(parts: JsonValue | undefined): string[] {
  if (!Array.isArray(parts)) return []
  return parts.flatMap((part) => (isJsonObject(part) ? stringOf(part.text) : ''))
}

function readMessage({ content }: JsonObject, output: Output): void {
  if (!Array.isArray(content)) throw invalidResponse('a message without content')
  let separator = output.text === '' ? '' : betweenTexts
  for (const part of content) {
    if (!isJsonObject(part)) throw invalidResponse('a part of a message is not an object')
    if (part.type === 'refusal') output.refusal += stringOf(part.refusal)
    if (part.type !== 'output_text') continue
    const text = stringOf(part.text)
    const start = output.text.length + separator.length
    if (text !== '') {
      output.text += separator + text
      separator = ''
    }
    if (Array.isArray(part.annotations))
      for (const annotation of part.annotations) output.annotations.push(...toAnnotation(annotation, start))
    for (const logprob of toLogprobs(part.logprobs)) output.logprobs.push(logprob)
  }
}

/** Chat has citations of addresses only. `start` is the position of the part in the whole text. */
export function toAnnotation(annotation: JsonValue | undefined, start: number): JsonObject[] {
  if (!isJsonObject(annotation) || annotation.type !== 'url_citation') return []
  const { start_index: from, end_index: to, title, url } = annotation
  const citation = {
    start_index: typeof from === 'number' ? from + start : start,
    end_index: typeof to === 'number' ? to + start : start,
    title: title ?? '',
    url: url ?? '',
  }
  return [{ type: 'url_citation', url_citation: citation }]
}

/** Events of streams have no bytes of tokens. */
export function toLogprobs(logprobs: JsonValue | undefined): JsonObject[] {
  if (!Array.isArray(logprobs)) return []
  return logprobs.map((value) => {
    if (!isJsonObject(value)) throw invalidResponse('a token probability is not an object')
    const top = Array.isArray(value.top_logprobs) ? value.top_logprobs : []
    return {
      ...toLogprob(value),
      top_logprobs: top.map((other) => toLogprob(isJsonObject(other) ? other : {})),
    }
  })
}

function toLogprob({ token, logprob, bytes }: JsonObject): JsonObject {
  return { token: token ?? '', logprob: logprob ?? 0, bytes: bytes ?? null }
}

function toToolCall({ type, call_id: id, name, arguments: args, input }: JsonObject): JsonObject {
  if (typeof id !== 'string' || typeof name !== 'string')
    throw invalidResponse('a tool call without call_id or name')
  if (type === 'custom_tool_call') return { id, type: 'custom', custom: { name, input: stringOf(input) } }
  return { id, type: 'function', function: { name, arguments: stringOf(args) || '{}' } }
}
