import type { ToolCall, Usage } from './conversation.ts'

/** What a response has contained so far. */
export type Progress = {
  readonly text: string
  readonly reasoning: string
  readonly toolCalls: readonly ToolCall[]
  readonly finishReason?: string
  readonly usage?: Usage
  /** Error event of a stream. */
  readonly error?: { readonly message: string; readonly code?: string }
}

export const noProgress: Progress = { text: '', reasoning: '', toolCalls: [] }

type Fields = Readonly<Record<string, unknown>>

/** Adds an event of a streamed chat completion. */
export function addChunk(progress: Progress, chunk: unknown): Progress {
  const fields = fieldsOf(chunk)
  if (fields['error'] !== undefined && fields['error'] !== null) return { ...progress, error: errorOf(chunk) }
  const choice = fieldsOf(listOf(fields['choices'])[0])
  const delta = fieldsOf(choice['delta'])
  return {
    ...added(progress, delta),
    toolCalls: listOf(delta['tool_calls']).reduce(addToolCall, progress.toolCalls),
    ...ending(choice, fields),
  }
}

/** Reads a chat completion that is not streamed. */
export function readCompletion(completion: unknown): Progress {
  const fields = fieldsOf(completion)
  const choice = fieldsOf(listOf(fields['choices'])[0])
  const message = fieldsOf(choice['message'])
  return {
    ...added(noProgress, message),
    toolCalls: listOf(message['tool_calls']).map((call) => {
      const { name, arguments: text } = fieldsOf(fieldsOf(call)['function'])
      return { id: textOf(fieldsOf(call)['id']), name: textOf(name), arguments: textOf(text) }
    }),
    ...ending(choice, fields),
  }
}

/** Message and code of an error body of the OpenAI or Anthropic API, or the text itself. */
export function errorOf(body: unknown): { message: string; code?: string } {
  if (typeof body === 'string') return { message: body }
  const error = fieldsOf(body)['error']
  const { message, code, type } = typeof error === 'object' ? fieldsOf(error) : fieldsOf(body)
  const name = textOf(code) || textOf(type)
  return {
    message: textOf(message) || textOf(error) || 'The response has an error without a message.',
    ...(name && { code: name }),
  }
}

function added(progress: Progress, part: Fields): Progress {
  // The field of reasoning text differs by provider.
  const reasoning = textOf(part['reasoning_content']) || textOf(part['reasoning'])
  return {
    ...progress,
    text: progress.text + textOf(part['content']) + textOf(part['refusal']),
    reasoning: progress.reasoning + reasoning,
  }
}

function ending(choice: Fields, fields: Fields): { finishReason?: string; usage?: Usage } {
  const finishReason = textOf(choice['finish_reason'])
  const usage = usageOf(fields['usage'])
  return { ...(finishReason && { finishReason }), ...(usage && { usage }) }
}

function addToolCall(calls: readonly ToolCall[], part: unknown): readonly ToolCall[] {
  const { index, id, function: details } = fieldsOf(part)
  const at = typeof index === 'number' ? index : calls.length - 1
  const { name, arguments: text } = fieldsOf(details)
  const before = calls[at] ?? { id: '', name: '', arguments: '' }
  const call = {
    id: before.id || textOf(id),
    name: before.name + textOf(name),
    arguments: before.arguments + textOf(text),
  }
  return calls[at] === undefined ? [...calls, call] : calls.with(at, call)
}

function usageOf(value: unknown): Usage | undefined {
  const { prompt_tokens, completion_tokens, prompt_tokens_details, completion_tokens_details } =
    fieldsOf(value)
  if (typeof prompt_tokens !== 'number' || typeof completion_tokens !== 'number') return undefined
  const cached = fieldsOf(prompt_tokens_details)['cached_tokens']
  const reasoning = fieldsOf(completion_tokens_details)['reasoning_tokens']
  return {
    inputTokens: prompt_tokens,
    outputTokens: completion_tokens,
    ...(typeof cached === 'number' && cached > 0 && { cachedTokens: cached }),
    ...(typeof reasoning === 'number' && reasoning > 0 && { reasoningTokens: reasoning }),
  }
}

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {}
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
