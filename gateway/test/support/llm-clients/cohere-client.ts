import { type Answer, type ApiClient, type Ask, type Json, joined, system } from './client.ts'

type Call = { id: string; type: string; function: { name: string; arguments: string } }
type Part = { type: string; text?: string; thinking?: string }
type Citation = { start: number; end: number; sources: { document: { url?: string } }[] }
type Message = { content?: Part[]; tool_plan?: string; tool_calls?: Call[]; citations?: Citation[] }
type Delta = { content?: Part; tool_plan?: string; tool_calls?: Call; citations?: Citation }

/** Clients with the second version of Cohere's chat. */
export const cohereClient: ApiClient = {
  api: 'cohere_chat',
  path: () => '/v2/chat',
  body: (model, ask) => ({
    model,
    messages: messagesOf(ask),
    ...(ask.streaming && { stream: true }),
    ...(ask.tool && { tools: [{ type: 'function', function: { name: ask.tool, parameters: ask.schema } }] }),
    ...(ask.schema && !ask.tool && { response_format: { type: 'json_object', json_schema: ask.schema } }),
    ...(ask.stop && { stop_sequences: [ask.stop] }),
    ...(ask.reasons && { thinking: { type: 'enabled', token_budget: 2000 } }),
  }),
  read: (body) => answerOf(body['message'] as Message, body),
  readStream(events) {
    const parts: Part[] = []
    const calls: Call[] = []
    const citations: Citation[] = []
    let plan = ''
    for (const event of events) {
      const { type, index = 0 } = event as { type: string; index?: number }
      const { content, tool_plan = '', tool_calls: call, citations: citation } = deltaOf(event)
      if (type === 'citation-start' && citation) citations.push(citation)
      plan += tool_plan
      if (type === 'content-start' && content) parts[index] = { ...content }
      if (type === 'content-delta' && content) append(parts[index], content)
      if (type === 'tool-call-start' && call) calls[index] = { ...call, function: { ...call.function } }
      const known = calls[index]
      if (type === 'tool-call-delta' && call && known) known.function.arguments += call.function.arguments
    }
    const end = events.find(({ type }) => type === 'message-end')?.['delta'] as Json
    return answerOf({ content: parts, tool_plan: plan, tool_calls: calls, citations }, end)
  },
  error({ message, code, delta }) {
    if (typeof message === 'string') return { type: undefined, code, message }
    const { error } = (delta ?? {}) as Json
    return error === undefined ? undefined : { type: 'ERROR', code: undefined, message: error }
  },
}

function deltaOf({ delta }: Json): Delta {
  return ((delta as Json | undefined)?.['message'] ?? {}) as Delta
}

function append(part: Part | undefined, { text, thinking }: Part): void {
  if (part && text !== undefined) part.text = (part.text ?? '') + text
  if (part && thinking !== undefined) part.thinking = (part.thinking ?? '') + thinking
}

function messagesOf({ text, image, previous, results = [] }: Ask): Json[] {
  const parts = [
    { type: 'text', text },
    ...(image ? [{ type: 'image_url', image_url: { url: `data:image/png;base64,${image}` } }] : []),
  ]
  return [
    { role: 'system', content: system },
    { role: 'user', content: parts.length > 1 ? parts : text },
    ...(previous ? [previous.turn as Json] : []),
    ...results.map((content, index) => ({ role: 'tool', tool_call_id: previous?.calls[index]?.id, content })),
  ]
}

function answerOf(message: Message, { finish_reason: finish, usage }: Json): Answer {
  const { content = [], tool_calls: calls = [], tool_plan: plan, citations = [] } = message
  const { billed_units: billed } = (usage ?? {}) as { billed_units?: Json }
  const text = joined(content.map((part) => part.text))
  return {
    text,
    refusal: finish === 'ERROR' ? text : '',
    citations: citations.flatMap(({ start, end, sources }) =>
      sources.map(({ document }) => (start === 0 && end === text.length ? document.url : [start, end])),
    ),
    logprobs: '',
    reasoning: joined(content.map(({ thinking }) => thinking)),
    calls: calls.map(({ id, function: { name, arguments: given } }) => ({
      ...{ id, name },
      input: JSON.parse(given),
    })),
    finish,
    tokens: { input: billed?.['input_tokens'], output: billed?.['output_tokens'] },
    turn: {
      role: 'assistant',
      ...(plan && { tool_plan: plan }),
      ...(content.length > 0 && { content }),
      ...(calls.length > 0 && { tool_calls: calls }),
    },
  }
}
