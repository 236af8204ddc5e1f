import type { LlmApi } from '../../pipeline/llm-message.ts'

/** One call of each client API that says `words`: as an object, and as the events of a stream with the same texts. */
export type FixtureConversation = {
  request(text: string): object
  whole(text: string): string
  stream(words: readonly string[]): string[]
  /** The text a client puts together from a stream. */
  read(stream: string): string
  /** What makes a stream look complete. */
  end: string
}

const chatEvent = (delta: object, more: object = {}) =>
  `data: ${JSON.stringify({ id: 'c1', choices: [{ index: 0, delta, logprobs: null, finish_reason: null }], ...more })}\n\n`

const named = (type: string, fields: object) =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`

export const conversations: Readonly<Record<LlmApi, FixtureConversation>> = {
  chat: {
    request: (content) => ({ model: 'm', messages: [{ role: 'user', content }] }),
    whole: (content) =>
      JSON.stringify({ id: 'c1', choices: [{ index: 0, message: { role: 'assistant', content } }] }),
    stream: (words) => [
      chatEvent({ role: 'assistant', content: '' }),
      ...words.map((content) => chatEvent({ content })),
      `data: ${JSON.stringify({ id: 'c1', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })}\n\n`,
      `data: ${JSON.stringify({ id: 'c1', choices: [], usage: { total_tokens: 12345678901234 } })}\n\n`,
      'data: [DONE]\n\n',
    ],
    read: (stream) => textsIn(stream, /"delta":\{[^}]*?"content":("(?:[^"\\]|\\.)*")/g),
    end: '[DONE]',
  },
  completions: {
    request: (prompt) => ({ model: 'm', prompt }),
    whole: (text) => JSON.stringify({ id: 'c1', choices: [{ index: 0, text, logprobs: null }] }),
    stream: (words) => [
      ...words.map((text) => `data: ${JSON.stringify({ id: 'c1', choices: [{ index: 0, text }] })}\n\n`),
      'data: [DONE]\n\n',
    ],
    read: (stream) => textsIn(stream, /"text":("(?:[^"\\]|\\.)*")/g),
    end: '[DONE]',
  },
  messages: {
    request: (content) => ({ model: 'm', max_tokens: 9, messages: [{ role: 'user', content }] }),
    whole: (text) =>
      JSON.stringify({ id: 'm1', type: 'message', role: 'assistant', content: [{ type: 'text', text }] }),
    stream: (words) => [
      named('message_start', { message: { id: 'm1', content: [], usage: { input_tokens: 3 } } }),
      named('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
      named('ping', {}),
      ...words.map((text) => named('content_block_delta', { index: 0, delta: { type: 'text_delta', text } })),
      named('content_block_stop', { index: 0 }),
      named('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 3 } }),
      named('message_stop', {}),
    ],
    read: (stream) => textsIn(stream, /"text_delta","text":("(?:[^"\\]|\\.)*")/g),
    end: 'message_stop',
  },
  responses: {
    request: (input) => ({ model: 'm', input }),
    whole: (text) => JSON.stringify({ id: 'r1', output: [messageItem(text)] }),
    stream(words) {
      const text = words.join('')
      const at = { item_id: 'i1', output_index: 0, content_index: 0 }
      return [
        named('response.created', { response: { id: 'r1', output: [] } }),
        named('response.output_item.added', { output_index: 0, item: { ...messageItem(''), content: [] } }),
        named('response.content_part.added', { ...at, part: { type: 'output_text', text: '' } }),
        ...words.map((delta) => named('response.output_text.delta', { ...at, delta })),
        named('response.output_text.done', { ...at, text }),
        named('response.content_part.done', { ...at, part: { type: 'output_text', text } }),
        named('response.output_item.done', { output_index: 0, item: messageItem(text) }),
        named('response.completed', { response: { id: 'r1', output: [messageItem(text)], usage: {} } }),
      ]
    },
    read: (stream) => textsIn(stream, /"delta":("(?:[^"\\]|\\.)*")/g),
    end: 'response.completed',
  },
}

function messageItem(text: string) {
  return {
    type: 'message',
    id: 'i1',
    role: 'assistant',
    content: [{ type: 'output_text', text, annotations: [] }],
  }
}

function textsIn(stream: string, pattern: RegExp): string {
  return [...stream.matchAll(pattern)].map(([, text = '""']) => String(JSON.parse(text))).join('')
}

export const apis: readonly LlmApi[] = ['chat', 'completions', 'messages', 'responses']
