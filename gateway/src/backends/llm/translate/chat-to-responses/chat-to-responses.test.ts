import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { chatChunk, chatCompletion } from '../../../../../test/support/vendor-schemas.ts'
import type { GatewayError } from '../../../../lib/gateway-error.ts'
import type { JsonObject } from '../../../../lib/json/json.ts'
import type { SseEvent } from '../../../../net/http/sse.ts'
import { responsesToChat } from '../responses-to-chat/responses-to-chat.ts'
import type { TranslationContext } from '../translate.ts'
import { chatToResponses } from './chat-to-responses.ts'

const context: TranslationContext = { requestModel: 'm', now: () => 1_700_000_000_000, includeUsage: true }
const hello: JsonObject = { role: 'user', content: 'Hello' }

function translated(fields: JsonObject): JsonObject {
  const result = chatToResponses.request({ model: 'm', messages: [hello], ...fields })
  if (result.kind !== 'body') throw new Error(result.message)
  return result.body
}

function refusedParam(fields: JsonObject): string | undefined {
  const result = chatToResponses.request({ model: 'm', messages: [hello], ...fields })
  return result.kind === 'unsupported' ? result.param : undefined
}

const part = (given: JsonObject): JsonObject => ({ messages: [{ role: 'user', content: [given] }] })
const call = (made: JsonObject): JsonObject => ({ messages: [{ role: 'assistant', tool_calls: [made] }] })

describe('a chat request for the Responses API', () => {
  const refused: [string, JsonObject][] = [
    ['n', { n: 2 }],
    ['stop', { stop: 'x' }],
    ['stop', { stop: ['x'] }],
    ['seed', { seed: 1 }],
    ['top_k', { top_k: 5 }],
    ['frequency_penalty', { frequency_penalty: 0.5 }],
    ['presence_penalty', { presence_penalty: -1 }],
    ['logit_bias', { logit_bias: { '50256': -100 } }],
    ['modalities', { modalities: ['text', 'audio'] }],
    ['audio', { audio: { voice: 'alloy', format: 'wav' } }],
    ['functions', { functions: [] }],
    ['function_call', { function_call: 'auto' }],
    ['invented', { invented: 1 }],
    ['response_format', { response_format: 'json' }],
    ['response_format.type', { response_format: { type: 'grammar' } }],
    ['response_format.json_schema', { response_format: { type: 'json_schema' } }],
    ['reasoning', { reasoning: 'high' }],
    ['web_search_options', { web_search_options: 'x' }],
    ['web_search_options.other', { web_search_options: { other: 1 } }],
    ['messages', { messages: 'Hello' }],
    ['messages[0]', { messages: ['Hello'] }],
    ['messages[0].role', { messages: [{ role: 'function', content: '' }] }],
    ['messages[0].content', { messages: [{ role: 'user' }] }],
    ['messages[0].content', { messages: [{ role: 'assistant', content: 5 }] }],
    ['messages[0].content[0].type', { messages: [{ role: 'assistant', content: [{ type: 'image_url' }] }] }],
    ['messages[0].audio', { messages: [{ role: 'assistant', audio: { id: 'a' } }] }],
    ['messages[0].tool_call_id', { messages: [{ role: 'tool', content: 'x' }] }],
    ['messages[0].content[0].type', part({ type: 'input_audio', input_audio: { data: '', format: 'wav' } })],
    ['messages[0].content[0].type', part({ type: 'video_url', video_url: { url: '' } })],
    ['messages[0].content[0].text', part({ type: 'text' })],
    ['messages[0].content[0].image_url.url', part({ type: 'image_url', image_url: 'x' })],
    ['messages[0].content[0].file', part({ type: 'file', file: { filename: 'a.pdf' } })],
    ['messages[0].content[0].file.other', part({ type: 'file', file: { file_id: 'f', other: 1 } })],
    ['messages[0].tool_calls', { messages: [{ role: 'assistant', tool_calls: 'x' }] }],
    ['messages[0].tool_calls[0]', { messages: [{ role: 'assistant', tool_calls: ['x'] }] }],
    ['messages[0].tool_calls[0].id', call({ type: 'function', function: { name: 'f', arguments: '{}' } })],
    ['messages[0].tool_calls[0].function', call({ id: 'c', type: 'function' })],
    [
      'messages[0].tool_calls[0].function.arguments',
      call({ id: 'c', type: 'function', function: { name: 'f', arguments: 1 } }),
    ],
    ['tools', { tools: 'x' }],
    ['tools[0]', { tools: ['x'] }],
    ['tools[0].type', { tools: [{ type: 'mcp' }] }],
    ['tools[0].function.name', { tools: [{ type: 'function', function: {} }] }],
    ['tools[0].function.other', { tools: [{ type: 'function', function: { name: 'f', other: 1 } }] }],
    ['tools[0].custom.name', { tools: [{ type: 'custom', custom: {} }] }],
    ['tool_choice', { tools: [{ type: 'function', function: { name: 'f' } }], tool_choice: 'any' }],
    [
      'tool_choice',
      {
        tools: [{ type: 'function', function: { name: 'f' } }],
        tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [{ type: 'mcp' }] } },
      },
    ],
  ]

  it.each(refused)('is refused for %s (%j)', (param, fields) => {
    expect(refusedParam(fields)).toBe(param)
  })

  it('is never stored', () => {
    expect(translated({ store: true })).toMatchObject({ store: false })
  })

  it('omits neutral values, and hints', () => {
    const neutral = { n: 1, stop: null, temperature: 1, top_p: 1, logprobs: false, logit_bias: {} }
    const body = translated({ ...neutral, prediction: { type: 'content', content: 'x' }, tools: [] })
    expect(Object.keys(body)).toEqual(['model', 'input', 'store'])
  })

  it('requests a summary with an effort, unless the client states otherwise', () => {
    const reasoning = (fields: JsonObject) => translated(fields).reasoning
    expect(reasoning({ reasoning_effort: 'high' })).toEqual({ effort: 'high', summary: 'auto' })
    expect(reasoning({ reasoning_effort: 'none' })).toEqual({ effort: 'none' })
    expect(reasoning({ reasoning_effort: 'low', reasoning: { summary: null } })).toEqual({ effort: 'low' })
    expect(reasoning({ reasoning: { summary: 'detailed' } })).toEqual({ summary: 'detailed' })
    expect(reasoning({})).toBeUndefined()
  })

  it('requests encrypted reasoning with a summary', () => {
    const include = (fields: JsonObject) => translated(fields).include
    const encrypted = 'reasoning.encrypted_content'
    expect(include({ reasoning_effort: 'high' })).toEqual([encrypted])
    const withLogprobs = { reasoning_effort: 'high', logprobs: true }
    expect(include(withLogprobs)).toEqual(['message.output_text.logprobs', encrypted])
    expect(include({ reasoning_effort: 'none' })).toBeUndefined()
    expect(include({})).toBeUndefined()
  })

  it('returns encrypted reasoning only with its content and before other items', () => {
    const format = 'openai-responses-v1'
    const details = [
      { type: 'reasoning.encrypted', format, id: 'rs_1', data: 'secret' },
      { type: 'reasoning.encrypted', format, id: 'rs_of_another_client' },
      { type: 'reasoning.encrypted', format, id: 'rs_2', data: '' },
      { type: 'reasoning.summary', format, summary: 'x' },
      'x',
    ]
    const turn = (content: string) => ({ role: 'assistant', content, reasoning_details: details })
    expect(translated({ messages: [turn('Hi'), turn('')] }).input).toEqual([
      { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'secret' },
      { type: 'message', role: 'assistant', content: 'Hi' },
    ])
  })

  it('has a limit that the API accepts', () => {
    expect(translated({ max_tokens: 1 })).toMatchObject({ max_output_tokens: 16 })
    expect(translated({ max_tokens: 1, max_completion_tokens: 20 })).toMatchObject({ max_output_tokens: 20 })
  })

  it('has the texts of refusals', () => {
    const content = [
      { type: 'text', text: 'a' },
      { type: 'refusal', refusal: 'b' },
    ]
    const { input } = translated({ messages: [{ role: 'assistant', content, refusal: 'c' }] })
    expect(input).toEqual([{ type: 'message', role: 'assistant', content: 'abc' }])
  })
})

describe('a response that is not complete', () => {
  const code = (body: JsonObject) => {
    try {
      chatToResponses.reply(body, context)
    } catch (error) {
      const { code: found, message } = error as GatewayError
      return `${found}: ${message}`
    }
    return undefined
  }

  it.each([
    ['no output', {}],
    ['a status in progress', { output: [], status: 'queued' }],
    ['an item that is not an object', { output: ['x'] }],
    ['a message without content', { output: [{ type: 'message' }] }],
    ['a part that is not an object', { output: [{ type: 'message', content: ['x'] }] }],
    ['a call without id', { output: [{ type: 'function_call', name: 'f', arguments: '' }] }],
  ])('is invalid with %s', (_, body) => {
    expect(code(body)).toContain('upstream_invalid')
  })

  it('reports its failure', () => {
    const error = { code: 'server_error', message: 'The model crashed.' }
    expect(code({ status: 'failed', error, output: [] })).toContain('the response failed: The model crashed.')
  })
})

it('long lists of a client and of a provider are read', () => {
  const format = 'openai-responses-v1'
  const details = Array.from({ length: 200_000 }, () => ({ type: 'reasoning.encrypted', format, data: 'x' }))
  const turn = { role: 'assistant', content: 'Hi', reasoning_details: details }
  expect((translated({ messages: [turn] }).input as unknown[]).length).toBe(200_001)
  const logprobs = Array.from({ length: 200_000 }, () => ({ token: 'a', logprob: 0, top_logprobs: [] }))
  const part = { type: 'output_text', text: 'a', annotations: [], logprobs }
  const content = Array.from({ length: 200_000 }, () => ({ type: 'output_text', text: '' }))
  const summary = Array.from({ length: 200_000 }, () => ({ type: 'summary_text', text: 'ab' }))
  const output = [
    { type: 'reasoning', summary },
    { type: 'message', content: [part, ...content] },
  ]
  expect(JSON.stringify(chatToResponses.reply({ output }, context))).toContain('ab\\n\\nab')
  const done = output.map((item) => ({ type: 'response.output_item.done', item }))
  expect(run([created, ...done, completed]).at(-1)).toEqual({ done: true })
})

describe('an error', () => {
  it('has the shape of chat completions', () => {
    const body = {
      error: { message: 'Unknown model', type: 'invalid_request_error', code: 'model_not_found' },
    }
    expect(chatToResponses.error(404, JSON.stringify(body))).toMatchObject({
      error: { message: 'Unknown model', code: 'model_not_found' },
    })
  })
})

function run(events: readonly object[]): JsonObject[] {
  const translator = chatToResponses.stream(context)
  const toEvent = (event: object): SseEvent => ({ data: JSON.stringify(event) })
  const out = events.flatMap((event) => translator.event(toEvent(event)))
  return [...out, ...translator.end(), ...translator.end()].map(({ data }) =>
    data === '[DONE]' ? { done: true } : JSON.parse(data),
  )
}

const created = { type: 'response.created', response: { id: 'resp_1', model: 'm' } }
const delta = (text: string) => ({ type: 'response.output_text.delta', output_index: 0, delta: text })
const completed = { type: 'response.completed', response: { id: 'resp_1', status: 'completed' } }

describe('a stream', () => {
  it('ignores events after its end, and the end marker of chat completions', () => {
    const translator = chatToResponses.stream(context)
    translator.event({ data: JSON.stringify(completed) })
    expect(translator.state).toBe('ended')
    expect(translator.event({ data: '[DONE]' })).toEqual([])
    expect(translator.event({ data: JSON.stringify(delta('late')) })).toEqual([])
  })

  it('is invalid with data that is not an object', () => {
    const translator = chatToResponses.stream(context)
    expect(() => translator.event({ data: 'x' })).toThrow('not a JSON object')
  })

  it.each([
    ['an item added without an item', { type: 'response.output_item.added' }],
    ['an item done without an item', { type: 'response.output_item.done' }],
    [
      'a call without name',
      { type: 'response.output_item.added', item: { type: 'function_call', call_id: 'c' } },
    ],
    ['a probability that is no object', { ...delta('x'), logprobs: [1] }],
  ])('is invalid with %s', (_, event) => {
    expect(() => run([created, event])).toThrow('cannot be read')
  })

  it('limits its items', () => {
    const item = (index: number) => ({
      type: 'response.output_item.added',
      output_index: index,
      item: { type: 'message' },
    })
    const events = Array.from({ length: 1025 }, (_, index) => item(index))
    expect(() => run([created, ...events])).toThrow('more than 1024 parts')
  })

  it('ends with an error without its end, and after an error', () => {
    expect(run([created, delta('Hi')]).at(-1)).toMatchObject({ error: { code: 'upstream_reset' } })
    const error = { type: 'error', code: 'server_error', message: 'Down' }
    const chunks = run([created, delta('Hi'), error, completed])
    expect(chunks.at(-1)).toMatchObject({ error: { message: 'Down' } })
    expect(chunks.filter((chunk) => 'error' in chunk)).toHaveLength(1)
  })

  it('has the text of an item that is not announced once', () => {
    const item = { type: 'message', content: [{ type: 'output_text', text: 'Hi' }] }
    for (const place of [{}, { output_index: 0 }]) {
      const text = { type: 'response.output_text.delta', delta: 'Hi', ...place }
      const done = { type: 'response.output_item.done', item, ...place }
      expect(assembled(run([created, text, done, completed]))).toMatchObject({ text: 'Hi' })
    }
  })

  it('has usage on request only', () => {
    const translator = chatToResponses.stream({ ...context, includeUsage: false })
    translator.event({ data: JSON.stringify(completed) })
    const texts = translator.end().map(({ data }) => data)
    expect(texts).toHaveLength(2)
    expect(texts.join()).not.toContain('usage')
  })
})

type Fragment = { text: string; cut: number }
const fragment = fc.record({
  text: fc.string({ minLength: 1, unit: 'grapheme' }),
  cut: fc.integer({ min: 1, max: 4 }),
})
const generatedItem = fc.oneof(
  fc.record({
    kind: fc.constant('message' as const),
    parts: fc.array(fragment, { minLength: 1, maxLength: 3 }),
  }),
  fc.record({
    kind: fc.constant('refusal' as const),
    parts: fc.array(fragment, { minLength: 1, maxLength: 1 }),
  }),
  fc.record({ kind: fc.constant('reasoning' as const), parts: fc.array(fragment, { maxLength: 3 }) }),
  fc.record({ kind: fc.constant('function_call' as const), parts: fc.array(fragment, { maxLength: 1 }) }),
  fc.record({ kind: fc.constant('custom_tool_call' as const), parts: fc.array(fragment, { maxLength: 1 }) }),
  fc.record({ kind: fc.constant('web_search_call' as const), parts: fc.constant([]) }),
)
type GeneratedItem = { kind: string; parts: readonly Fragment[] }

function itemOf({ kind, parts }: GeneratedItem, at: number): JsonObject {
  const texts = parts.map(({ text }) => text)
  switch (kind) {
    case 'message': {
      const content = texts.map((text) => ({
        type: 'output_text',
        text,
        annotations: [
          { type: 'url_citation', start_index: 0, end_index: 1, title: 't', url: 'https://a.test' },
        ],
      }))
      return { type: 'message', id: `msg_${at}`, content }
    }
    case 'refusal':
      return {
        type: 'message',
        id: `msg_${at}`,
        content: texts.map((refusal) => ({ type: 'refusal', refusal })),
      }
    case 'reasoning':
      return {
        type: 'reasoning',
        id: `rs_${at}`,
        summary: texts.map((text) => ({ type: 'summary_text', text })),
        encrypted_content: `secret ${at}`,
      }
    case 'function_call':
      return { type: kind, id: `fc_${at}`, call_id: `call_${at}`, name: 'f', arguments: texts.join('') }
    case 'custom_tool_call':
      return { type: kind, id: `ctc_${at}`, call_id: `call_${at}`, name: 'f', input: texts.join('') }
    default:
      return { type: kind, id: `ws_${at}` }
  }
}

const deltaTypes: Readonly<Record<string, string>> = {
  message: 'response.output_text.delta',
  refusal: 'response.refusal.delta',
  reasoning: 'response.reasoning_summary_text.delta',
  function_call: 'response.function_call_arguments.delta',
  custom_tool_call: 'response.custom_tool_call_input.delta',
}

/** Events of an item; `isWhole`: only its last event, as some servers send it. */
function eventsOf(generated: GeneratedItem, at: number, isWhole: boolean): JsonObject[] {
  const item = itemOf(generated, at)
  const done = { type: 'response.output_item.done', output_index: at, item }
  if (isWhole) return [done]
  const { kind, parts } = generated
  const empty = { ...item, arguments: '', input: '', content: [], summary: [], encrypted_content: '' }
  const events: JsonObject[] = [{ type: 'response.output_item.added', output_index: at, item: empty }]
  for (const [index, { text, cut }] of parts.entries()) {
    if (kind === 'reasoning')
      events.push({ type: 'response.reasoning_summary_part.added', output_index: at, summary_index: index })
    if (kind === 'message' || kind === 'refusal')
      events.push({ type: 'response.content_part.added', output_index: at, content_index: index })
    for (let from = 0; from < text.length; from += cut) {
      const type = deltaTypes[kind] ?? ''
      events.push({ type, output_index: at, delta: text.slice(from, from + cut), logprobs: [] })
    }
    const annotation = {
      type: 'url_citation',
      start_index: 0,
      end_index: 1,
      title: 't',
      url: 'https://a.test',
    }
    if (kind === 'message')
      events.push({ type: 'response.output_text.annotation.added', output_index: at, annotation })
  }
  return [...events, done]
}

/** The message that a client assembles from chunks. */
function assembled(chunks: readonly JsonObject[]): JsonObject {
  // biome-ignore lint/suspicious/noExplicitAny: reads JSON of a test
  const deltas = chunks.flatMap((chunk: any) => chunk.choices?.map((choice: any) => choice.delta) ?? [])
  const calls: { name: string; input: string; id: string }[] = []
  for (const { tool_calls: list = [] } of deltas) {
    for (const { index, id, function: made, custom } of list) {
      calls[index] ??= { id, name: made?.name ?? custom?.name, input: '' }
      const known = calls[index]
      if (known !== undefined) known.input += made?.arguments ?? custom?.input ?? ''
    }
  }
  const joined = (name: string) => deltas.map((each) => each[name] ?? '').join('')
  return {
    text: joined('content'),
    refusal: joined('refusal'),
    reasoning: joined('reasoning_content'),
    annotations: deltas.flatMap(({ annotations = [] }) => annotations),
    calls,
  }
}

function ofWhole(completion: JsonObject): JsonObject {
  // biome-ignore lint/suspicious/noExplicitAny: reads JSON of a test
  const { message } = (completion as any).choices[0]
  return {
    text: message.content ?? '',
    refusal: message.refusal ?? '',
    reasoning: message.reasoning_content ?? '',
    annotations: message.annotations,
    // biome-ignore lint/suspicious/noExplicitAny: reads JSON of a test
    calls: (message.tool_calls ?? []).map(({ id, function: made, custom }: any) => ({
      ...{ id, name: made?.name ?? custom.name, input: made?.arguments ?? custom.input },
    })),
  }
}

describe('properties', () => {
  it('a stream has the content of the whole response', () => {
    const items = fc.array(fc.tuple(generatedItem, fc.boolean()), { maxLength: 8 })
    fc.assert(
      fc.property(items, (generated) => {
        const output = generated.map(([item], at) => itemOf(item, at))
        const response = { id: 'resp_1', model: 'm', status: 'completed', output }
        const whole = chatToResponses.reply(response, context)
        expect(chatCompletion.safeParse(whole).error).toBeUndefined()
        const events = generated.flatMap(([item, isWhole], at) => eventsOf(item, at, isWhole))
        const chunks = run([created, ...events, { type: 'response.completed', response }])
        for (const chunk of chunks)
          if (!('done' in chunk)) expect(chatChunk.safeParse(chunk).error).toBeUndefined()
        expect(assembled(chunks)).toEqual(ofWhole(whole))
      }),
    )
  })

  it('any JSON is read or invalid', () => {
    const event = fc.record({
      type: fc.constantFrom(
        ...Object.values(deltaTypes),
        ...['response.output_item.added', 'response.output_item.done', 'response.completed', 'error'],
        ...['response.output_text.annotation.added', 'response.content_part.added', 'response.failed'],
      ),
      output_index: fc.jsonValue(),
      delta: fc.jsonValue(),
      item: fc.oneof(
        fc.jsonValue(),
        fc.record({
          type: fc.constantFrom('message', 'reasoning', 'function_call'),
          content: fc.jsonValue(),
          summary: fc.jsonValue(),
        }),
      ),
      annotation: fc.jsonValue(),
      response: fc.jsonValue(),
      logprobs: fc.jsonValue(),
    })
    fc.assert(
      fc.property(fc.array(event), fc.jsonValue(), (events, output) => {
        for (const read of [
          () => run(events),
          () => chatToResponses.reply({ output } as JsonObject, context),
        ]) {
          try {
            read()
          } catch (error) {
            expect((error as GatewayError).code).toMatch(/^upstream_/)
          }
        }
      }),
    )
  })

  it('a request in the form of chat returns from the Responses API', () => {
    const text = fc.string({ minLength: 1 })
    const callOf = fc.record({ id: fc.stringMatching(/^call_[a-z]{1,8}$/), args: fc.json() })
    const turn = fc.oneof(
      text.map((content) => [{ role: 'user', content }]),
      text.map((content) => [{ role: 'assistant', content }]),
      fc.tuple(fc.array(callOf, { minLength: 1, maxLength: 3 }), text).map(([calls, result]) => [
        {
          role: 'assistant',
          content: null,
          tool_calls: calls.map(({ id, args }) => ({
            ...{ id, type: 'function', function: { name: 'f', arguments: args } },
          })),
        },
        ...calls.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: result })),
        { role: 'user', content: 'next' },
      ]),
    )
    const request = fc.record(
      {
        messages: fc
          .array(turn, { minLength: 1 })
          .map((turns) => [{ role: 'user', content: 'first' }, ...turns.flat()]),
        temperature: fc.double({ min: 0, max: 0.9, noNaN: true }),
        max_tokens: fc.integer({ min: 16 }),
        reasoning_effort: fc.constantFrom('low', 'high'),
        verbosity: fc.constantFrom('low', 'high'),
        response_format: fc.constant({
          type: 'json_schema',
          json_schema: { name: 'n', schema: {}, strict: true },
        }),
        user: text,
      },
      { requiredKeys: ['messages'] },
    )
    fc.assert(
      fc.property(request, (body) => {
        const given = JSON.parse(JSON.stringify({ model: 'm', ...body }))
        const back = responsesToChat.request(translated(given))
        expect(back.kind === 'body' && joinedTurns(back.body)).toEqual(joinedTurns(given))
      }),
    )
  })
})

/** Items have no turns: calls after a text of the assistant are in its message. */
function joinedTurns(body: JsonObject): JsonObject {
  const messages: JsonObject[] = []
  for (const message of (body.messages ?? []) as JsonObject[]) {
    const last = messages.at(-1)
    const hasOnlyCalls = message.tool_calls !== undefined && message.content === null
    const continues = hasOnlyCalls && last?.role === 'assistant' && !last.tool_calls
    if (continues) last.tool_calls = message.tool_calls ?? null
    else messages.push({ ...message })
  }
  return { ...body, messages }
}
