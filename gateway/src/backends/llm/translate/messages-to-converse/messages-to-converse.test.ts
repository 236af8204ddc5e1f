import { describe, expect, it } from 'vitest'
import type { JsonObject, JsonValue } from '../../../../lib/json/json.ts'
import type { SseEvent } from '../../../../net/http/sse.ts'
import { chatToConverse } from '../chat-to-converse.ts'
import { countTokensToBedrock } from '../count-tokens-to-bedrock.ts'
import type { TranslationContext } from '../translate.ts'
import { messagesToConverse } from './messages-to-converse.ts'

const context: TranslationContext = { requestModel: 'nova', now: () => 36, includeUsage: true }
const user = (content: JsonValue): JsonObject => ({ role: 'user', content })

function translated(body: JsonObject): JsonObject {
  const result = messagesToConverse.request({ model: 'm', max_tokens: 9, messages: [user('Hi')], ...body })
  if (result.kind === 'unsupported') throw new Error(result.message)
  return result.body
}

function refused(body: JsonObject): string {
  const result = messagesToConverse.request({ model: 'm', max_tokens: 9, messages: [user('Hi')], ...body })
  return result.kind === 'unsupported' ? result.message : 'translated'
}

const contentOf = (blocks: JsonValue) =>
  (translated({ messages: [user(blocks)] }).messages as JsonObject[])[0]?.content

describe('a request', () => {
  it('has the number of candidates where Nova reads it', () => {
    expect(translated({ model: 'eu.amazon.nova-pro-v1:0', top_k: 5 }).additionalModelRequestFields).toEqual({
      inferenceConfig: { topK: 5 },
    })
  })

  it('has search results and documents of texts, also as results of tools', () => {
    const texts = [{ type: 'text', text: 'one', cache_control: { type: 'ephemeral' } }]
    const found = {
      type: 'search_result',
      source: 's',
      title: 't',
      content: texts,
      citations: { enabled: true },
    }
    const searchResult = { source: 's', title: 't', content: [{ text: 'one' }], citations: { enabled: true } }
    expect(contentOf([found])).toEqual([{ searchResult }])
    expect(contentOf([{ type: 'tool_result', tool_use_id: 'c', content: [found] }])).toEqual([
      { toolResult: { toolUseId: 'c', content: [{ searchResult }] } },
    ])
    const document = { type: 'document', title: 'd', source: { type: 'content', content: texts } }
    expect(contentOf([document])).toEqual([
      { document: { format: 'txt', name: 'd', source: { content: [{ text: 'one' }] } } },
    ])
    expect(refused({ messages: [user([{ ...found, source: 7 }])] })).toContain('must be a string')
  })

  it('has settings, system prompt and cache marks in their places', () => {
    const mark = { type: 'ephemeral', ttl: '1h' }
    expect(
      translated({
        system: [{ type: 'text', text: 'Be brief.', cache_control: mark }],
        temperature: 0.5,
        top_p: 0.9,
        top_k: 5,
        stop_sequences: ['END'],
        stream: true,
        metadata: { user_id: 'ada' },
        service_tier: 'standard_only',
        thinking: { type: 'enabled', budget_tokens: 2048 },
        tools: [
          {
            name: 'f',
            description: 'd',
            input_schema: { type: 'object' },
            strict: true,
            cache_control: mark,
          },
        ],
        tool_choice: { type: 'any' },
        output_config: { effort: 'low', format: { type: 'json_schema', schema: { type: 'object' } } },
      }),
    ).toEqual({
      messages: [{ role: 'user', content: [{ text: 'Hi' }] }],
      system: [{ text: 'Be brief.' }, { cachePoint: { type: 'default', ttl: '1h' } }],
      inferenceConfig: { maxTokens: 9, temperature: 0.5, topP: 0.9, stopSequences: ['END'] },
      toolConfig: {
        tools: [
          {
            toolSpec: {
              name: 'f',
              description: 'd',
              inputSchema: { json: { type: 'object' } },
              strict: true,
            },
          },
          { cachePoint: { type: 'default', ttl: '1h' } },
        ],
        toolChoice: { any: {} },
      },
      outputConfig: {
        effort: 'low',
        textFormat: {
          type: 'json_schema',
          structure: { jsonSchema: { schema: '{"type":"object"}', name: 'answer' } },
        },
      },
      additionalModelRequestFields: { top_k: 5, thinking: { type: 'enabled', budget_tokens: 2048 } },
      serviceTier: { type: 'default' },
    })
  })

  it('has images and documents inline, with different names', () => {
    const pdf = { type: 'base64', media_type: 'application/pdf', data: 'cGRm' }
    expect(
      contentOf([
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'cG5n' } },
        { type: 'document', title: 'Q3/report.pdf', source: pdf, context: 'c', citations: { enabled: true } },
        { type: 'document', title: 'Q3/report.pdf', source: pdf },
        { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'plain' } },
      ]),
    ).toEqual([
      { image: { format: 'png', source: { bytes: 'cG5n' } } },
      {
        document: {
          ...{ format: 'pdf', name: 'Q3-report-pdf', source: { bytes: 'cGRm' } },
          ...{ context: 'c', citations: { enabled: true } },
        },
      },
      { document: { format: 'pdf', name: 'Q3-report-pdf (2)', source: { bytes: 'cGRm' } } },
      { document: { format: 'txt', name: 'document', source: { text: 'plain' } } },
    ])
  })

  it('has tool calls, results and signed thinking; roles alternate', () => {
    const messages = [
      user('Hi'),
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'signed', signature: 's' },
          { type: 'thinking', thinking: 'of another model', signature: '' },
          { type: 'redacted_thinking', data: 'r' },
          { type: 'text', text: '' },
          { type: 'tool_use', id: '1', name: 'f', input: { a: 1 } },
          { type: 'tool_use', id: '2', name: 'g', input: {} },
        ],
      },
      user([{ type: 'tool_result', tool_use_id: '1', content: 'ok' }]),
      user([
        { type: 'tool_result', tool_use_id: '2', is_error: true },
        { type: 'text', text: 'Go on' },
      ]),
    ]
    const { messages: turns, toolConfig } = translated({ messages })
    expect(turns).toEqual([
      { role: 'user', content: [{ text: 'Hi' }] },
      {
        role: 'assistant',
        content: [
          { reasoningContent: { reasoningText: { text: 'signed', signature: 's' } } },
          { reasoningContent: { redactedContent: 'r' } },
          { toolUse: { toolUseId: '1', name: 'f', input: { a: 1 } } },
          { toolUse: { toolUseId: '2', name: 'g', input: {} } },
        ],
      },
      {
        role: 'user',
        content: [
          { toolResult: { toolUseId: '1', content: [{ text: 'ok' }] } },
          { toolResult: { toolUseId: '2', content: [{ text: '(empty)' }], status: 'error' } },
          { text: 'Go on' },
        ],
      },
    ])
    // The service requires the definitions of called tools.
    expect(toolConfig).toEqual({
      tools: ['f', 'g'].map((name) => ({ toolSpec: { name, inputSchema: { json: { type: 'object' } } } })),
    })
  })

  it('without use of tools has no tools for tool_choice none', () => {
    const tools = [{ name: 'f', input_schema: {} }]
    expect(translated({ tools, tool_choice: { type: 'none' } }).toolConfig).toBeUndefined()
  })

  it.each<[JsonObject, string]>([
    [{ mcp_servers: [] }, 'mcp_servers: cannot be translated for the Converse API'],
    [{ messages: 'x' }, 'messages: must be a list'],
    [{ messages: [{ role: 'system', content: 'x' }] }, 'messages[0].role: must be user or assistant'],
    [{ messages: [user([{ type: 'image', source: { type: 'url', url: 'https://x' } }])] }, 'fetches no URLs'],
    [{ messages: [user([{ type: 'document', source: { type: 'file', file_id: 'x' } }])] }, 'fetches no URLs'],
    [{ messages: [user([{ type: 'server_tool_use' }])] }, 'blocks of type "server_tool_use"'],
    [{ tools: [{ type: 'web_search_20250305', name: 'w' }] }, 'exist in the messages API only'],
    [
      {
        tool_choice: { type: 'auto', disable_parallel_tool_use: true },
        tools: [{ name: 'f', input_schema: {} }],
      },
      'cannot forbid parallel calls',
    ],
    [{ output_config: { format: { type: 'text' } } }, 'output_config.format: must be'],
    [{ stop_sequences: 'x' }, 'stop_sequences: must be a list'],
  ])('%j is refused', (body, message) => {
    expect(refused(body)).toContain(message)
  })

  it.each([
    [{ type: 'any', disable_parallel_tool_use: true }, { any: {} }],
    [{ type: 'tool', name: 'f', disable_parallel_tool_use: true }, { tool: { name: 'f' } }],
  ])('may demand the call of one tool: %j', (choice, expected) => {
    const tools = [{ name: 'f', input_schema: {} }]
    expect(translated({ tools, tool_choice: choice }).toolConfig).toMatchObject({ toolChoice: expected })
  })

  it('of chat completions has a limit only if the client has one', () => {
    const request = (more: JsonObject) =>
      chatToConverse.request({ model: 'm', messages: [user('Hi')], ...more })
    expect(request({})).toEqual({
      kind: 'body',
      body: { messages: [{ role: 'user', content: [{ text: 'Hi' }] }] },
    })
    expect(request({ temperature: 0.1 })).toMatchObject({ body: { inferenceConfig: { temperature: 0.1 } } })
    expect(request({ max_tokens: 5 })).toMatchObject({ body: { inferenceConfig: { maxTokens: 5 } } })
    expect(request({ logprobs: true })).toMatchObject({ kind: 'unsupported', param: 'logprobs' })
  })

  it('of token counting has the conversation only', () => {
    const body = { model: 'm', system: 's', messages: [user('Hi')], thinking: { type: 'enabled' } }
    expect(countTokensToBedrock.request(body)).toEqual({
      kind: 'body',
      body: {
        input: {
          converse: { messages: [{ role: 'user', content: [{ text: 'Hi' }] }], system: [{ text: 's' }] },
        },
      },
    })
    expect(countTokensToBedrock.reply({ inputTokens: 7 }, context)).toEqual({ input_tokens: 7 })
    expect(() => countTokensToBedrock.reply({}, context)).toThrow('no token count')
  })
})

const usage = {
  inputTokens: 5,
  outputTokens: 2,
  totalTokens: 17,
  cacheReadInputTokens: 7,
  cacheWriteInputTokens: 3,
}

describe('a response', () => {
  const reply = (content: JsonValue, stopReason = 'end_turn') =>
    messagesToConverse.reply(
      { output: { message: { role: 'assistant', content } }, stopReason, usage },
      context,
    )

  it('has content, usage and stop reason', () => {
    expect(
      reply(
        [
          { reasoningContent: { reasoningText: { text: 't', signature: 's' } } },
          { reasoningContent: { redactedContent: 'r' } },
          { text: 'Hello' },
          { citationsContent: { content: [{ text: 'cited' }], citations: [] } },
          { toolUse: { toolUseId: '1', name: 'f', input: { a: 1 } } },
        ],
        'tool_use',
      ),
    ).toEqual({
      id: 'msg_bdrk_10',
      type: 'message',
      role: 'assistant',
      model: 'nova',
      content: [
        { type: 'thinking', thinking: 't', signature: 's' },
        { type: 'redacted_thinking', data: 'r' },
        { type: 'text', text: 'Hello' },
        { type: 'text', text: 'cited' },
        { type: 'tool_use', id: '1', name: 'f', input: { a: 1 } },
      ],
      stop_reason: 'tool_use',
      stop_sequence: null,
      usage: {
        input_tokens: 5,
        cache_creation_input_tokens: 3,
        cache_read_input_tokens: 7,
        output_tokens: 2,
        output_tokens_details: { thinking_tokens: 0 },
      },
    })
  })

  it.each([
    ['max_tokens', 'max_tokens'],
    ['stop_sequence', 'stop_sequence'],
    ['model_context_window_exceeded', 'model_context_window_exceeded'],
    ['malformed_tool_use', 'max_tokens'],
    ['guardrail_intervened', 'refusal'],
    ['content_filtered', 'refusal'],
  ])('with stop reason %s has %s', (reason, expected) => {
    expect(reply([{ text: 'x' }], reason).stop_reason).toBe(expected)
  })

  it.each<[JsonValue]>([['x'], [[{ video: {} }]], [[1]]])('with content %j is refused', (content) => {
    expect(() => reply(content)).toThrow("the upstream's answer cannot be read")
  })
})

type Event = [name: string, data: JsonObject]

function streamed(events: Event[], translation = messagesToConverse): SseEvent[] {
  const translator = translation.stream(context)
  const out = events.flatMap(([event, data]) => translator.event({ event, data: JSON.stringify(data) }))
  return [...out, ...translator.end()]
}

const delta = (contentBlockIndex: number, change: JsonObject): Event => [
  'contentBlockDelta',
  { contentBlockIndex, delta: change },
]
const stop = (contentBlockIndex: number): Event => ['contentBlockStop', { contentBlockIndex }]
const ending = (stopReason: string): Event[] => [
  ['messageStop', { stopReason }],
  ['metadata', { usage, metrics: { latencyMs: 1 } }],
]
const dataOf = (events: SseEvent[]) => events.map(({ data }) => JSON.parse(data))

describe('a stream', () => {
  it('has thinking with its signature, text and tool calls', () => {
    const events = dataOf(
      streamed([
        ['messageStart', { role: 'assistant' }],
        delta(0, { reasoningContent: { text: 'hm' } }),
        delta(0, { reasoningContent: { signature: 's' } }),
        stop(0),
        delta(1, { reasoningContent: { redactedContent: 'r' } }),
        stop(1),
        delta(2, { text: 'Hel' }),
        delta(2, { text: 'lo' }),
        stop(2),
        ['contentBlockStart', { contentBlockIndex: 3, start: { toolUse: { toolUseId: '1', name: 'f' } } }],
        delta(3, { toolUse: { input: '{"a":' } }),
        delta(3, { toolUse: { input: '1}' } }),
        stop(3),
        ['contentBlockStart', { contentBlockIndex: 4, start: { toolUse: { toolUseId: '2', name: 'g' } } }],
        stop(4),
        ...ending('tool_use'),
      ]),
    )
    expect(
      events.map(({ type, index, delta, content_block: block }) =>
        [type, index, delta?.type ?? block?.type].filter((part) => part !== undefined).join(' '),
      ),
    ).toEqual([
      'message_start',
      'content_block_start 0 thinking',
      'content_block_delta 0 thinking_delta',
      'content_block_delta 0 signature_delta',
      'content_block_stop 0',
      'content_block_start 1 redacted_thinking',
      'content_block_stop 1',
      'content_block_start 2 text',
      'content_block_delta 2 text_delta',
      'content_block_delta 2 text_delta',
      'content_block_stop 2',
      'content_block_start 3 tool_use',
      'content_block_delta 3 input_json_delta',
      'content_block_delta 3 input_json_delta',
      'content_block_stop 3',
      'content_block_start 4 tool_use',
      'content_block_stop 4',
      'message_delta',
      'message_stop',
    ])
    expect(events.at(-2)).toMatchObject({
      delta: { stop_reason: 'tool_use' },
      usage: { input_tokens: 5, cache_read_input_tokens: 7, output_tokens: 2 },
    })
  })

  it('closes a block that the service does not', () => {
    const events = dataOf(streamed([delta(0, { text: 'a' }), delta(1, { text: 'b' }), ...ending('end_turn')]))
    expect(events.filter(({ type }) => type === 'content_block_stop')).toHaveLength(2)
  })

  it('ends with an error after an exception', () => {
    const events = streamed([
      delta(0, { text: 'a' }),
      ['exception', { type: 'throttlingException', message: 'Slow down.' }],
    ])
    expect(events.at(-1)).toEqual({
      event: 'error',
      data: JSON.stringify({
        type: 'error',
        error: {
          type: 'rate_limit_error',
          message:
            'Slow down: retry later, use an inference profile of several regions, or request a higher quota',
        },
      }),
    })
  })

  it('ends with an error if it is truncated, also of chat completions', () => {
    for (const events of [
      [delta(0, { text: 'a' })],
      [delta(0, { text: 'a' }), ['messageStop', { stopReason: 'x' }] as Event],
    ]) {
      expect(streamed(events).at(-1)?.event).toBe('error')
      expect(streamed(events, chatToConverse).at(-1)?.data).toContain('"error"')
    }
  })

  it.each<[string, Event[]]>([
    ['usage before the stop reason', [['metadata', { usage }]]],
    ['a tool call without a start', [delta(0, { toolUse: { input: '{}' } })]],
    ['a delta that is no object', [['contentBlockDelta', { delta: 1 }]]],
  ])('with %s is refused', (_, events) => {
    expect(() => streamed(events)).toThrow("the upstream's answer cannot be read")
  })
})

describe('an error', () => {
  it.each([
    [400, 'Invocation with on-demand throughput isn’t supported', 'inference profile, such as us.<model>'],
    [403, 'The security token included in the request is expired', "renew the gateway's keys"],
    [403, 'User is not authorized to perform', 'allow bedrock:InvokeModel'],
    [404, 'Could not resolve', 'check the id of the model'],
    [429, 'Too many tokens', 'retry later'],
  ])('of status %i has advice', (status, message, advice) => {
    const text = JSON.stringify(messagesToConverse.error(status, JSON.stringify({ message })))
    expect(text).toContain(message)
    expect(text).toContain(advice)
  })

  it('of another status has the text of the service only', () => {
    expect(messagesToConverse.error(500, '{"Message":"Internal"}')).toEqual({
      type: 'error',
      error: { type: 'api_error', message: 'Internal' },
    })
  })
})
