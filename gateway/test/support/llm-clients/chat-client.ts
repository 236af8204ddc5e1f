import { type Answer, type ApiClient, type Ask, type Json, joined, system } from './client.ts'

type Call = { index?: number; id?: string; function: { name?: string; arguments: string } }
type Annotation = { url_citation?: { url: string; start_index: number; end_index: number } }
type Message = {
  content?: string | null
  refusal?: string | null
  reasoning_content?: string
  reasoning_details?: Json[]
  annotations?: Annotation[]
  tool_calls?: Call[]
}
type Usage = { prompt_tokens: number; completion_tokens: number }
type Logprobs = { content?: { token: string }[] | null } | null
type Choice = { message?: Message; delta?: Message; finish_reason: string | null; logprobs?: Logprobs }

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
    ...(ask.logprobs && { logprobs: true, top_logprobs: 1 }),
    ...(ask.single && { parallel_tool_calls: false }),
  }),
  read(body) {
    const [choice] = body['choices'] as [Choice]
    return answerOf(choice.message ?? {}, [choice], body['usage'] as Usage)
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
      refusal: joined(deltas.map(({ refusal }) => refusal)),
      reasoning_content: joined(deltas.map((delta) => delta.reasoning_content)),
      reasoning_details: deltas.flatMap((delta) => delta.reasoning_details ?? []),
      annotations: deltas.flatMap(({ annotations }) => annotations ?? []),
      ...(calls.length > 0 && { tool_calls: calls }),
    }
    const usage = events.findLast((event) => event['usage'])?.['usage']
    return answerOf(message, choices, usage as Usage)
  },
  error: openAiError,
}

function messagesOf({ text, image, document, audio, marked, previous, results = [] }: Ask): Json[] {
  const mark = marked && { cache_control: { type: 'ephemeral' } }
  const parts = [
    { type: 'text', text, ...mark },
    ...(audio ? [{ type: 'input_audio', input_audio: { data: audio, format: 'wav' } }] : []),
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
    { role: 'system', content: mark ? [{ type: 'text', text: system, ...mark }] : system },
    { role: 'user', content: parts.length > 1 || mark ? parts : text },
    ...(previous ? [previous.turn as Json] : []),
    ...results.map((content, index) => ({ role: 'tool', tool_call_id: previous?.calls[index]?.id, content })),
  ]
}

function answerOf(message: Message, choices: readonly Choice[], usage: Usage | undefined): Answer {
  const { reasoning_details: details = [], annotations = [] } = message
  const text = message.content ?? ''
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
    text,
    reasoning: message.reasoning_content ?? '',
    calls,
    finish: choices.findLast(({ finish_reason }) => finish_reason !== null)?.finish_reason,
    // The whole text is cited.
    citations: annotations.map(({ url_citation: cited }) =>
      cited?.start_index === 0 && cited.end_index === text.length ? cited.url : cited,
    ),
    refusal: message.refusal ?? '',
    logprobs: joined(choices.flatMap(({ logprobs }) => logprobs?.content ?? []).map(({ token }) => token)),
    tokens: { input: usage?.prompt_tokens, output: usage?.completion_tokens },
    turn: {
      role: 'assistant',
      content: message.content || null,
      tool_calls: known,
      ...(details.length > 0 && { reasoning_details: details }),
    },
  }
}

/** https://platform.openai.com/docs/guides/error-codes */
export function openAiError({ error }: Json) {
  if (typeof error !== 'object' || error === null) return undefined
  const { type, code, message } = error as Json
  return { type, code, message }
}
