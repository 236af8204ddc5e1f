import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { GatewayError } from '../../../../lib/gateway-error.ts'
import type { JsonObject, JsonValue } from '../../../../lib/json/json.ts'
import type { TranslationContext } from '../translate.ts'
import { messagesToChat } from './messages-to-chat.ts'

const context: TranslationContext = { requestModel: 'gpt', now: () => 1_700_000_000_000, includeUsage: true }
const hello: JsonObject = { role: 'user', content: 'Hello' }

function translated(fields: JsonObject): JsonObject {
  const result = messagesToChat.request({ model: 'gpt', max_tokens: 9, messages: [hello], ...fields })
  if (result.kind !== 'body') throw new Error(result.message)
  return result.body
}

function refusedParam(fields: JsonObject): string | undefined {
  const result = messagesToChat.request({ model: 'gpt', max_tokens: 9, messages: [hello], ...fields })
  return result.kind === 'unsupported' ? result.param : undefined
}

const inUserTurn = (block: JsonValue): JsonObject => ({ messages: [{ role: 'user', content: [block] }] })
const inAssistantTurn = (block: JsonValue): JsonObject => ({
  messages: [{ role: 'assistant', content: [block] }, hello],
})

describe('a messages request for chat completions', () => {
  const refused: [string, JsonObject][] = [
    ['top_k', { top_k: 5 }],
    ['container', { container: 'c' }],
    ['mcp_servers', { mcp_servers: [] }],
    ['inference_geo', { inference_geo: 'eu' }],
    ['speed', { speed: 'fast' }],
    ['context_management', { context_management: { edits: [{ type: 'compact_20260112' }] } }],
    ['context_management', { context_management: { edits: 'all' } }],
    ['invented_field', { invented_field: 1 }],
    ['system', { system: 5 }],
    ['system[0].type', { system: [{ type: 'image' }] }],
    ['output_config', { output_config: 'json' }],
    ['output_config.invented', { output_config: { invented: 1 } }],
    ['output_config.format', { output_config: { format: { type: 'xml' } } }],
    ['thinking', { thinking: true }],
    ['thinking.type', { thinking: { type: 'between_tools' } }],
    ['thinking.budget_tokens', { thinking: { type: 'enabled' } }],
    ['messages', { messages: {} }],
    ['messages[0]', { messages: [1] }],
    ['messages[0].role', { messages: [{ role: 'tool', content: '' }] }],
    ['messages[0].name', { messages: [{ role: 'user', content: '', name: 'Ann' }] }],
    ['messages[0].content', { messages: [{ role: 'user', content: 1 }] }],
    ['messages[1]', { messages: [hello, { role: 'assistant', content: '{' }] }],
    ['messages[0].content[0]', inUserTurn('Hello')],
    ['messages[0].content[0].text', inUserTurn({ type: 'text' })],
    ['messages[0].content[0].invented', inUserTurn({ type: 'text', text: '', invented: 1 })],
    ['messages[0].content[0].type', inUserTurn({ type: 'search_result', content: [] })],
    ['messages[0].content[0].source', inUserTurn({ type: 'image', source: { type: 'file', file_id: 'f' } })],
    ['messages[0].content[0].source', inUserTurn({ type: 'image' })],
    [
      'messages[0].content[0].source',
      inUserTurn({ type: 'document', source: { type: 'url', url: 'https://example.com/a.pdf' } }),
    ],
    ['messages[0].content[0].context', inUserTurn({ type: 'document', source: {}, context: 'x' })],
    [
      'messages[0].content[0].citations',
      inUserTurn({ type: 'document', source: {}, citations: { enabled: true } }),
    ],
    ['messages[0].content[0].tool_use_id', inUserTurn({ type: 'tool_result', content: 'x' })],
    ['messages[0].content[0].content', inUserTurn({ type: 'tool_result', tool_use_id: 'a', content: 5 })],
    [
      'messages[0].content[0].type',
      inAssistantTurn({ type: 'server_tool_use', id: 'a', name: 'web_search', input: {} }),
    ],
    ['messages[0].content[0].text', inAssistantTurn({ type: 'text' })],
    ['messages[0].content[0].input', inAssistantTurn({ type: 'tool_use', id: 'a', name: 'f', input: '{}' })],
    ['messages[0].content[0].id', inAssistantTurn({ type: 'tool_use', name: 'f', input: {} })],
    ['messages[0].content[0].name', inAssistantTurn({ type: 'tool_use', id: 'a', input: {} })],
    ['tools', { tools: {} }],
    ['tools[0]', { tools: [1] }],
    ['tools[0].type', { tools: [{ type: 'web_search_20250305', name: 'web_search' }] }],
    ['tools[0].name', { tools: [{ input_schema: {} }] }],
    ['tools[0].input_schema', { tools: [{ name: 'f' }] }],
    ['tools[0].invented', { tools: [{ name: 'f', input_schema: {}, invented: 1 }] }],
    [
      'tools[0].allowed_callers',
      { tools: [{ name: 'f', input_schema: {}, allowed_callers: ['code_execution_20260120'] }] },
    ],
    ['tool_choice', { tool_choice: 'auto' }],
    ['tool_choice', { tool_choice: { type: 'tool' } }],
  ]
  it.each(refused)('is rejected at %s for %j', (param, fields) => {
    expect(refusedParam(fields)).toBe(param)
  })

  it('accepts fields without a counterpart if they have no effect', () => {
    const body = translated({
      ...{
        top_k: null,
        container: null,
        speed: 'standard',
        diagnostics: null,
        cache_control: { type: 'ephemeral' },
      },
      ...{ thinking: { type: 'disabled' }, service_tier: 'auto', stop_sequences: [], tools: [] },
      context_management: { edits: [{ type: 'clear_thinking_20251015' }] },
    })
    expect(body).toEqual({ model: 'gpt', max_tokens: 9, messages: [hello] })
  })

  it('requests token counts of a stream', () => {
    expect(translated({ stream: true }).stream_options).toEqual({ include_usage: true })
    expect(translated({ stream: false }).stream_options).toBeUndefined()
  })

  it('sends tool results before the rest of the turn', () => {
    const { messages } = translated({
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'First' },
            {
              type: 'tool_result',
              tool_use_id: 'a',
              content: [
                { type: 'text', text: '1' },
                { type: 'text', text: '2' },
              ],
            },
            { type: 'tool_result', tool_use_id: 'b', is_error: true },
          ],
        },
      ],
    })
    expect(messages).toEqual([
      {
        role: 'tool',
        tool_call_id: 'a',
        content: [
          { type: 'text', text: '1' },
          { type: 'text', text: '2' },
        ],
      },
      { role: 'tool', tool_call_id: 'b', content: 'The tool call failed: ' },
      { role: 'user', content: 'First' },
    ])
  })

  it('removes thinking and turns with only thinking', () => {
    const { messages } = translated(inAssistantTurn({ type: 'thinking', thinking: 'Hm', signature: 's' }))
    expect(messages).toEqual([hello])
  })

  const efforts: [JsonObject, JsonValue | undefined][] = [
    [{ thinking: { type: 'enabled', budget_tokens: 4096 } }, 'low'],
    [{ thinking: { type: 'enabled', budget_tokens: 16_384 } }, 'medium'],
    [{ thinking: { type: 'enabled', budget_tokens: 32_000 } }, 'high'],
    [{ thinking: { type: 'enabled', budget_tokens: 32_000 }, output_config: { effort: 'low' } }, 'low'],
    [{ thinking: { type: 'adaptive' } }, undefined],
  ]
  it.each(efforts)('with %j contains effort %j', (fields, effort) => {
    expect(translated(fields).reasoning_effort).toEqual(effort)
  })

  it('removes user ids above the limit of upstreams', () => {
    expect(translated({ metadata: { user_id: 'u'.repeat(64) } }).user).toHaveLength(64)
    expect(translated({ metadata: { user_id: 'u'.repeat(65) } }).user).toBeUndefined()
  })

  const tools = [{ name: 'f', input_schema: { type: 'object' } }]
  const choices: [JsonObject, JsonObject][] = [
    [
      { tools, tool_choice: { type: 'auto', disable_parallel_tool_use: true } },
      { tool_choice: 'auto', parallel_tool_calls: false },
    ],
    [{ tools, tool_choice: { type: 'none' } }, { tool_choice: 'none' }],
    [{ tools, tool_choice: { type: 'any' } }, { tool_choice: 'required' }],
    [
      { tools, tool_choice: { type: 'tool', name: 'f' } },
      { tool_choice: { type: 'function', function: { name: 'f' } } },
    ],
  ]
  it.each(choices)('with %j translates the tool choice to %j', (fields, expected) => {
    expect(translated(fields)).toMatchObject(expected)
  })

  it('never throws for arbitrary fields', () => {
    const names = fc.constantFrom(
      'messages',
      'system',
      'tools',
      'tool_choice',
      'thinking',
      'output_config',
      'metadata',
    )
    fc.assert(
      fc.property(fc.dictionary(names, fc.jsonValue()), (fields) => {
        expect(['body', 'unsupported']).toContain(messagesToChat.request(fields as JsonObject).kind)
      }),
    )
  })
})

describe('a chat completion for a messages client', () => {
  function reply(message: JsonObject, finishReason: JsonValue = 'stop'): JsonObject {
    return messagesToChat.reply(
      { id: 'chatcmpl-1', choices: [{ message, finish_reason: finishReason }] },
      context,
    )
  }
  const toolCall = (text: JsonValue): JsonObject => ({ id: 'a', function: { name: 'f', arguments: text } })

  const reasons: [JsonValue, string][] = [
    ['stop', 'end_turn'],
    ['length', 'max_tokens'],
    ['content_filter', 'refusal'],
    [null, 'end_turn'],
  ]
  it.each(reasons)('with finish reason %j stops with %s', (finishReason, stopReason) => {
    expect(reply({ content: 'a' }, finishReason).stop_reason).toBe(stopReason)
  })

  it.each(['stop', 'tool_calls', 'function_call'])(
    'with tool calls stops to use them, also if it says %s',
    (finishReason) => {
      expect(reply({ tool_calls: [toolCall('{}')] }, finishReason).stop_reason).toBe('tool_use')
    },
  )

  it.each([[''], [null], [{}]])('treats %j as empty arguments', (text) => {
    expect(reply({ tool_calls: [toolCall(text)] }).content).toMatchObject([{ type: 'tool_use', input: {} }])
  })

  it('removes a call that the length limit truncated', () => {
    const cut = reply({ content: 'a', tool_calls: [toolCall('{}'), toolCall('{"x":')] }, 'length')
    expect(cut).toMatchObject({
      stop_reason: 'max_tokens',
      content: [{ type: 'text' }, { type: 'tool_use', input: {} }],
    })
    expect(cut.content).toHaveLength(2)
  })

  it('generates a missing tool call id', () => {
    expect(reply({ tool_calls: [{ id: '', function: { name: 'f' } }] }).content).toMatchObject([
      { id: 'toolu_1_0' },
    ])
  })

  it('joins text parts', () => {
    expect(
      reply({
        content: [
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b' },
        ],
      }).content,
    ).toMatchObject([{ text: 'ab' }])
  })

  it('separates cached, written and uncached input', () => {
    const usage = {
      prompt_tokens: 100,
      completion_tokens: 5,
      prompt_tokens_details: { cached_tokens: 60, cache_write_tokens: 30 },
    }
    const completion = { choices: [{ message: { content: 'a' }, finish_reason: 'stop' }], usage }
    expect(messagesToChat.reply(completion, context)).toMatchObject({
      usage: {
        input_tokens: 10,
        cache_read_input_tokens: 60,
        cache_creation_input_tokens: 30,
        output_tokens: 5,
      },
    })
  })

  const garbage: [string, JsonObject][] = [
    ['an empty object', {}],
    ['an error', { error: { message: 'no' } }],
    ['no choices', { choices: [] }],
    ['a choice without a message', { choices: [{}] }],
    ['tool calls that are no list', { choices: [{ message: { tool_calls: 1 } }] }],
    ['a tool call without a name', { choices: [{ message: { tool_calls: [{ function: {} }] } }] }],
    [
      'arguments that are no JSON',
      { choices: [{ message: { tool_calls: [toolCall('{"x":')] }, finish_reason: 'tool_calls' }] },
    ],
    [
      'arguments that no length limit can have cut',
      {
        choices: [{ message: { tool_calls: [toolCall('{"x":'), toolCall('{}')] }, finish_reason: 'length' }],
      },
    ],
    [
      'arguments that are no object',
      { choices: [{ message: { tool_calls: [toolCall('5')] }, finish_reason: 'stop' }] },
    ],
  ]
  it.each(garbage)('is rejected for %s', (_, body) => {
    expect(() => messagesToChat.reply(body, context)).toThrow(
      expect.objectContaining({ code: 'upstream_invalid' }),
    )
  })
})

describe('an error of a chat server for a messages client', () => {
  const bodies: [string, string][] = [
    [
      '{"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}}',
      'Rate limit reached',
    ],
    ['{"error":"model not loaded"}', 'model not loaded'],
    ['{"object":"error","message":"too long","type":"BadRequestError"}', 'too long'],
    ['{"detail":"Not authenticated"}', 'Not authenticated'],
    ['<html>429</html>', 'the upstream answered with status 429'],
  ]
  it.each(bodies)('reads %s', (body, message) => {
    expect(messagesToChat.error(429, body)).toEqual({
      type: 'error',
      error: { type: 'rate_limit_error', message },
    })
  })

  it('is limited in length', () => {
    const { error } = messagesToChat.error(400, JSON.stringify({ error: { message: 'x'.repeat(1_000_000) } }))
    expect(JSON.stringify(error).length).toBeLessThan(5000)
  })
})

describe('a chat stream for a messages client', () => {
  const event = (data: JsonObject) => ({ data: JSON.stringify(data) })
  const chunk = (delta: JsonObject, finishReason: string | null = null) =>
    event({ id: 'chatcmpl-1', choices: [{ index: 0, delta, finish_reason: finishReason }] })
  const toolChunk = (call: JsonObject) => chunk({ tool_calls: [call] })
  const done = { data: '[DONE]' }

  it('ends at [DONE] only', () => {
    const stream = messagesToChat.stream(context)
    stream.event(chunk({ content: 'a' }, 'stop'))
    expect(stream.state).toBe('open')
    stream.event(done)
    expect(stream.state).toBe('ended')
    expect(stream.end().map(({ event: name }) => name)).toEqual([
      'content_block_stop',
      'message_delta',
      'message_stop',
    ])
    expect(stream.end()).toEqual([])
  })

  it('ends with an error for a truncated stream', () => {
    const stream = messagesToChat.stream(context)
    stream.event(chunk({ content: 'a' }, 'stop'))
    expect(stream.end().map(({ event: name }) => name)).toEqual(['error'])
  })

  it('is empty after an error of the upstream', () => {
    const stream = messagesToChat.stream(context)
    stream.event(chunk({ content: 'a' }))
    const [error] = stream.event(event({ error: { message: 'slow down', code: 'rate_limit_exceeded' } }))
    expect(error).toMatchObject({ event: 'error', data: expect.stringContaining('rate_limit_error') })
    expect(stream.state).toBe('failed')
    expect([...stream.event(done), ...stream.end()]).toEqual([])
  })

  it('writes the first tool call on arrival and the second after the first is complete', () => {
    const stream = messagesToChat.stream(context)
    stream.event(toolChunk({ index: 0, id: 'a', function: { name: 'f', arguments: '{"x":' } }))
    expect(stream.event(toolChunk({ index: 1, id: 'b', function: { name: 'g', arguments: '{' } }))).toEqual(
      [],
    )
    const events = stream.event(toolChunk({ index: 0, function: { arguments: '1}' } }))
    expect(events.map(({ event: name }) => name)).toEqual([
      ...['content_block_delta', 'content_block_stop', 'content_block_start', 'content_block_delta'],
    ])
    expect(stream.event(toolChunk({ index: 1, function: { arguments: '}' } }))).toHaveLength(1)
  })

  it('separates calls with equal or missing indexes', () => {
    for (const index of [{ index: 0 }, {}]) {
      const stream = messagesToChat.stream(context)
      const events = [
        ...stream.event(toolChunk({ ...index, id: 'a', function: { name: 'f', arguments: '{}' } })),
        ...stream.event(toolChunk({ ...index, id: 'b', function: { name: 'f', arguments: '{}' } })),
      ]
      expect(events.filter(({ event: name }) => name === 'content_block_start')).toHaveLength(2)
    }
  })

  it('assigns a fragment without an index to the previous call', () => {
    const stream = messagesToChat.stream(context)
    stream.event(toolChunk({ index: 1, id: 'a', function: { name: 'f', arguments: '{' } }))
    expect(stream.event(toolChunk({ function: { arguments: '}' } }))).toMatchObject([
      { event: 'content_block_delta' },
    ])
  })

  it('merges fragments that repeat id and name', () => {
    const stream = messagesToChat.stream(context)
    stream.event(toolChunk({ index: 0, id: 'a', function: { name: 'f', arguments: '{' } }))
    const events = stream.event(toolChunk({ index: 0, id: 'a', function: { name: 'f', arguments: '}' } }))
    expect(events.map(({ event: name }) => name)).toEqual(['content_block_delta'])
  })

  it('limits the buffer of interleaved calls', () => {
    const stream = messagesToChat.stream(context)
    stream.event(toolChunk({ index: 0, id: 'a', function: { name: 'f', arguments: '{' } }))
    stream.event(toolChunk({ index: 1, id: 'b', function: { name: 'g', arguments: '' } }))
    const fragment = 'x'.repeat(1024 * 1024)
    expect(() => {
      for (let count = 0; count < 9; count += 1)
        stream.event(toolChunk({ index: 1, function: { arguments: fragment } }))
    }).toThrow(expect.objectContaining({ code: 'upstream_too_large' }))
  })

  it('has a limited number of blocks, and short ids', () => {
    const stream = messagesToChat.stream(context)
    const calls = Array.from({ length: 1100 }, (_, index) => ({
      index,
      id: `c${index}`,
      function: { name: 'f' },
    }))
    expect(() => {
      for (const call of calls) stream.event(toolChunk(call))
    }).toThrow(expect.objectContaining({ code: 'upstream_too_large' }))
    const long = 'x'.repeat(1000)
    const events = messagesToChat
      .stream(context)
      .event({ data: JSON.stringify({ id: long, model: long, choices: [{ delta: { content: 'a' } }] }) })
    expect(JSON.stringify(events)).not.toContain(long)
    const withState = `call__state__${'x'.repeat(2_000)}`
    const called = messagesToChat
      .stream(context)
      .event(toolChunk({ index: 0, id: withState, function: { name: 'f', arguments: '{}' } }))
    expect(JSON.stringify(called)).toContain(withState)
    const refusing = messagesToChat.stream(context)
    const refusal = { data: JSON.stringify({ choices: [{ delta: { refusal: 'x'.repeat(1024 * 1024) } }] }) }
    expect(() => {
      for (let count = 0; count < 5; count += 1) refusing.event(refusal)
    }).toThrow(expect.objectContaining({ code: 'upstream_too_large' }))
  })

  it('releases written fragments from the limit', () => {
    const stream = messagesToChat.stream(context)
    const long = `{"x":"${'x'.repeat(5 * 1024 * 1024)}`
    stream.event(toolChunk({ index: 0, id: 'a', function: { name: 'f', arguments: '{' } }))
    stream.event(toolChunk({ index: 1, id: 'b', function: { name: 'f', arguments: long } }))
    stream.event(toolChunk({ index: 0, function: { arguments: '}' } }))
    const events = stream.event(toolChunk({ index: 2, id: 'c', function: { name: 'f', arguments: long } }))
    expect(events).toEqual([])
  })

  const garbage: [string, { data: string }[]][] = [
    ['no JSON object', [{ data: 'text' }]],
    ['an end before its reason', [chunk({ content: 'a' }), done]],
    ['a choice that is none', [event({ choices: [1] })]],
    ['tool calls that are no list', [chunk({ tool_calls: 1 })]],
    ['a tool call that is none', [chunk({ tool_calls: [1] })]],
    ['arguments before a name', [toolChunk({ index: 0, id: 'a', function: { arguments: '{' } })]],
    [
      'arguments after a later call began',
      [
        toolChunk({ index: 0, id: 'a', function: { name: 'f', arguments: '{}' } }),
        toolChunk({ index: 1, id: 'b', function: { name: 'f', arguments: '{}' } }),
        toolChunk({ index: 0, function: { arguments: '{}' } }),
      ],
    ],
  ]
  it.each(garbage)('fails as invalid for %s', (_, events) => {
    const stream = messagesToChat.stream(context)
    expect(() => {
      for (const given of events) stream.event(given)
    }).toThrow(expect.objectContaining({ code: 'upstream_invalid' }))
  })

  it('throws only GatewayError for arbitrary input', () => {
    const call = fc.record({
      index: fc.jsonValue(),
      id: fc.jsonValue(),
      function: fc.oneof(fc.jsonValue(), fc.record({ name: fc.jsonValue(), arguments: fc.jsonValue() })),
    })
    const delta = fc.record({
      content: fc.jsonValue(),
      tool_calls: fc.oneof(fc.jsonValue(), fc.array(call)),
      refusal: fc.jsonValue(),
    })
    const any = fc.record({
      id: fc.jsonValue(),
      choices: fc.oneof(fc.jsonValue(), fc.array(fc.record({ delta, finish_reason: fc.jsonValue() }))),
      usage: fc.jsonValue(),
    })
    fc.assert(
      fc.property(fc.array(any), (chunks) => {
        const stream = messagesToChat.stream(context)
        try {
          for (const data of chunks) stream.event({ data: JSON.stringify(data) })
          stream.event(done)
          stream.end()
        } catch (error) {
          expect(error).toBeInstanceOf(GatewayError)
        }
      }),
    )
  })
})
