import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import type { EchoReply } from './echo-reply.ts'
import {
  countTokens,
  created,
  idOf,
  lastInputText,
  modelOf,
  serviceTier,
  splitText,
  truncateText,
} from './text.ts'
import { type ToolCall, toolCallFor } from './tool-call.ts'

const maxRepeated = 256 * 1024

/** https://platform.openai.com/docs/api-reference/responses */
export function echoResponse(request: JsonObject): EchoReply {
  const { input, max_output_tokens: maxTokens, stream } = request
  // The events of a stream repeat these three times.
  if (JSON.stringify([request['instructions'], request['metadata'], request['tools']]).length > maxRepeated) {
    return {
      kind: 'tooLarge',
      message: `echo answers ${maxRepeated} characters of instructions, metadata and tools`,
    }
  }
  const call = toolCallFor(request, lastType(input) === 'function_call_output')
  const echoed = truncateText(typeof input === 'string' ? input : lastInputText(input), maxTokens)
  const item = call ? callItem(request, call) : messageItem(request, echoed.text)
  const { input: inputTokens, output: outputTokens } = countTokens(request, call ? call.args : echoed.text)
  const usage = {
    input_tokens: inputTokens,
    input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: inputTokens + outputTokens,
  }
  const truncated = echoed.truncated && !call
  const response: JsonObject = {
    ...responseHead(request),
    status: truncated ? 'incomplete' : 'completed',
    incomplete_details: truncated ? { reason: 'max_output_tokens' } : null,
    output: [item],
    usage,
  }
  if (stream !== true) return { kind: 'whole', body: response }
  const steps = call ? callSteps(item, call.args) : messageSteps(item, echoed.text)
  const opening = {
    ...responseHead(request),
    status: 'in_progress',
    incomplete_details: null,
    output: [],
  }
  return {
    kind: 'stream',
    events: toSequence([
      { type: 'response.created', response: opening },
      { type: 'response.in_progress', response: opening },
      ...steps,
      { type: truncated ? 'response.incomplete' : 'response.completed', response },
    ]),
  }
}

function lastType(input: JsonValue | undefined): JsonValue | undefined {
  const last = Array.isArray(input) ? input.at(-1) : undefined
  return isJsonObject(last) ? last['type'] : undefined
}

function responseHead(request: JsonObject): JsonObject {
  const { instructions, metadata, tools, tool_choice: toolChoice, temperature, top_p: topP } = request
  return {
    id: idOf('resp_', request),
    object: 'response',
    created_at: created,
    error: null,
    instructions: instructions ?? null,
    metadata: metadata ?? {},
    model: modelOf(request),
    parallel_tool_calls: true,
    temperature: temperature ?? 1,
    tool_choice: toolChoice ?? 'auto',
    tools: tools ?? [],
    top_p: topP ?? 1,
    service_tier: serviceTier,
  }
}

function messageItem(request: JsonObject, text: string): JsonObject {
  return {
    id: idOf('msg_', request),
    type: 'message',
    status: 'completed',
    role: 'assistant',
    content: [textPart(text)],
  }
}

function textPart(text: string): JsonObject {
  return { type: 'output_text', text, annotations: [], logprobs: [] }
}

function callItem(request: JsonObject, { name, args }: ToolCall): JsonObject {
  return {
    id: idOf('fc_', request),
    type: 'function_call',
    status: 'completed',
    call_id: idOf('call_', request),
    name,
    arguments: args,
  }
}

function messageSteps(item: JsonObject, text: string): JsonObject[] {
  const at = { item_id: item['id'] ?? null, output_index: 0, content_index: 0 }
  return [
    {
      type: 'response.output_item.added',
      output_index: 0,
      item: { ...item, status: 'in_progress', content: [] },
    },
    { type: 'response.content_part.added', ...at, part: textPart('') },
    ...splitText(text).map((delta) => ({ type: 'response.output_text.delta', ...at, delta, logprobs: [] })),
    { type: 'response.output_text.done', ...at, text, logprobs: [] },
    { type: 'response.content_part.done', ...at, part: textPart(text) },
    { type: 'response.output_item.done', output_index: 0, item },
  ]
}

function callSteps(item: JsonObject, args: string): JsonObject[] {
  const at = { item_id: item['id'] ?? null, output_index: 0 }
  return [
    {
      type: 'response.output_item.added',
      output_index: 0,
      item: { ...item, status: 'in_progress', arguments: '' },
    },
    ...splitText(args).map((delta) => ({ type: 'response.function_call_arguments.delta', ...at, delta })),
    { type: 'response.function_call_arguments.done', ...at, arguments: args },
    { type: 'response.output_item.done', output_index: 0, item },
  ]
}

function toSequence(events: readonly JsonObject[]): string[] {
  return events.map((event, index) => {
    const data = JSON.stringify({ ...event, sequence_number: index })
    return `event: ${String(event['type'])}\ndata: ${data}\n\n`
  })
}
