import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { parseExactObject } from '../exact-json.ts'
import { toolName } from '../limits.ts'
import { contentText, reasoningOf, stringOf } from '../messages-to-chat/reply.ts'
import type { TranslationContext } from '../translate.ts'
import { invalidResponse } from '../upstream-error.ts'
import {
  callId,
  callParts,
  type FunctionCall,
  imageParts,
  responseHead,
  thinkingOf,
  toFinishReason,
  toGrounding,
  toLogprobsResult,
  toUsageMetadata,
} from './candidate.ts'

/**
 * Translates a chat completion to a `generateContent` response. Throws `upstream_invalid` if it is not a chat
 * completion.
 */
export function completionToContent(completion: JsonObject, context: TranslationContext): JsonObject {
  const { choices } = completion
  if (!Array.isArray(choices) || choices.length === 0) throw invalidResponse('it is not a chat completion')
  const head = responseHead(completion, context)
  return {
    candidates: choices.map((choice, position) => toCandidate(choice, position, { head, context })),
    usageMetadata: toUsageMetadata(completion.usage),
    ...head,
  }
}

type CandidateOptions = { readonly head: JsonObject; readonly context: TranslationContext }

function toCandidate(choice: JsonValue, position: number, { head, context }: CandidateOptions): JsonObject {
  if (!isJsonObject(choice) || !isJsonObject(choice.message))
    throw invalidResponse('it is not a chat completion')
  const { message, finish_reason: finishReason, logprobs, index } = choice
  const parts: JsonObject[] = []
  const thoughts = context.settings?.includeThoughts === true ? reasoningOf(message) : ''
  if (thoughts !== '') parts.push({ text: thoughts, thought: true })
  const refusal = stringOf(message.refusal)
  const content = contentText(message.content)
  if (content + refusal !== '') parts.push({ text: content + refusal })
  parts.push(...imageParts(message.images))
  const calls = readCalls(message.tool_calls, finishReason, head.responseId)
  parts.push(...callParts(calls, thinkingOf(message)))
  const logprobsResult = toLogprobsResult(logprobs)
  const groundingMetadata = toGrounding(message.annotations, content)
  return {
    content: { role: 'model', parts },
    finishReason: toFinishReason(finishReason, refusal !== ''),
    index: typeof index === 'number' ? index : position,
    ...(logprobsResult === undefined ? undefined : { logprobsResult }),
    ...(groundingMetadata === undefined ? undefined : { groundingMetadata }),
  }
}

function readCalls(
  calls: JsonValue | undefined,
  finishReason: JsonValue | undefined,
  responseId: JsonValue | undefined,
): FunctionCall[] {
  if (calls === undefined || calls === null) return []
  if (!Array.isArray(calls)) throw invalidResponse('tool_calls is not a list')
  return calls.flatMap((call, index) => {
    if (!isJsonObject(call) || !isJsonObject(call.function) || typeof call.function.name !== 'string')
      throw invalidResponse('a tool call without a function')
    const name = toolName(call.function.name)
    const args = readArguments(call.function.arguments)
    if (args !== undefined) return [{ id: callId(call.id, responseId, index), name, args }]
    // The length limit truncated the last call, and incomplete arguments are unusable.
    if (finishReason === 'length' && index === calls.length - 1) return []
    throw invalidResponse('the arguments of a tool call are not a JSON object')
  })
}

/** Some servers omit empty arguments, and some send an object in place of a string. */
export function readArguments(text: JsonValue | undefined): JsonObject | undefined {
  if (text === undefined || text === null || text === '') return {}
  return typeof text === 'string' ? parseExactObject(text) : isJsonObject(text) ? text : undefined
}
