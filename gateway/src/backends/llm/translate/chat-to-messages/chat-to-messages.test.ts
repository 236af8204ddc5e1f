import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { GatewayError } from '../../../../lib/gateway-error.ts'
import type { JsonObject, JsonValue } from '../../../../lib/json/json.ts'
import type { TranslationContext } from '../translate.ts'
import { chatToMessages } from './chat-to-messages.ts'

const context: TranslationContext = {
  requestModel: 'claude',
  now: () => 1_700_000_000_000,
  includeUsage: true,
}
const hello: JsonObject = { role: 'user', content: 'Hello' }

function translated(fields: JsonObject): JsonObject {
  const result = chatToMessages.request({ model: 'claude', messages: [hello], ...fields })
  if (result.kind !== 'body') throw new Error(result.message)
  return result.body
}

function refusedParam(fields: JsonObject): string | undefined {
  const result = chatToMessages.request({ model: 'claude', messages: [hello], ...fields })
  return result.kind === 'unsupported' ? result.param : undefined
}

function inMessage(message: JsonObject): JsonObject {
  return { messages: [message] }
}

const call = (made: JsonObject): JsonObject => inMessage({ role: 'assistant', tool_calls: [made] })

describe('a chat request for the messages API', () => {
  const refused: [string, JsonObject][] = [
    ['n', { n: 2 }],
    ['logprobs', { logprobs: true }],
    ['top_logprobs', { top_logprobs: 3 }],
    ['seed', { seed: 1 }],
    ['frequency_penalty', { frequency_penalty: 0.5 }],
    ['presence_penalty', { presence_penalty: -1 }],
    ['logit_bias', { logit_bias: { '50256': -100 } }],
    ['modalities', { modalities: ['text', 'audio'] }],
    ['audio', { audio: { voice: 'alloy', format: 'wav' } }],
    ['verbosity', { verbosity: 'low' }],
    ['functions', { functions: [] }],
    ['function_call', { function_call: 'auto' }],
    ['web_search_options', { web_search_options: {} }],
    ['moderation', { moderation: {} }],
    ['invented_field', { invented_field: 1 }],
    ['temperature', { temperature: 1.5 }],
    ['stop', { stop: [1] }],
    ['response_format.type', { response_format: { type: 'json_object' } }],
    [
      'response_format.json_schema.schema',
      { response_format: { type: 'json_schema', json_schema: { name: 'x' } } },
    ],
    ['response_format', { response_format: 'json' }],
    ['reasoning_effort', { reasoning_effort: 'huge' }],
    ['messages', { messages: 'Hello' }],
    ['messages[0]', { messages: ['Hello'] }],
    ['messages[0].role', inMessage({ role: 'function', name: 'f', content: '' })],
    ['messages[0].content', inMessage({ role: 'user', content: 5 })],
    ['messages[0].content', inMessage({ role: 'user' })],
    ['messages[0].content[0]', inMessage({ role: 'user', content: ['Hello'] })],
    [
      'messages[0].content[0].type',
      inMessage({ role: 'user', content: [{ type: 'input_audio', input_audio: {} }] }),
    ],
    ['messages[0].content[0].text', inMessage({ role: 'user', content: [{ type: 'text' }] })],
    [
      'messages[0].content[0].invented',
      inMessage({ role: 'user', content: [{ type: 'text', text: 'a', invented: 1 }] }),
    ],
    [
      'messages[0].content[0].image_url.url',
      inMessage({ role: 'user', content: [{ type: 'image_url', image_url: 'x' }] }),
    ],
    [
      'messages[0].content[0].image_url.url',
      inMessage({ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png,AA' } }] }),
    ],
    [
      'messages[0].content[0].image_url.url',
      inMessage({
        role: 'user',
        content: [{ type: 'image_url', image_url: { url: 'data:image/tiff;base64,AA==' } }],
      }),
    ],
    [
      'messages[0].content[0].image_url.url',
      inMessage({
        role: 'user',
        content: [{ type: 'image_url', image_url: { url: 'ftp://example.com/a.png' } }],
      }),
    ],
    [
      'messages[0].content[0].file.file_id',
      inMessage({ role: 'user', content: [{ type: 'file', file: { file_id: 'f' } }] }),
    ],
    [
      'messages[0].content[0].file.file_data',
      inMessage({ role: 'user', content: [{ type: 'file', file: {} }] }),
    ],
    [
      'messages[0].content[0].type',
      inMessage({ role: 'system', content: [{ type: 'image_url', image_url: { url: 'x' } }] }),
    ],
    ['messages[0].audio', inMessage({ role: 'assistant', audio: { id: 'a' } })],
    [
      'messages[0].function_call',
      inMessage({ role: 'assistant', function_call: { name: 'f', arguments: '{}' } }),
    ],
    ['messages[0].tool_calls', inMessage({ role: 'assistant', tool_calls: {} })],
    ['messages[0].tool_calls[0].type', call({ id: 'a', type: 'custom', custom: {} })],
    ['messages[0].tool_calls[0].id', call({ type: 'function', function: { name: 'f', arguments: '{}' } })],
    [
      'messages[0].tool_calls[0].function.name',
      call({ id: 'a', type: 'function', function: { arguments: '{}' } }),
    ],
    [
      'messages[0].tool_calls[0].function.arguments',
      call({ id: 'a', type: 'function', function: { name: 'f', arguments: '{' } }),
    ],
    [
      'messages[0].tool_calls[0].function.arguments',
      call({ id: 'a', type: 'function', function: { name: 'f', arguments: '[1]' } }),
    ],
    [
      'messages[0].tool_calls[0].function.arguments',
      call({ id: 'a', type: 'function', function: { name: 'f' } }),
    ],
    ['messages[0].tool_call_id', inMessage({ role: 'tool', content: 'x' })],
    ['tools', { tools: {} }],
    ['tools[0]', { tools: ['f'] }],
    ['tools[0].type', { tools: [{ type: 'custom', custom: { name: 'f' } }] }],
    ['tools[0].function.name', { tools: [{ type: 'function', function: {} }] }],
    [
      'tools[0].function.parameters',
      { tools: [{ type: 'function', function: { name: 'f', parameters: [] } }] },
    ],
    ['tool_choice', { tool_choice: 'sometimes' }],
    ['tool_choice', { tool_choice: { type: 'allowed_tools', allowed_tools: {} } }],
  ]
  it.each(refused)('is rejected at %s for %j', (param, fields) => {
    expect(refusedParam(fields)).toBe(param)
  })

  it('reports the problem of the field', () => {
    expect(chatToMessages.request({ model: 'c', messages: [hello], n: 2 })).toEqual({
      kind: 'unsupported',
      param: 'n',
      message: 'n: the messages API gives one answer per request',
    })
  })

  it('accepts fields without a counterpart if they have no effect', () => {
    const body = translated({
      ...{
        n: 1,
        logprobs: false,
        top_logprobs: 0,
        frequency_penalty: 0,
        presence_penalty: 0,
        logit_bias: {},
      },
      ...{
        modalities: ['text'],
        seed: null,
        audio: null,
        verbosity: 'medium',
        stop: null,
        tools: null,
        response_format: null,
      },
      ...{
        store: true,
        metadata: { a: 'b' },
        prompt_cache_key: 'k',
        stream_options: { include_usage: true },
      },
    })
    expect(body).toEqual({ model: 'claude', max_tokens: 8192, messages: [hello] })
  })

  it('collects system and developer messages in order from all positions', () => {
    const { system, messages } = translated({
      messages: [
        { role: 'system', content: 'One' },
        hello,
        { role: 'developer', content: [{ type: 'text', text: 'Two', cache_control: { type: 'ephemeral' } }] },
        { role: 'assistant', content: 'Hi' },
      ],
    })
    expect(system).toEqual([
      { type: 'text', text: 'One' },
      { type: 'text', text: 'Two', cache_control: { type: 'ephemeral' } },
    ])
    expect(messages).toEqual([hello, { role: 'assistant', content: 'Hi' }])
  })

  it('removes turns and parts without content', () => {
    const { messages } = translated({
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: '' },
            { type: 'text', text: 'a' },
          ],
        },
        { role: 'assistant', content: '' },
        hello,
      ],
    })
    expect(messages).toEqual([{ role: 'user', content: [{ type: 'text', text: 'a' }] }, hello])
  })

  it('converts a refusal of an earlier turn to text', () => {
    const { messages } = translated(inMessage({ role: 'assistant', content: null, refusal: 'No.' }))
    expect(messages).toEqual([{ role: 'assistant', content: 'No.' }])
  })

  const limits: [JsonObject, JsonValue][] = [
    [{}, 8192],
    [{ max_tokens: 5 }, 5],
    [{ max_tokens: 5, max_completion_tokens: 7 }, 7],
    [{ max_completion_tokens: null, max_tokens: 5 }, 5],
  ]
  it.each(limits)('with %j is limited to %j tokens', (fields, limit) => {
    expect(translated(fields).max_tokens).toBe(limit)
  })

  const tools = [{ type: 'function', function: { name: 'f' } }]
  const choices: [JsonObject, JsonValue | undefined][] = [
    [{ tools }, undefined],
    [{ tools, tool_choice: 'auto' }, { type: 'auto' }],
    [{ tools, tool_choice: 'none' }, { type: 'none' }],
    [{ tools, tool_choice: 'required' }, { type: 'any' }],
    [
      { tools, tool_choice: { type: 'function', function: { name: 'f' } } },
      { type: 'tool', name: 'f' },
    ],
    [
      { tools, parallel_tool_calls: false },
      { type: 'auto', disable_parallel_tool_use: true },
    ],
    [{ tools, parallel_tool_calls: true }, undefined],
    [
      { tools, parallel_tool_calls: false, tool_choice: 'required' },
      { type: 'any', disable_parallel_tool_use: true },
    ],
    [{ tools, parallel_tool_calls: false, tool_choice: 'none' }, { type: 'none' }],
    [{ tool_choice: 'auto' }, undefined],
    [{ tools: [], tool_choice: 'none', parallel_tool_calls: false }, undefined],
    [{ tool_choice: 'required' }, { type: 'any' }],
  ]
  it.each(choices)('with %j translates the tool choice to %j', (fields, choice) => {
    expect(translated(fields).tool_choice).toEqual(choice)
  })

  const efforts: [string, JsonObject][] = [
    ['none', { thinking: { type: 'disabled' } }],
    ['minimal', { output_config: { effort: 'low' } }],
    ['xhigh', { output_config: { effort: 'xhigh' } }],
  ]
  it.each(efforts)('with reasoning effort %s contains %j', (effort, fields) => {
    expect(translated({ reasoning_effort: effort })).toMatchObject(fields)
  })

  it('forwards fields of the messages API', () => {
    const thinking = { type: 'enabled', budget_tokens: 2048 }
    expect(translated({ thinking, top_k: 5 })).toMatchObject({ thinking, top_k: 5 })
  })

  it('prefers the safety identifier as the user', () => {
    expect(translated({ user: 'a', safety_identifier: 'b' }).metadata).toEqual({ user_id: 'b' })
  })

  it('never throws for arbitrary fields', () => {
    const body = fc.dictionary(
      fc.constantFrom('messages', 'tools', 'tool_choice', 'stop', 'response_format', 'n'),
      fc.jsonValue(),
    )
    fc.assert(
      fc.property(body, (fields) => {
        expect(['body', 'unsupported']).toContain(chatToMessages.request(fields as JsonObject).kind)
      }),
    )
  })
})

describe('a message for a chat client', () => {
  const message: JsonObject = {
    id: 'msg_1',
    type: 'message',
    model: 'claude-x',
    content: [],
    stop_reason: 'end_turn',
  }

  const reasons: [string | null, string][] = [
    ['end_turn', 'stop'],
    ['stop_sequence', 'stop'],
    ['max_tokens', 'length'],
    ['model_context_window_exceeded', 'length'],
    ['pause_turn', 'length'],
    ['tool_use', 'tool_calls'],
    ['refusal', 'content_filter'],
    ['something_new', 'stop'],
  ]
  it.each(reasons)('with stop reason %s finishes with %s', (stopReason, finishReason) => {
    expect(chatToMessages.reply({ ...message, stop_reason: stopReason }, context)).toMatchObject({
      choices: [{ finish_reason: finishReason }],
    })
  })

  it('has an id and a model without those of the upstream', () => {
    expect(chatToMessages.reply({ type: 'message', content: [] }, context)).toMatchObject({
      id: 'chatcmpl-loyw3v28',
      model: 'claude',
      created: 1_700_000_000,
    })
  })

  it('treats invalid counts as absent', () => {
    const usage = {
      input_tokens: -1,
      output_tokens: '7',
      cache_read_input_tokens: Number.POSITIVE_INFINITY,
      cache_creation_input_tokens: 1.5,
    }
    expect(chatToMessages.reply({ ...message, usage }, context)).toMatchObject({ usage: { total_tokens: 0 } })
  })

  const garbage: [string, JsonObject][] = [
    ['an empty object', {}],
    ['an error', { type: 'error', error: {} }],
    ['a message without content', { type: 'message' }],
    ['a block that is none', { ...message, content: [1] }],
    ['a text without text', { ...message, content: [{ type: 'text' }] }],
    ['a tool call without input', { ...message, content: [{ type: 'tool_use', id: 'a', name: 'b' }] }],
  ]
  it.each(garbage)('is rejected for %s', (_, body) => {
    expect(() => chatToMessages.reply(body, context)).toThrow(
      expect.objectContaining({ code: 'upstream_invalid' }),
    )
  })

  it('is rejected if a tool input is nested too deep', () => {
    let input: JsonObject = { id: JSON.rawJSON('12345678901234567890') }
    for (let depth = 0; depth < 100_000; depth += 1) input = { input }
    const body = { ...message, content: [{ type: 'tool_use', id: 'a', name: 'b', input }] }
    expect(() => chatToMessages.reply(body, context)).toThrow(GatewayError)
  })
})

describe('an error of the messages API for a chat client', () => {
  it('preserves the message and uses the type as code', () => {
    const body = JSON.stringify({
      type: 'error',
      error: { type: 'overloaded_error', message: 'Overloaded' },
      request_id: 'req_1',
    })
    expect(chatToMessages.error(529, body)).toEqual({
      error: { message: 'Overloaded', type: 'server_error', param: null, code: 'overloaded_error' },
    })
  })

  it.each(['<html>Bad gateway</html>', '', '[]', '{"error":5}'])('reports only the status for %j', (body) => {
    expect(chatToMessages.error(502, body)).toMatchObject({
      error: { message: 'the upstream answered with status 502', code: 'upstream_error' },
    })
  })
})

describe('a message stream for a chat client', () => {
  const start = { type: 'message_start', message: { id: 'msg_1', model: 'c', usage: { input_tokens: 3 } } }
  const finish = { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 2 } }
  const stop = { type: 'message_stop' }
  const event = (data: JsonObject) => ({ data: JSON.stringify(data) })

  it('sends no usage without a request for it', () => {
    const stream = chatToMessages.stream({ ...context, includeUsage: false })
    const texts = [start, finish, stop].flatMap((data) => stream.event(event(data)))
    const all = [...texts, ...stream.end()].map(({ data }) => data)
    expect(all.join()).not.toContain('usage')
    expect(all.at(-1)).toBe('[DONE]')
  })

  it('preserves counts that the last event omits', () => {
    const stream = chatToMessages.stream(context)
    const message = { id: 'msg_1', usage: { input_tokens: 3, output_tokens: 4, cache_read_input_tokens: 5 } }
    const events = [{ ...start, message }, { ...finish, usage: { input_tokens: null } }, stop]
    for (const data of events) stream.event(event(data))
    const usage = stream.end().at(1)
    expect(usage?.data).toContain('"prompt_tokens":8,"completion_tokens":4')
  })

  it('ends at message_stop only', () => {
    const stream = chatToMessages.stream(context)
    stream.event(event(start))
    stream.event(event(finish))
    expect(stream.state).toBe('open')
    stream.event(event(stop))
    expect(stream.state).toBe('ended')
    expect(stream.end()).toHaveLength(3)
    expect(stream.end()).toEqual([])
    expect(stream.event(event(start))).toEqual([])
  })

  it('is empty after an error of the upstream', () => {
    const stream = chatToMessages.stream(context)
    stream.event(event(start))
    expect(stream.event(event({ type: 'error', error: { type: 'api_error', message: 'no' } }))).toHaveLength(
      1,
    )
    expect(stream.state).toBe('failed')
    expect(stream.event(event(stop))).toEqual([])
    expect(stream.end()).toEqual([])
  })

  it('ends an empty stream with an error', () => {
    expect(
      chatToMessages
        .stream(context)
        .end()
        .map(({ data }) => data),
    ).toEqual([expect.stringContaining('upstream_reset')])
  })

  it('uses the initial input of a tool call without fragments', () => {
    const stream = chatToMessages.stream(context)
    stream.event(event(start))
    const block = { type: 'tool_use', id: 'a', name: 'f', input: { x: 1 } }
    stream.event(event({ type: 'content_block_start', index: 0, content_block: block }))
    const [chunk] = stream.event(event({ type: 'content_block_stop', index: 0 }))
    expect(chunk?.data).toContain('"arguments":"{\\"x\\":1}"')
  })

  it('removes tools that the upstream ran', () => {
    const stream = chatToMessages.stream(context)
    stream.event(event(start))
    const block = { type: 'server_tool_use', id: 'a', name: 'web_search', input: {} }
    expect(stream.event(event({ type: 'content_block_start', index: 0, content_block: block }))).toEqual([])
    const delta = { type: 'input_json_delta', partial_json: '{}' }
    expect(stream.event(event({ type: 'content_block_delta', index: 0, delta }))).toEqual([])
    expect(stream.event(event({ type: 'content_block_stop', index: 0 }))).toEqual([])
  })

  const garbage: [string, JsonValue[]][] = [
    ['no JSON object', ['text']],
    [
      'content before its start',
      [{ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'a' } }],
    ],
    ['two starts', [start, start]],
    ['an end before its reason', [start, stop]],
    [
      'a delta without text',
      [start, { type: 'content_block_delta', index: 0, delta: { type: 'text_delta' } }],
    ],
    ['a tool call without id', [start, { type: 'content_block_start', content_block: { type: 'tool_use' } }]],
  ]
  it.each(garbage)('fails as invalid for %s', (_, events) => {
    const stream = chatToMessages.stream(context)
    expect(() => {
      for (const data of events)
        stream.event({ data: typeof data === 'string' ? data : JSON.stringify(data) })
    }).toThrow(expect.objectContaining({ code: 'upstream_invalid' }))
  })

  it('repeats no long id and no long model name, and has a limited number of calls', () => {
    const long = 'x'.repeat(1000)
    const begin = (index: number, input = {}) => ({
      type: 'content_block_start',
      index,
      content_block: { type: 'tool_use', id: 'a', name: 'f', input },
    })
    const stream = chatToMessages.stream(context)
    const events = [
      ...stream.event(event({ type: 'message_start', message: { id: long, model: long } })),
      ...stream.event(event(begin(0))),
    ]
    expect(JSON.stringify(events)).not.toContain(long)
    const tooLarge = expect.objectContaining({ code: 'upstream_too_large' })
    expect(() => {
      for (let index = 1; index < 1100; index += 1) stream.event(event(begin(index)))
    }).toThrow(tooLarge)
    const other = chatToMessages.stream(context)
    other.event(event(start))
    expect(() => {
      for (let index = 0; index < 5; index += 1)
        other.event(event(begin(index, { a: 'x'.repeat(1024 * 1024) })))
    }).toThrow(tooLarge)
  })

  it('throws only GatewayError for arbitrary input', () => {
    const type = fc.constantFrom(
      'message_start',
      'content_block_start',
      'content_block_delta',
      'content_block_stop',
      'message_delta',
      'error',
    )
    const inner = fc.oneof(
      fc.jsonValue(),
      fc.record({
        type: fc.constantFrom('text', 'tool_use', 'text_delta', 'input_json_delta'),
        text: fc.jsonValue(),
        id: fc.jsonValue(),
      }),
    )
    const any = fc.record({
      type,
      message: inner,
      content_block: inner,
      delta: inner,
      error: inner,
      index: fc.jsonValue(),
      usage: inner,
    })
    fc.assert(
      fc.property(fc.array(any), (events) => {
        const stream = chatToMessages.stream(context)
        stream.event(event(start))
        try {
          for (const data of events) stream.event({ data: JSON.stringify(data) })
        } catch (error) {
          expect(error).toBeInstanceOf(GatewayError)
        }
      }),
    )
  })
})
