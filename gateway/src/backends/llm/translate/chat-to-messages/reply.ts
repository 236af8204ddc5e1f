import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { toAnnotations } from '../citations/url-citations.ts'
import { writeJson } from '../exact-json.ts'
import { shortName } from '../limits.ts'
import { toFinishReason } from '../stop-reason.ts'
import { countsFromMessages, toChatUsage } from '../token-counts.ts'
import type { TranslationContext } from '../translate.ts'
import { invalidResponse } from '../upstream-error.ts'
import { thinkingDetail } from './signed-thinking.ts'

/** Translates a message to a chat completion. Throws `upstream_invalid` if it is not a message. */
export function messageToCompletion(message: JsonObject, context: TranslationContext): JsonObject {
  if (message.type !== 'message' || !Array.isArray(message.content))
    throw invalidResponse('it is not a message')
  const { text, annotations, reasoning, toolCalls } = readBlocks(message.content)
  const details = context.signedThinking === true ? detailsOf(message.content) : []
  const hasCalls = toolCalls.length > 0
  return {
    ...completionHead(message, context),
    object: 'chat.completion',
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: text === '' && hasCalls ? null : text,
          refusal: refusalOf(message),
          annotations,
          ...(reasoning === '' ? undefined : { reasoning_content: reasoning }),
          ...(details.length > 0 ? { reasoning_details: details } : undefined),
          ...(hasCalls ? { tool_calls: toolCalls } : undefined),
        },
        logprobs: null,
        finish_reason: toFinishReason(message.stop_reason),
      },
    ],
    usage: toChatUsage(countsFromMessages(message.usage)),
  }
}

/** The fields shared by a completion and the chunks of its stream. */
export function completionHead(message: JsonObject, { requestModel, now }: TranslationContext): JsonObject {
  const createdMs = now()
  const { id, model, usage } = message
  return {
    id: shortName(id).replace(/^msg_/, 'chatcmpl-') || `chatcmpl-${createdMs.toString(36)}`,
    object: 'chat.completion.chunk',
    created: Math.floor(createdMs / 1000),
    model: shortName(model) || requestModel,
    service_tier: isJsonObject(usage) && usage.service_tier === 'priority' ? 'priority' : 'default',
    // Messages have none, but clients with strict schemas require a text.
    system_fingerprint: 'fp_messages',
  }
}

/** The explanation of a refusal; `source` is a message or the last delta of its stream. */
export function refusalOf(source: JsonObject): string | null {
  if (source.stop_reason !== 'refusal' || !isJsonObject(source.stop_details)) return null
  const { explanation } = source.stop_details
  return typeof explanation === 'string' ? explanation : null
}

function detailsOf(content: readonly JsonValue[]): JsonObject[] {
  return content.flatMap((block) => {
    const detail = isJsonObject(block) ? thinkingDetail(block) : undefined
    return detail === undefined ? [] : [detail]
  })
}

type Blocks = { text: string; annotations: JsonObject[]; reasoning: string; toolCalls: JsonObject[] }

/**
 * Reads content blocks. Chat has no fields for other types: redacted thinking, traces of the upstream's own
 * tools.
 */
function readBlocks(content: JsonValue[]): Blocks {
  const blocks: Blocks = { text: '', annotations: [], reasoning: '', toolCalls: [] }
  for (const block of content) {
    if (!isJsonObject(block)) throw invalidResponse('a content block is not an object')
    if (block.type === 'text') addText(blocks, block)
    else if (block.type === 'thinking') blocks.reasoning += textOf(block.thinking)
    else if (block.type === 'tool_use') blocks.toolCalls.push(toToolCall(block))
  }
  return blocks
}

function addText(blocks: Blocks, { text, citations }: JsonObject): void {
  const start = blocks.text.length
  blocks.text += textOf(text)
  blocks.annotations.push(...toAnnotations(citations, { start, end: blocks.text.length }))
}

function textOf(value: JsonValue | undefined): string {
  if (typeof value !== 'string') throw invalidResponse('a content block without text')
  return value
}

function toToolCall({ id, name, input }: JsonObject): JsonObject {
  if (typeof id !== 'string' || typeof name !== 'string' || !isJsonObject(input)) {
    throw invalidResponse('a tool call without id, name or input')
  }
  const text = writeJson(input)
  if (text === undefined) throw invalidResponse('the input of a tool call is nested too deep')
  return { id, type: 'function', function: { name, arguments: text } }
}
