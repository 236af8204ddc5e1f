import { expect, it } from 'vitest'
import { response, responseEvent } from '../../../../test/support/vendor-schemas.ts'
import type { JsonValue } from '../../../lib/json/json.ts'
import type { SseEvent } from '../../../net/http/sse.ts'
import { translationsFrom } from './translations.ts'

const context = { requestModel: 'asked', now: () => 1_700_000_000_000, includeUsage: false }
const translation = translationsFrom('responses').find(({ upstream }) => upstream === 'messages')
if (translation === undefined) throw new Error('no translation from responses to messages')
const { request, reply, stream, error } = translation

it('a composed request has the form of the second API', () => {
  const result = request({
    model: 'm',
    input: 'hi',
    instructions: 'brief',
    max_output_tokens: 5,
    temperature: 0.5,
  })
  expect(result).toMatchObject({
    kind: 'body',
    body: { system: 'brief', max_tokens: 5, messages: [{ role: 'user', content: 'hi' }] },
    settings: { instructions: 'brief', temperature: 0.5 },
  })
})

it('a composed request is refused by either translation', () => {
  expect(request({ model: 'm', input: 'x', background: true })).toMatchObject({ param: 'background' })
  expect(request({ model: 'm', input: 'x', temperature: 1.5 })).toMatchObject({ param: 'temperature' })
})

const head = { id: 'msg_1', type: 'message', role: 'assistant', model: 'claude' }

function listOf(value: JsonValue | undefined): JsonValue[] {
  return Array.isArray(value) ? value : []
}

it('a composed reply has the form of the client', () => {
  const content = [
    { type: 'thinking', thinking: 'hm', signature: 's' },
    { type: 'text', text: 'hi' },
    { type: 'tool_use', id: 't1', name: 'f', input: { a: 1 } },
  ]
  const usage = { input_tokens: 3, output_tokens: 4, cache_read_input_tokens: 2 }
  const translated = reply({ ...head, content, stop_reason: 'tool_use', usage }, context)
  expect(response.safeParse(translated).error).toBeUndefined()
  expect(translated).toMatchObject({
    status: 'completed',
    output: [
      { type: 'reasoning', content: [{ text: 'hm' }] },
      { type: 'message', content: [{ text: 'hi' }] },
      { type: 'function_call', call_id: 't1', arguments: '{"a":1}' },
    ],
    usage: { input_tokens: 5, input_tokens_details: { cached_tokens: 2 }, output_tokens: 4 },
  })
})

it('signed thinking returns to its API in front of the calls that follow it', () => {
  const thinking = [
    { type: 'thinking', thinking: 'hm', signature: 's' },
    { type: 'redacted_thinking', data: 'eA' },
  ]
  const call = { type: 'tool_use', id: 't1', name: 'f', input: { a: 1 } }
  const translated = reply(
    { ...head, content: [...thinking, call], stop_reason: 'tool_use', usage: {} },
    context,
  )
  const { output } = translated
  const result = { type: 'function_call_output', call_id: 't1', output: 'ok' }
  const again = request({ model: 'm', input: [{ role: 'user', content: 'hi' }, ...listOf(output), result] })
  expect(again).toMatchObject({
    body: {
      messages: [{ role: 'user' }, { role: 'assistant', content: [...thinking, call] }, { role: 'user' }],
    },
  })
})

it('a composed error has the form of the client', () => {
  const body = JSON.stringify({ type: 'error', error: { type: 'overloaded_error', message: 'busy' } })
  expect(error(529, body)).toMatchObject({ error: { message: 'busy', code: 'overloaded_error' } })
})

function streamed(events: readonly object[]): { type: string; response?: unknown }[] {
  const translator = stream(context)
  const out: SseEvent[] = events.flatMap((event) => translator.event({ data: JSON.stringify(event) }))
  out.push(...translator.end(), ...translator.end())
  return out.map(({ data }) => JSON.parse(data))
}

it('streamed thinking is in the item of its text, or in one of its own', () => {
  const block = (index: number, content_block: object, deltas: readonly object[]) => [
    { type: 'content_block_start', index, content_block },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ]
  const thought = { type: 'thinking_delta', thinking: 'hm' }
  const events = streamed([
    start,
    ...block(0, { type: 'redacted_thinking', data: 'eA' }, []),
    ...block(1, { type: 'text', text: 'hi' }, []),
    ...block(2, { type: 'thinking', thinking: '', signature: '' }, [
      thought,
      { type: 'signature_delta', signature: 's' },
    ]),
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 4 } },
    { type: 'message_stop' },
  ])
  for (const event of events) expect(responseEvent.safeParse(event).error).toBeUndefined()
  const sealed = { type: 'reasoning', encrypted_content: expect.any(String) }
  expect(events.at(-1)).toMatchObject({
    response: {
      output: [{ ...sealed, content: [] }, { type: 'message' }, { ...sealed, content: [{ text: 'hm' }] }],
    },
  })
})

const start = {
  type: 'message_start',
  message: { ...head, content: [], usage: { input_tokens: 3, output_tokens: 0 } },
}
const text = [
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'hi' } },
  { type: 'content_block_stop', index: 0 },
]

it('a composed stream has the events of the client, with usage', () => {
  const end = [
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 4 } },
    { type: 'message_stop' },
  ]
  const events = streamed([start, ...text, ...end])
  for (const event of events) expect(responseEvent.safeParse(event).error).toBeUndefined()
  expect(events.at(-1)).toMatchObject({
    type: 'response.completed',
    response: { output: [{ content: [{ text: 'hi' }] }], usage: { input_tokens: 3, output_tokens: 4 } },
  })
})

it.each([
  ['truncated', []],
  ['failed', [{ type: 'error', error: { type: 'overloaded_error', message: 'busy' } }]],
])('a composed stream that is %s ends with one error', (_, end) => {
  const types = streamed([start, ...text, ...end]).map(({ type }) => type)
  expect(types.filter((type) => type === 'error' || type === 'response.completed')).toEqual(['error'])
  expect(types.at(-1)).toBe('error')
})
