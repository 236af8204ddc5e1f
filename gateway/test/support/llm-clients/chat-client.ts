import { type Answer, type ApiClient, type Ask, type Json, joined, system } from './client.ts'

type Call = { index?: number; id?: string; function: { name?: string; arguments: string } }
type Message = { content?: string | null; reasoning_content?: string; tool_calls?: Call[] }
type Usage = { prompt_tokens: number; completion_tokens: number }
type Choice = { message?: Message; delta?: Message; finish_reason: string | null }

/** Clients with OpenAI's chat completions. */
export const chatClient: ApiClient = {
  api: 'chat_completions',
  path: () => '/v1/chat/completions',
  body: (model, ask) => ({
    model,
    messages: messagesOf(ask),
    ...(ask.streaming && { stream: true, stream_options: { include_usage: true } }),
    ...(ask.tool && { tools: [{ type: 'function', function: { name: ask.tool, parameters: ask.schema } }] }),
    ...(ask.schema &&
      !ask.tool && {
        response_format: {
          type: 'json_schema',
          json_schema: { name: 'city', schema: ask.schema, strict: true },
        },
      }),
    ...(ask.stop && { stop: [ask.stop] }),
    ...(ask.reasons && { reasoning_effort: 'high' }),
  }),
  read(body) {
    const [choice] = body['choices'] as [Choice]
    return answerOf(choice.message ?? {}, choice.finish_reason, body['usage'] as Usage)
  },
  readStream(events) {
    const choices = events.flatMap((event) => event['choices'] as Choice[])
    const deltas = choices.map(({ delta }) => delta ?? {})
    const calls: Call[] = []
    for (const part of deltas.flatMap((delta) => delta.tool_calls ?? [])) {
      const call = calls[part.index ?? 0]
      if (call) call.function.arguments += part.function.arguments
      else calls[part.index ?? 0] = { ...part, function: { ...part.function } }
    }
    const message = {
      content: joined(deltas.map(({ content }) => content)),
      reasoning_content: joined(deltas.map((delta) => delta.reasoning_content)),
      ...(calls.length > 0 && { tool_calls: calls }),
    }
    const finish = choices.findLast(({ finish_reason }) => finish_reason !== null)?.finish_reason
    const usage = events.findLast((event) => event['usage'])?.['usage']
    return answerOf(message, finish, usage as Usage)
  },
  error: openAiError,
}

function messagesOf({ text, image, document, previous, results = [] }: Ask): Json[] {
  const parts = [
    { type: 'text', text },
    ...(image ? [{ type: 'image_url', image_url: { url: `data:image/png;base64,${image}` } }] : []),
    ...(document
      ? [
          {
            type: 'file',
            file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${document}` },
          },
        ]
      : []),
  ]
  return [
    { role: 'system', content: system },
    { role: 'user', content: parts.length > 1 ? parts : text },
    ...(previous ? [previous.turn as Json] : []),
    ...results.map((content, index) => ({ role: 'tool', tool_call_id: previous?.calls[index]?.id, content })),
  ]
}

function answerOf(message: Message, finish: unknown, usage: Usage | undefined): Answer {
  const calls = (message.tool_calls ?? []).map(({ id = '', function: called }) => ({
    id,
    name: called.name ?? '',
    input: JSON.parse(called.arguments),
  }))
  const known = (message.tool_calls ?? []).map(({ id, function: called }) => ({
    id,
    type: 'function',
    function: called,
  }))
  return {
    text: message.content ?? '',
    reasoning: message.reasoning_content ?? '',
    calls,
    finish,
    tokens: { input: usage?.prompt_tokens, output: usage?.completion_tokens },
    turn: { role: 'assistant', content: message.content || null, tool_calls: known },
  }
}

/** https://platform.openai.com/docs/guides/error-codes */
export function openAiError({ error }: Json) {
  if (typeof error !== 'object' || error === null) return undefined
  const { type, code, message } = error as Json
  return { type, code, message }
}
