import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { response, responseEvent } from '../../../../../test/support/vendor-schemas.ts'
import { GatewayError } from '../../../../lib/gateway-error.ts'
import type { JsonObject } from '../../../../lib/json/json.ts'
import type { SseEvent } from '../../../../net/http/sse.ts'
import type { TranslationContext } from '../translate.ts'
import { responsesToChat } from './responses-to-chat.ts'

const context: TranslationContext = {
  requestModel: 'asked',
  now: () => 1_700_000_000_123,
  includeUsage: true,
}

function translated(body: JsonObject): JsonObject {
  const result = responsesToChat.request({ model: 'm', ...body })
  if (result.kind === 'unsupported') throw new Error(result.message)
  return result.body
}

const messagesOf = (input: JsonObject[], more: JsonObject = {}) => translated({ input, ...more })['messages']

function refusalOf(body: JsonObject): string | undefined {
  const result = responsesToChat.request({ model: 'm', input: 'x', ...body })
  return result.kind === 'unsupported' ? result.message : undefined
}

describe('the input of a responses request', () => {
  it('is a user message if it is a text', () => {
    expect(translated({ input: 'hi', instructions: 'brief' })['messages']).toEqual([
      { role: 'system', content: 'brief' },
      { role: 'user', content: 'hi' },
    ])
  })

  it('contains messages of all roles, with or without type', () => {
    expect(
      messagesOf([
        { role: 'developer', content: 'a' },
        { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'b' }] },
        {
          type: 'message',
          role: 'assistant',
          id: 'msg_1',
          status: 'completed',
          content: [
            { type: 'output_text', text: 'c', annotations: [] },
            { type: 'refusal', refusal: 'd' },
          ],
        },
      ]),
    ).toEqual([
      { role: 'system', content: 'a' },
      { role: 'user', content: 'b' },
      { role: 'assistant', content: 'cd' },
    ])
  })

  it('contains images, files and audio', () => {
    const content = [
      { type: 'input_text', text: 'see' },
      { type: 'input_image', image_url: 'data:image/png;base64,AA', detail: 'low' },
      { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,AA' },
      { type: 'input_audio', input_audio: { data: 'AA', format: 'wav' } },
    ]
    expect(messagesOf([{ role: 'user', content }])).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'see' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AA', detail: 'low' } },
          { type: 'file', file: { file_data: 'data:application/pdf;base64,AA', filename: 'a.pdf' } },
          { type: 'input_audio', input_audio: { data: 'AA', format: 'wav' } },
        ],
      },
    ])
  })

  it('has all calls of a turn in one message, before their results', () => {
    const call = (id: string) => ({ type: 'function_call', call_id: id, name: 'f', arguments: '{"a":1}' })
    const result = (id: string, output: string) => ({ type: 'function_call_output', call_id: id, output })
    const made = (id: string) => ({ id, type: 'function', function: { name: 'f', arguments: '{"a":1}' } })
    expect(
      messagesOf([
        { type: 'reasoning', id: 'rs_1', summary: [] },
        { role: 'assistant', content: 'let me see' },
        call('1'),
        call('2'),
        result('1', 'x'),
        result('2', 'y'),
        call('3'),
        result('3', 'z'),
      ]),
    ).toEqual([
      { role: 'assistant', content: 'let me see', tool_calls: [made('1'), made('2')] },
      { role: 'tool', tool_call_id: '1', content: 'x' },
      { role: 'tool', tool_call_id: '2', content: 'y' },
      { role: 'assistant', content: null, tool_calls: [made('3')] },
      { role: 'tool', tool_call_id: '3', content: 'z' },
    ])
  })

  it('has images of results in a message after all results', () => {
    const image = { type: 'input_image', image_url: 'https://i.test/a.png' }
    expect(
      messagesOf([
        { type: 'function_call_output', call_id: '1', output: [{ type: 'input_text', text: 'x' }, image] },
        { type: 'function_call_output', call_id: '2', output: 'y' },
      ]),
    ).toEqual([
      { role: 'tool', tool_call_id: '1', content: 'x' },
      { role: 'tool', tool_call_id: '2', content: 'y' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Attachments of the result of tool call 1:' },
          { type: 'image_url', image_url: { url: 'https://i.test/a.png' } },
        ],
      },
    ])
  })
})

describe('the settings of a responses request', () => {
  it('become those of chat', () => {
    const parameters = { type: 'object', properties: {} }
    const format = { type: 'json_schema', name: 'answer', schema: parameters, strict: true }
    expect(
      translated({
        input: 'x',
        stream: true,
        temperature: 0.5,
        top_p: 0.9,
        max_output_tokens: 7,
        reasoning: { effort: 'low', summary: 'auto' },
        text: { format, verbosity: 'low' },
        tools: [{ type: 'function', name: 'f', description: 'd', parameters, strict: true }],
        tool_choice: { type: 'function', name: 'f' },
        parallel_tool_calls: false,
        user: 'u',
        include: ['message.output_text.logprobs', 'reasoning.encrypted_content'],
        top_logprobs: 2,
        store: false,
        metadata: { a: 'b' },
        truncation: 'auto',
        prompt_cache_key: 'k',
      }),
    ).toEqual({
      model: 'm',
      messages: [{ role: 'user', content: 'x' }],
      stream: true,
      stream_options: { include_usage: true },
      temperature: 0.5,
      top_p: 0.9,
      max_tokens: 7,
      reasoning_effort: 'low',
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'answer', schema: parameters, strict: true },
      },
      verbosity: 'low',
      tools: [{ type: 'function', function: { name: 'f', description: 'd', parameters, strict: true } }],
      tool_choice: { type: 'function', function: { name: 'f' } },
      parallel_tool_calls: false,
      user: 'u',
      logprobs: true,
      top_logprobs: 2,
    })
  })

  it.each<[JsonObject, string]>([
    [{ previous_response_id: 'resp_1' }, 'previous_response_id: the provider stores no responses'],
    [{ conversation: 'conv_1' }, 'conversation: the provider stores no responses'],
    [{ background: true }, 'background: must be false'],
    [{ prompt: { id: 'p' } }, 'prompt: the provider stores no prompts'],
    [{ tools: [{ type: 'web_search' }] }, 'tools[0].type: tools of type "web_search" exist at OpenAI only'],
    [{ tools: [{ type: 'function', name: 'f' }], tool_choice: { type: 'mcp' } }, 'tool_choice: must be'],
    [{ input: [{ type: 'item_reference', id: 'x' }] }, 'input[0].id: the provider stores no items'],
    [{ input: [{ type: 'web_search_call' }] }, 'input[0].type: items of type "web_search_call"'],
    [
      { input: [{ role: 'user', content: [{ type: 'input_image', file_id: 'f' }] }] },
      'input[0].content[0].file_id',
    ],
    [{ input: 5 }, 'input: must be a string or a list of items'],
    [{ unknown_field: 1 }, 'unknown_field: cannot be translated for chat completions'],
    [{ text: { format: { type: 'grammar' } } }, 'text.format.type: must be text, json_object or json_schema'],
  ])('are refused: %j', (body, message) => {
    expect(refusalOf(body)).toContain(message)
  })

  it.each<JsonObject>([
    { previous_response_id: null },
    { background: false },
    { tools: [] },
    { truncation: 'disabled' },
  ])('pass without effect: %j', (body) => {
    expect(translated({ input: 'x', ...body })).toEqual({
      model: 'm',
      messages: [{ role: 'user', content: 'x' }],
    })
  })
})

const usage = {
  prompt_tokens: 10,
  completion_tokens: 5,
  total_tokens: 15,
  prompt_tokens_details: { cached_tokens: 4 },
  completion_tokens_details: { reasoning_tokens: 2 },
}

const call = (id: string, args: string) => ({
  id,
  type: 'function',
  function: { name: 'f', arguments: args },
})

function completion(message: JsonObject, finish_reason = 'stop'): JsonObject {
  return {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    model: 'real',
    choices: [{ index: 0, message: { role: 'assistant', content: null, ...message }, finish_reason }],
    usage,
  }
}

function expectSchema(value: unknown, schema: typeof response | typeof responseEvent = response): void {
  const { error } = schema.safeParse(value)
  expect(error && `${error.message} in ${JSON.stringify(value)}`).toBeUndefined()
}

describe('a response', () => {
  it('has text, calls, reasoning and usage of the completion', () => {
    const message = {
      content: 'hi',
      reasoning_content: 'hm',
      tool_calls: [call('c1', '{"a":1}'), call('c2', '')],
    }
    const reply = responsesToChat.reply(completion(message, 'tool_calls'), context)
    expectSchema(reply)
    expect(reply).toMatchObject({
      id: 'resp_1',
      object: 'response',
      model: 'real',
      status: 'completed',
      created_at: 1_700_000_000,
      usage: {
        input_tokens: 10,
        input_tokens_details: { cached_tokens: 4 },
        output_tokens: 5,
        output_tokens_details: { reasoning_tokens: 2 },
        total_tokens: 15,
      },
      output: [
        { type: 'reasoning', summary: [], content: [{ type: 'reasoning_text', text: 'hm' }] },
        { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'hi' }] },
        { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{"a":1}' },
        { type: 'function_call', call_id: 'c2', name: 'f', arguments: '{}' },
      ],
    })
  })

  it('repeats the settings of its request, except long ones', () => {
    const request = { input: 'x', instructions: 'i'.repeat(40_000), temperature: 0.2, metadata: { a: 'b' } }
    const result = responsesToChat.request({ model: 'm', ...request })
    const settings = result.kind === 'body' ? result.settings : undefined
    const reply = responsesToChat.reply(completion({ content: 'x' }), { ...context, settings })
    expect(reply).toMatchObject({
      instructions: null,
      temperature: 0.2,
      metadata: { a: 'b' },
      tool_choice: 'auto',
    })
  })

  it.each([
    ['length', 'max_output_tokens'],
    ['content_filter', 'content_filter'],
  ])('is incomplete after %s', (finishReason, reason) => {
    const reply = responsesToChat.reply(completion({ content: 'x' }, finishReason), context)
    expect(reply).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason },
      output: [{ type: 'message', status: 'incomplete' }],
    })
  })

  it('has citations, log probabilities and refusals', () => {
    const citation = { title: 't', url: 'https://a.test', start_index: 0, end_index: 1 }
    const body = completion({
      content: 'x',
      refusal: 'no',
      annotations: [{ type: 'url_citation', url_citation: citation }],
    })
    const [choice] = body['choices'] as JsonObject[]
    const logprobs = [{ token: 'x', logprob: -1, bytes: [1], top_logprobs: [] }]
    const reply = responsesToChat.reply(
      { ...body, choices: [{ ...choice, logprobs: { content: logprobs } }] },
      context,
    )
    expect(reply['output']).toMatchObject([
      {
        content: [
          { type: 'output_text', annotations: [{ type: 'url_citation', ...citation }], logprobs },
          { type: 'refusal', refusal: 'no' },
        ],
      },
    ])
  })

  it.each([{}, { choices: [] }, { choices: [{}] }, completion({ tool_calls: {} })])(
    'is not made of %j',
    (body) => {
      expect(() => responsesToChat.reply(body as JsonObject, context)).toThrow(GatewayError)
    },
  )
})

function streamOf(chunks: readonly unknown[], ending: 'done' | 'cut' = 'done'): JsonObject[] {
  const translator = responsesToChat.stream(context)
  const events: SseEvent[] = chunks.flatMap((chunk) => translator.event({ data: JSON.stringify(chunk) }))
  if (ending === 'done') events.push(...translator.event({ data: '[DONE]' }))
  events.push(...translator.end(), ...translator.end())
  return events.map(({ event, data }) => {
    const value = JSON.parse(data)
    expect(value.type).toBe(event)
    return value
  })
}

const chunk = (delta: object, finish_reason: string | null = null) => ({
  id: 'chatcmpl-1',
  model: 'real',
  choices: [{ index: 0, delta, finish_reason }],
})
const piece = (index: number, args: string, id?: string) => ({
  tool_calls: [
    { index, ...(id && { id, type: 'function' }), function: { ...(id && { name: 'f' }), arguments: args } },
  ],
})
const typesOf = (events: readonly JsonObject[]) =>
  events.map(({ type }) => String(type).replace('response.', ''))

describe('a streamed response', () => {
  const text = [
    chunk({ role: 'assistant', content: '' }),
    chunk({ content: 'He' }),
    chunk({ content: 'llo' }),
  ]

  it('has the events of a text', () => {
    const events = streamOf([...text, chunk({}, 'stop'), { choices: [], usage }])
    expect(typesOf(events)).toEqual([
      'created',
      'in_progress',
      'output_item.added',
      'content_part.added',
      'output_text.delta',
      'output_text.delta',
      'output_text.done',
      'content_part.done',
      'output_item.done',
      'completed',
    ])
    for (const event of events) expectSchema(event, responseEvent)
    expect(events.map(({ sequence_number: number }) => number)).toEqual(events.map((_, index) => index))
    expect(events.at(-1)?.['response']).toMatchObject({
      status: 'completed',
      output: [{ type: 'message', content: [{ text: 'Hello' }] }],
      usage: { input_tokens: 10, output_tokens: 5 },
    })
  })

  it('begins after the filter results of Azure', () => {
    const events = streamOf([
      { id: '', model: '', choices: [], prompt_filter_results: [] },
      ...text,
      chunk({}, 'stop'),
    ])
    expect(events[0]).toMatchObject({ response: { id: 'resp_1', model: 'real' } })
  })

  it('has interleaved calls, each complete', () => {
    const events = streamOf([
      chunk({ content: 'x' }),
      chunk(piece(0, '', 'c1')),
      chunk(piece(0, '{"a"')),
      chunk(piece(1, '{', 'c2')),
      chunk(piece(0, ':1}')),
      chunk(piece(1, '}')),
      chunk({}, 'tool_calls'),
    ])
    for (const event of events) expectSchema(event, responseEvent)
    expect(events.at(-1)?.['response']).toMatchObject({
      output: [
        { type: 'message' },
        { type: 'function_call', call_id: 'c1', arguments: '{"a":1}' },
        { type: 'function_call', call_id: 'c2', arguments: '{}' },
      ],
    })
  })

  it('has reasoning before the text', () => {
    const events = streamOf([
      chunk({ reasoning_content: 'h' }),
      chunk({ reasoning: 'm' }),
      ...text,
      chunk({}, 'stop'),
    ])
    expect(typesOf(events).slice(2, 9)).toEqual([
      'output_item.added',
      'content_part.added',
      'reasoning_text.delta',
      'reasoning_text.delta',
      'reasoning_text.done',
      'content_part.done',
      'output_item.done',
    ])
    expect(events.at(-1)?.['response']).toMatchObject({
      output: [{ type: 'reasoning', content: [{ text: 'hm' }] }, { type: 'message' }],
    })
  })

  it('has log probabilities', () => {
    const logprobs = [{ token: 'He', logprob: -1, bytes: [72, 101], top_logprobs: [] }]
    const [one] = chunk({ content: 'He' }).choices
    const events = streamOf([
      { id: '1', choices: [{ ...one, logprobs: { content: logprobs } }] },
      chunk({}, 'stop'),
    ])
    expect(events.find(({ type }) => type === 'response.output_text.delta')).toMatchObject({ logprobs })
    expect(events.at(-1)?.['response']).toMatchObject({ output: [{ content: [{ text: 'He', logprobs }] }] })
  })

  it('is incomplete after the length limit', () => {
    expect(typesOf(streamOf([...text, chunk({}, 'length')])).at(-1)).toBe('incomplete')
  })

  it.each([
    ['cut', text, 'cut' as const, 'upstream_reset'],
    [
      'error',
      [...text, { error: { message: 'overloaded', code: 'server_error' } }],
      'done' as const,
      'server_error',
    ],
  ])('ends with an error after %s', (_, chunks, ending, code) => {
    const events = streamOf(chunks, ending)
    expect(events.at(-1)).toMatchObject({ type: 'error', code, param: null })
    expect(typesOf(events)).not.toContain('completed')
  })

  it('is limited in length', () => {
    const translator = responsesToChat.stream(context)
    const data = JSON.stringify(chunk({ content: 'x'.repeat(1024 * 1024) }))
    expect(() => {
      for (let count = 0; count < 17; count += 1) translator.event({ data })
    }).toThrow('the response is longer than')
  })

  it('repeats no long id and no long model name', () => {
    const long = 'x'.repeat(100_000)
    const events = streamOf([
      { ...chunk({ content: 'a' }), id: long, model: long },
      chunk({ tool_calls: [{ index: 0, id: 'call_1', function: { name: 'f', arguments: '{}' } }] }),
      chunk({}, 'tool_calls'),
    ])
    expect(JSON.stringify(events).length).toBeLessThan(20_000)
    const message = { content: 'a', tool_calls: [{ id: 'call_1', function: { name: 'f' } }] }
    const whole = responsesToChat.reply({ id: long, choices: [{ message }] }, context)
    expect(JSON.stringify(whole).length).toBeLessThan(5_000)
  })

  it('has a limited number of items and parts, and limited names', () => {
    const manyCalls = Array.from({ length: 1100 }, (_, index) => ({ index, function: { name: 'f' } }))
    const kinds = (count: number) =>
      Array.from({ length: count }, (_, index) =>
        chunk(index % 2 === 0 ? { content: 'a' } : { refusal: 'b' }),
      )
    const tooLarge = expect.objectContaining({ code: 'upstream_too_large' })
    expect(() => streamOf([chunk({ tool_calls: manyCalls })])).toThrow(tooLarge)
    expect(() => streamOf(manyCalls.map((call) => chunk({ tool_calls: [call] })))).toThrow(tooLarge)
    expect(() => streamOf(kinds(1100))).toThrow(tooLarge)
    expect(() => streamOf([...kinds(1000), chunk({}, 'stop')])).not.toThrow()
    const named = { index: 0, function: { name: 'f'.repeat(129) } }
    expect(() => streamOf([chunk({ tool_calls: [named] })])).toThrow(/name of a tool is longer than 128/)
  })

  it('preserves ids of calls up to the limit of texts', () => {
    const call = (index: number, length: number) =>
      chunk({ tool_calls: [{ index, id: `${index}`.padEnd(length, 'x'), function: { name: 'f' } }] })
    const events = streamOf([call(0, 2_000), chunk({}, 'tool_calls')])
    expect(JSON.stringify(events.at(-1))).toContain(`0${'x'.repeat(1_999)}`)
    const many = Array.from({ length: 5 }, (_, index) => call(index, 1024 * 1024))
    expect(() => streamOf(many)).toThrow(expect.objectContaining({ code: 'upstream_too_large' }))
  })

  it('retains a limited amount of token probabilities', () => {
    const logprobs = { content: [{ token: 'a', logprob: 0, top_logprobs: ['x'.repeat(1024 * 1024)] }] }
    const data = JSON.stringify({ choices: [{ delta: { content: 'a' }, logprobs }] })
    const translator = responsesToChat.stream(context)
    expect(() => {
      for (let count = 0; count < 33; count += 1) translator.event({ data })
    }).toThrow('the token probabilities are longer than')
    const many = { content: Array.from({ length: 400_000 }, () => 0) }
    const other = responsesToChat.stream(context)
    expect(() =>
      other.event({ data: JSON.stringify({ choices: [{ delta: { content: 'a' }, logprobs: many }] }) }),
    ).not.toThrow()
  })

  it('throws only GatewayError for arbitrary input', () => {
    const delta = fc.record(
      {
        content: fc.jsonValue(),
        reasoning: fc.jsonValue(),
        refusal: fc.string(),
        tool_calls: fc.jsonValue(),
      },
      { requiredKeys: [] },
    )
    const any = fc.oneof(
      delta.map((value) => chunk(value)),
      fc.jsonValue(),
    )
    fc.assert(
      fc.property(fc.array(any), (chunks) => {
        try {
          streamOf(chunks)
        } catch (error) {
          expect(error).toBeInstanceOf(GatewayError)
        }
      }),
    )
  })

  it('has the output of the whole response for any fragments', () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('text' as const), text: fc.string({ minLength: 1 }) }),
      fc.record({ kind: fc.constant('call' as const), index: fc.nat(2), text: fc.string() }),
    )
    fc.assert(
      fc.property(fc.array(step), (steps) => {
        const begun = new Set<number>()
        const chunks = steps.map((one) => {
          if (one.kind === 'text') return chunk({ content: one.text })
          const id = begun.has(one.index) ? undefined : `c${one.index}`
          begun.add(one.index)
          return chunk(piece(one.index, one.text, id))
        })
        const events = streamOf([...chunks, chunk({}, 'stop')])
        for (const event of events) expectSchema(event, responseEvent)
        const last = events.at(-1)?.['response'] as {
          output: { type: string; call_id?: string; arguments?: string }[]
        }
        for (const index of begun) {
          const args = steps
            .flatMap((one) => (one.kind === 'call' && one.index === index ? [one.text] : []))
            .join('')
          const item = last.output.find(({ call_id: id }) => id === `c${index}`)
          expect(item?.arguments).toBe(args === '' ? '{}' : args)
        }
      }),
    )
  })
})
