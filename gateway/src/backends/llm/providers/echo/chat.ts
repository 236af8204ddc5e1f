import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import type { EchoReply } from './echo-reply.ts'
import {
  countTokens,
  created,
  dataEvent,
  doneEvent,
  idOf,
  includesUsage,
  lastInputText,
  modelOf,
  serviceTier,
  splitText,
  systemFingerprint,
  truncateText,
  usageOf,
} from './text.ts'
import { type ToolCall, toolCallFor } from './tool-call.ts'

const maxChoices = 16
/** Maximum characters of all choices. */
const maxText = 2 * 1024 * 1024

/**
 * https://platform.openai.com/docs/api-reference/chat, every field of the specification's LLM route present.
 */
export function echoChat(request: JsonObject): EchoReply {
  const { messages, max_tokens: older, max_completion_tokens: newer, stream, n } = request
  const call = toolCallFor(request, lastRole(messages) === 'tool')
  const echoed = truncateText(lastInputText(messages), newer ?? older)
  const choices = typeof n === 'number' && n >= 1 ? Math.min(Math.floor(n), maxChoices) : 1
  if (echoed.text.length * choices > maxText) {
    return { kind: 'tooLarge', message: `echo answers ${maxText} characters in several choices` }
  }
  const reply: Reply = {
    text: echoed.text,
    call,
    finish: call ? 'tool_calls' : echoed.truncated ? 'length' : 'stop',
    choices,
    usage: usageOf(countTokens(request, call ? call.args : echoed.text.repeat(choices))),
  }
  if (stream === true) return { kind: 'stream', events: chunks(request, reply) }
  return { kind: 'whole', body: completion(request, reply) }
}

type Reply = { text: string; call: ToolCall | undefined; finish: string; choices: number; usage: JsonObject }

function lastRole(messages: JsonValue | undefined): JsonValue | undefined {
  const last = Array.isArray(messages) ? messages.at(-1) : undefined
  return isJsonObject(last) ? last['role'] : undefined
}

function completion(request: JsonObject, { text, call, finish, choices, usage }: Reply): JsonObject {
  const message: JsonObject = {
    role: 'assistant',
    content: call ? null : text,
    refusal: null,
    annotations: [],
  }
  if (call) {
    message['tool_calls'] = [
      { id: idOf('call_', request), type: 'function', function: { name: call.name, arguments: call.args } },
    ]
  }
  return {
    id: idOf('chatcmpl-', request),
    object: 'chat.completion',
    created,
    model: modelOf(request),
    choices: Array.from({ length: choices }, (_, index) => ({
      index,
      message,
      logprobs: null,
      finish_reason: finish,
    })),
    usage,
    service_tier: serviceTier,
    system_fingerprint: systemFingerprint,
  }
}

function chunks(request: JsonObject, { text, call, finish, choices, usage }: Reply): string[] {
  const head = {
    id: idOf('chatcmpl-', request),
    object: 'chat.completion.chunk',
    created,
    model: modelOf(request),
    service_tier: serviceTier,
    system_fingerprint: systemFingerprint,
  }
  // Like OpenAI: null in every chunk except the one with the usage.
  const tail: JsonObject = includesUsage(request) ? { usage: null } : {}
  const chunk = (index: number, delta: JsonObject, reason: string | null) =>
    dataEvent({
      ...head,
      choices: [{ index, delta, logprobs: null, finish_reason: reason }],
      ...tail,
    })
  const deltas = call
    ? callDeltas(request, call)
    : splitText(text).map((content): JsonObject => ({ content }))
  const events: string[] = []
  for (let index = 0; index < choices; index++) {
    events.push(chunk(index, { role: 'assistant', content: call ? null : '', refusal: null }, null))
    for (const delta of deltas) events.push(chunk(index, delta, null))
    events.push(chunk(index, {}, finish))
  }
  if (includesUsage(request)) events.push(dataEvent({ ...head, choices: [], usage }))
  events.push(doneEvent)
  return events
}

function callDeltas(request: JsonObject, { name, args }: ToolCall): JsonObject[] {
  const opening = {
    index: 0,
    id: idOf('call_', request),
    type: 'function',
    function: { name, arguments: '' },
  }
  const rest = splitText(args).map((piece) => ({
    tool_calls: [{ index: 0, function: { arguments: piece } }],
  }))
  return [{ tool_calls: [opening] }, ...rest]
}
