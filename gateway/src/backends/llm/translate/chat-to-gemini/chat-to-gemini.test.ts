import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type JsonObject, type JsonValue, parseJsonObject } from '../../../../lib/json/json.ts'
import { createSseParser } from '../../../../net/http/sse.ts'
import { composeTranslations } from '../compose.ts'
import { messagesToChat } from '../messages-to-chat/messages-to-chat.ts'
import type { TranslationContext } from '../translate.ts'
import { chatToGemini } from './chat-to-gemini.ts'
import { joinCallId, splitCallId } from './tool-call-id.ts'

const context: TranslationContext = {
  requestModel: 'gemini',
  now: () => 1_700_000_000_000,
  includeUsage: true,
}
const hello: JsonObject = { role: 'user', content: 'Hello' }

function translated(fields: JsonObject): JsonObject {
  const result = chatToGemini.request({ model: 'gemini-2.5-pro', messages: [hello], ...fields })
  if (result.kind !== 'body') throw new Error(result.message)
  return result.body
}

function refusedParam(fields: JsonObject): string | undefined {
  const result = chatToGemini.request({ model: 'gemini-2.5-pro', messages: [hello], ...fields })
  return result.kind === 'unsupported' ? result.param : undefined
}

const inMessage = (message: JsonObject): JsonObject => ({ messages: [message] })
const inPart = (part: JsonObject): JsonObject => inMessage({ role: 'user', content: [part] })
const call = (made: JsonValue): JsonObject => inMessage({ role: 'assistant', tool_calls: [made] })

describe('a chat request for Gemini', () => {
  const tools = [{ type: 'function', function: { name: 'f' } }]
  const refused: [string, JsonObject][] = [
    ['logit_bias', { logit_bias: { '50256': -100 } }],
    ['modalities', { modalities: ['text', 'audio'] }],
    ['audio', { audio: { voice: 'alloy', format: 'wav' } }],
    ['verbosity', { verbosity: 'low' }],
    ['functions', { functions: [] }],
    ['web_search_options', { web_search_options: {} }],
    ['invented_field', { invented_field: 1 }],
    ['extra_body.other', { extra_body: { other: 1 } }],
    ['extra_body.google.other', { extra_body: { google: { other: 1 } } }],
    ['stop', { stop: [1] }],
    ['response_format', { response_format: 'json' }],
    ['response_format', { response_format: { type: 'grammar' } }],
    ['response_format.json_schema.schema', { response_format: { type: 'json_schema', json_schema: {} } }],
    ['reasoning_effort', { reasoning_effort: 'huge' }],
    ['parallel_tool_calls', { tools, parallel_tool_calls: false }],
    ['tools', { tools: 'f' }],
    ['tools[0]', { tools: ['f'] }],
    ['tools[0].type', { tools: [{ type: 'web_search' }] }],
    ['tools[0].function.name', { tools: [{ type: 'function', function: {} }] }],
    [
      'tools[0].function.parameters',
      { tools: [{ type: 'function', function: { name: 'f', parameters: 1 } }] },
    ],
    ['tool_choice', { tool_choice: 'maybe' }],
    ['messages', { messages: 'Hello' }],
    ['messages[0]', { messages: ['Hello'] }],
    ['messages[0].role', inMessage({ role: 'function', name: 'f', content: '' })],
    ['messages[0].tool_call_id', inMessage({ role: 'tool', tool_call_id: 'unknown', content: '' })],
    ['messages[0].tool_calls', inMessage({ role: 'assistant', tool_calls: 'f' })],
    ['messages[0].tool_calls[0]', call('f')],
    ['messages[0].tool_calls[0].type', call({ id: '1', type: 'custom' })],
    [
      'messages[0].tool_calls[0].function.arguments',
      call({ id: '1', type: 'function', function: { name: 'f', arguments: '[1]' } }),
    ],
    ['messages[0].content', inMessage({ role: 'user', content: 1 })],
    ['messages[0].content[0].type', inPart({ type: 'thinking' })],
    ['messages[0].content[0].image_url.url', inPart({ type: 'image_url', image_url: { url: 'ftp://a/b' } })],
    ['messages[0].content[0].input_audio', inPart({ type: 'input_audio', input_audio: { data: 'A' } })],
    ['messages[0].content[0].file.file_id', inPart({ type: 'file', file: { file_id: 'file-abc' } })],
    ['messages[0].content[0].file.file_data', inPart({ type: 'file', file: { file_data: 'AAAA' } })],
  ]
  it.each(refused)('is refused for %s: %j', (param, fields) => {
    expect(refusedParam(fields)).toBe(param)
  })

  it.each([
    [{ logit_bias: {} }],
    [{ verbosity: 'medium', user: 'u', store: false, metadata: {}, service_tier: 'flex' }],
    [{ stream: true, stream_options: { include_usage: true } }],
    [{ parallel_tool_calls: false }],
    [{ modalities: ['text'], response_format: { type: 'text' } }],
  ])('has no trace of %j', (fields) => {
    expect(translated(fields as JsonObject)).toEqual(translated({}))
  })

  it.each([
    ['required', { mode: 'ANY' }],
    [
      { type: 'function', function: { name: 'f' } },
      { mode: 'ANY', allowedFunctionNames: ['f'] },
    ],
  ])('may demand the call of one tool: %j', (choice, expected) => {
    const fields = { tools: tools.slice(0, 1), tool_choice: choice, parallel_tool_calls: false }
    expect(translated(fields)['toolConfig']).toEqual({ functionCallingConfig: expected })
  })

  it('has thoughts by effort: budgets before Gemini 3, levels from it on', () => {
    const thinking = (fields: JsonObject) =>
      (translated(fields)['generationConfig'] as JsonObject | undefined)?.['thinkingConfig']
    expect(thinking({ reasoning_effort: 'high' })).toEqual({ thinkingBudget: 24_576, includeThoughts: true })
    expect(thinking({ model: 'gemini-3-pro', reasoning_effort: 'max' })).toEqual({
      thinkingLevel: 'HIGH',
      includeThoughts: true,
    })
    expect(thinking({ model: 'gemini-3-pro', reasoning_effort: 'none' })).toBeUndefined()
    const google = { thinking_config: { thinking_budget: 5, include_thoughts: false } }
    expect(thinking({ reasoning_effort: 'high', extra_body: { google } })).toEqual({
      thinkingBudget: 5,
      includeThoughts: false,
    })
  })

  it('has the signature of an extension of Google', () => {
    const made = {
      id: 'c',
      type: 'function',
      function: { name: 'f', arguments: '{}' },
      extra_content: { google: { thought_signature: 'AbC=' } },
    }
    expect(translated(call(made))['contents']).toEqual([
      { role: 'model', parts: [{ functionCall: { name: 'f', args: {} }, thoughtSignature: 'AbC=' }] },
    ])
  })
})

it('a signature survives an id of any API', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 300 }), (bytes) => {
      const signature = Buffer.from(bytes).toString('base64')
      const id = joinCallId('call_1', signature)
      expect(id).toMatch(/^[A-Za-z0-9_-]+$/)
      expect(splitCallId(id)).toEqual({ id: 'call_1', signature })
    }),
  )
  expect(joinCallId('call_1', undefined)).toBe('call_1')
  expect(joinCallId('call_1', 'not base64!')).toBe('call_1')
  expect(splitCallId('toolu_1')).toEqual({ id: 'toolu_1', signature: undefined })
})

describe('a response of Gemini', () => {
  it.each([{}, { candidates: [] }, { candidates: {} }, { candidates: [1] }])('%j is refused', (body) => {
    expect(() => chatToGemini.reply(body as JsonObject, context)).toThrow('cannot be read')
  })

  it.each([
    [{ content: { parts: {} } }],
    [{ content: { parts: [1] } }],
    [{ content: { parts: [{ functionCall: {} }] } }],
  ])('with the candidate %j is refused', (candidate) => {
    expect(() => chatToGemini.reply({ candidates: [candidate as JsonObject] }, context)).toThrow(
      'cannot be read',
    )
  })

  it('that is an error becomes an error of OpenAI', () => {
    const error = { code: 429, message: 'Quota exceeded', status: 'RESOURCE_EXHAUSTED' }
    expect(chatToGemini.error(429, JSON.stringify({ error }))).toEqual({
      error: {
        message: 'Quota exceeded',
        type: 'rate_limit_error',
        param: null,
        code: 'rate_limit_exceeded',
      },
    })
  })
})

const part = (fields: object, more: object = {}) =>
  `data: ${JSON.stringify({ candidates: [{ content: { parts: [fields] }, index: 0, ...more }], responseId: 'r' })}\r\n\r\n`
const stream = [
  part({ text: 'Grüße', thought: true }),
  part({ text: 'Hé "finishReason": 🙂' }),
  part({ functionCall: { name: 'f', args: { finishReason: 'STOP' } }, thoughtSignature: 'AA==' }),
  part({ text: '' }, { finishReason: 'STOP' }),
  `data: ${JSON.stringify({ usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2 } })}\r\n\r\n`,
].join('')

function chunksOf(pieces: readonly Uint8Array[], translation = chatToGemini): string[] {
  const translator = translation.stream(context)
  const out: string[] = []
  const parser = createSseParser({
    maxEventBytes: 100_000,
    onEvent: (event) => out.push(...translator.event(event).map(({ data }) => data)),
  })
  for (const piece of pieces) parser.push(piece)
  parser.end()
  return [...out, ...translator.end().map(({ data }) => data), ...translator.end().map(({ data }) => data)]
}

it.each([
  ['STOP', 'stop'],
  ['MAX_TOKENS', 'length'],
  ['MALFORMED_FUNCTION_CALL', 'length'],
  ['UNEXPECTED_TOOL_CALL', 'length'],
  ['SPII', 'content_filter'],
  ['OTHER', 'stop'],
])('a candidate that finishes with %s has the reason %s', (finishReason, expected) => {
  const candidates = [{ content: { parts: [{ text: 'x' }] }, finishReason }]
  expect(chatToGemini.reply({ candidates }, context)).toMatchObject({
    choices: [{ finish_reason: expected }],
  })
})

describe('a stream of Gemini', () => {
  it('cut at any byte has the same chunks', () => {
    const bytes = Buffer.from(stream)
    const whole = chunksOf([bytes])
    expect(whole.at(-1)).toBe('[DONE]')
    for (let cut = 1; cut < bytes.length; cut += 1)
      expect(chunksOf([bytes.subarray(0, cut), bytes.subarray(cut)])).toEqual(whole)
  })

  it.each([1, 2, 3])('truncated after %d events ends with an error', (events) => {
    const text = stream.split('\r\n\r\n').slice(0, events).join('\r\n\r\n')
    const out = chunksOf([Buffer.from(`${text}\r\n\r\n`)])
    expect(out).not.toContain('[DONE]')
    expect(parseJsonObject(out.at(-1) ?? '')?.['error']).toMatchObject({ code: 'upstream_reset' })
  })

  it('with an unfinished candidate is truncated', () => {
    const second = part({ text: 'x' }, { index: 1 })
    expect(chunksOf([Buffer.from(second + stream)])).not.toContain('[DONE]')
  })

  it('that fails ends with the error of the upstream', () => {
    const error = { error: { code: 503, message: 'overloaded', status: 'UNAVAILABLE' } }
    const out = chunksOf([Buffer.from(`${part({ text: 'a' })}data: ${JSON.stringify(error)}\n\n`)])
    expect(parseJsonObject(out.at(-1) ?? '')?.['error']).toMatchObject({ message: 'overloaded' })
  })

  it.each(['data: x\n\n', 'data: {"candidates":{}}\n\n', 'data: {"candidates":[1]}\n\n'])(
    'with %j is refused',
    (text) => {
      expect(() => chunksOf([Buffer.from(text)])).toThrow('cannot be read')
    },
  )

  it('repeats no long model name, and has limited explanations of filters', () => {
    const long = 'x'.repeat(1_000)
    const named = `data: ${JSON.stringify({ modelVersion: long, candidates: [] })}\n\n`
    expect(chunksOf([Buffer.from(named + stream)]).join()).not.toContain(long)
    const filtered = (index: number) =>
      part({ text: 'x' }, { index, finishReason: 'SAFETY', finishMessage: 'x'.repeat(90_000) })
    const many = Array.from({ length: 50 }, (_, index) => filtered(index)).join('')
    expect(() => chunksOf([Buffer.from(many)])).toThrow('longer than')
  })

  it('has bounded candidates', () => {
    const many = Array.from({ length: 200 }, (_, index) => part({ text: 'x' }, { index })).join('')
    expect(() => chunksOf([Buffer.from(many)])).toThrow('too many candidates')
  })

  it('becomes a stream of messages by composition', () => {
    const out = chunksOf([Buffer.from(stream)], composeTranslations(messagesToChat, chatToGemini))
    const events = out.map((data) => parseJsonObject(data) ?? {})
    expect(events.map(({ type }) => type)).toContain('message_stop')
    expect(events.find(({ type }) => type === 'message_delta')).toMatchObject({
      delta: { stop_reason: 'tool_use' },
      usage: { input_tokens: 3, output_tokens: 2 },
    })
    expect(JSON.stringify(events)).toContain('call_r_0_0__thought__AA')
  })
})
