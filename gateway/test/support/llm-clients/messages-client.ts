import { type Answer, type ApiClient, type Ask, type Json, joined, system } from './client.ts'

type Block = Json & { type: string }

const mark = { cache_control: { type: 'ephemeral' } }

/** Clients with Anthropic's messages. */
export const messagesClient: ApiClient = {
  api: 'messages',
  path: () => '/v1/messages',
  body: (model, ask) => ({
    model,
    max_tokens: 4000,
    system: ask.marked ? [{ type: 'text', text: system, ...mark }] : system,
    messages: messagesOf(ask),
    ...(ask.streaming && { stream: true }),
    ...(ask.tool && { tools: [{ name: ask.tool, input_schema: ask.schema }] }),
    ...(ask.schema &&
      !ask.tool && { output_config: { format: { type: 'json_schema', schema: ask.schema } } }),
    ...(ask.stop && { stop_sequences: [ask.stop] }),
    ...(ask.single && { tool_choice: { type: 'auto', disable_parallel_tool_use: true } }),
    ...(ask.reasons && { thinking: { type: 'enabled', budget_tokens: 2000 } }),
  }),
  read: (body) => answerOf(body['content'] as Block[], body, [body['usage'] as Json]),
  readStream(events) {
    const blocks: Block[] = []
    const texts: string[] = []
    for (const { type, index = 0, content_block: block, delta } of events as Json[]) {
      const at = index as number
      if (type === 'content_block_start') blocks[at] = { ...(block as Block) }
      if (type !== 'content_block_delta') continue
      const { text, thinking, partial_json: part, signature, citation } = delta as Json
      const current = blocks[at] as Block
      if (text !== undefined) current['text'] = `${current['text']}${text}`
      if (thinking !== undefined) current['thinking'] = `${current['thinking']}${thinking}`
      if (citation !== undefined)
        current['citations'] = [...((current['citations'] ?? []) as Json[]), citation]
      if (signature !== undefined) current['signature'] = signature
      if (part !== undefined) texts[at] = (texts[at] ?? '') + part
    }
    for (const [at, text] of texts.entries())
      if (text !== undefined) (blocks[at] as Block)['input'] = JSON.parse(text)
    const start = events.find(({ type }) => type === 'message_start')?.['message'] as Json
    const end = events.find(({ type }) => type === 'message_delta')
    return answerOf(blocks, (end?.['delta'] ?? {}) as Json, [
      start?.['usage'] as Json,
      end?.['usage'] as Json,
    ])
  },
  error({ type, error }) {
    if (type !== 'error') return undefined
    const { type: kind, message } = error as Json
    return { type: kind, code: undefined, message }
  },
}

function messagesOf({ text, image, document, marked, previous, results = [] }: Ask): Json[] {
  const source = (type: string, data: string) => ({ type: 'base64', media_type: type, data })
  const parts = [
    ...(image ? [{ type: 'image', source: source('image/png', image) }] : []),
    ...(document ? [{ type: 'document', source: source('application/pdf', document) }] : []),
    { type: 'text', text, ...(marked && mark) },
  ]
  const content = results.map((result, index) => ({
    type: 'tool_result',
    tool_use_id: previous?.calls[index]?.id,
    content: result,
  }))
  return [
    { role: 'user', content: parts.length > 1 || marked ? parts : text },
    ...(previous
      ? [
          { role: 'assistant', content: previous.turn },
          { role: 'user', content },
        ]
      : []),
  ]
}

/** Clients count input as the sum of its parts. */
function answerOf(blocks: readonly Block[], end: Json, usages: readonly Json[]): Answer {
  const { stop_reason: finish, stop_details: details } = end
  const usage: Json = Object.assign({}, ...usages)
  const input = ['input_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens']
    .map((name) => Number(usage[name] ?? 0))
    .reduce((sum, count) => sum + count, 0)
  return {
    text: joined(blocks.map(({ text }) => text)),
    reasoning: joined(blocks.map(({ thinking }) => thinking)),
    calls: blocks
      .filter(({ type }) => type === 'tool_use')
      .map(({ id, name, input }) => ({ id: String(id), name: String(name), input })),
    finish,
    citations: blocks.flatMap(({ citations = [] }) => (citations as Json[]).map(({ url }) => url)),
    refusal: String((details as Json | undefined)?.['explanation'] ?? ''),
    logprobs: '',
    tokens: { input, output: usage['output_tokens'] },
    turn: blocks,
  }
}
