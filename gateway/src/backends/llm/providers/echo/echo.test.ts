import { describe, expect, it } from 'vitest'
import { call, fixtureGateway, open } from '../../../../../test/fixtures/llm.ts'

const gateway = () =>
  fixtureGateway(
    { models: [{ name: '*', provider: 'echo' }] },
    () => {
      throw new Error('echo needs no network')
    },
    { maxBufferSize: 8 * 1024 * 1024 },
  )

const tools = [
  {
    type: 'function',
    function: {
      name: 'weather',
      parameters: {
        type: 'object',
        properties: {
          city: { type: 'string' },
          days: { type: 'integer' },
          unit: { enum: ['C', 'F'] },
          note: { type: 'string' },
        },
        required: ['city', 'days', 'unit'],
      },
    },
  },
]

describe('response size', () => {
  const text = 'a'.repeat(300_000)
  const inputs = Array.from({ length: 513 }, () => 'a')
  it.each([
    [
      'a request of more than 2 MiB',
      '/v1/chat/completions',
      { messages: [{ role: 'user', content: text.repeat(8) }] },
    ],
    [
      'choices of more than 2 MiB',
      '/v1/chat/completions',
      { n: 8, messages: [{ role: 'user', content: text }] },
    ],
    ['long instructions', '/v1/responses', { input: 'a', instructions: text }],
    ['many embeddings', '/v1/embeddings', { input: inputs }],
  ])('is limited: %s is a 413', async (_, path, body) => {
    const answer = await call(gateway(), { path, body: { model: 'm', ...body } })
    expect(answer.status).toBe(413)
  })
})

/** The JSON values of a stream's events; of no type, as JSON.parse gives them. */
function events(text: string) {
  return text
    .split('\n\n')
    .map((event) =>
      event
        .split('\n')
        .find((line) => line.startsWith('data: '))
        ?.slice(6),
    )
    .filter((data) => data !== undefined && data !== '[DONE]')
    .map((data) => JSON.parse(data ?? ''))
}

describe('echo', () => {
  it('responds to a chat completion with all fields of the API', async () => {
    const messages = [
      { role: 'user', content: 'first' },
      { role: 'assistant', content: 'x' },
      { role: 'user', content: [{ type: 'text', text: 'say this' }] },
    ]
    const { status, text, exchange } = await call(gateway(), { body: { model: 'any', messages } })
    expect(status).toBe(200)
    expect(JSON.parse(text)).toEqual({
      id: expect.stringMatching(/^chatcmpl-[0-9a-f]{24}$/),
      object: 'chat.completion',
      created: 1_700_000_000,
      model: 'any',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'say this', refusal: null, annotations: [] },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
      usage: {
        prompt_tokens: expect.any(Number),
        completion_tokens: 2,
        total_tokens: expect.any(Number),
        prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
        completion_tokens_details: {
          reasoning_tokens: 0,
          audio_tokens: 0,
          accepted_prediction_tokens: 0,
          rejected_prediction_tokens: 0,
        },
      },
      service_tier: 'default',
      system_fingerprint: 'fp_echo',
    })
    expect(exchange.facts.usage).toMatchObject({ outputTokens: 2, estimated: false })
  })

  it('responds equally to equal requests', async () => {
    const body = { model: 'any', messages: [{ role: 'user', content: 'same' }] }
    const [first, second] = [await call(gateway(), { body }), await call(gateway(), { body })]
    expect(first.text).toBe(second.text)
  })

  it('streams the text in several chunks and ends with usage', async () => {
    const body = {
      model: 'any',
      stream: true,
      messages: [{ role: 'user', content: 'one two three — 😀😀😀' }],
    }
    const { text, exchange } = await call(gateway(), { body })
    const chunks = events(text)
    let content = ''
    for (const chunk of chunks) for (const choice of chunk.choices) content += choice.delta.content ?? ''
    expect(content).toBe('one two three — 😀😀😀')
    expect(chunks.length).toBeGreaterThan(5)
    expect(chunks.at(-1)).toMatchObject({
      choices: [],
      usage: { total_tokens: exchange.facts.usage?.totalTokens },
    })
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true)
  })

  it.each(['required', { type: 'function', function: { name: 'weather' } }])(
    'calls a tool when tool_choice is %j',
    async (choice) => {
      const body = { model: 'any', messages: [{ role: 'user', content: 'hi' }], tools, tool_choice: choice }
      const { text } = await call(gateway(), { body })
      const [answer] = JSON.parse(text).choices
      expect(answer.finish_reason).toBe('tool_calls')
      expect(answer.message.tool_calls[0].function).toEqual({
        name: 'weather',
        arguments: '{"city":"echo","days":1,"unit":"C"}',
      })
      const streamed = await call(gateway(), { body: { ...body, stream: true } })
      let args = ''
      for (const chunk of events(streamed.text)) {
        for (const choice of chunk.choices) args += choice.delta.tool_calls?.[0].function.arguments ?? ''
      }
      expect(args).toBe('{"city":"echo","days":1,"unit":"C"}')
    },
  )

  it('responds with text after a tool result', async () => {
    const messages = [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: null, tool_calls: [] },
      { role: 'tool', tool_call_id: 'c', content: 'sunny' },
    ]
    const { text } = await call(gateway(), {
      body: { model: 'any', messages, tools, tool_choice: 'required' },
    })
    expect(JSON.parse(text).choices[0].message.content).toBe('sunny')
  })

  it('stops at max_tokens', async () => {
    const { text } = await call(gateway(), {
      body: { model: 'any', max_tokens: 1, messages: [{ role: 'user', content: 'abcdefgh' }] },
    })
    expect(JSON.parse(text).choices[0]).toMatchObject({
      message: { content: 'abcd' },
      finish_reason: 'length',
    })
  })

  it('serves messages, unstreamed and streamed', async () => {
    const body = { model: 'any', max_tokens: 100, messages: [{ role: 'user', content: 'Bonjour' }] }
    const whole = await call(gateway(), { path: '/v1/messages', body })
    expect(JSON.parse(whole.text)).toMatchObject({
      type: 'message',
      role: 'assistant',
      content: [{ type: 'text', text: 'Bonjour' }],
      stop_reason: 'end_turn',
    })
    expect(whole.exchange.facts.usage?.totalTokens).toBeGreaterThan(0)
    const streamed = await call(gateway(), { path: '/v1/messages', body: { ...body, stream: true } })
    const deltas = events(streamed.text).map((event) => event.delta?.text ?? '')
    expect(deltas.join('')).toBe('Bonjour')
    expect(streamed.text).toContain('event: message_stop')
  })

  it('counts tokens, marked as an estimate', async () => {
    const body = { model: 'any', messages: [{ role: 'user', content: 'x'.repeat(400) }] }
    const { text, headers, exchange } = await call(gateway(), { path: '/v1/messages/count_tokens', body })
    expect(JSON.parse(text).input_tokens).toBeGreaterThanOrEqual(100)
    expect(JSON.parse(text).input_tokens).toBeLessThan(110)
    expect([JSON.parse(text).estimated, headers['x-tollgate-estimated']]).toEqual([true, 'true'])
    expect(exchange.facts.usage).toBeUndefined()
  })

  it('returns embeddings of the input as numbers or base64', async () => {
    const ask = async (input: unknown, format?: string) => {
      const body = { model: 'any', input, dimensions: 8, ...(format && { encoding_format: format }) }
      const { text } = await call(gateway(), { path: '/v1/embeddings', body })
      return JSON.parse(text)
    }
    const [one, two] = [await ask(['a', 'b']), await ask('a')]
    expect(one.data).toHaveLength(2)
    expect(one.data[0].embedding).toEqual(two.data[0].embedding)
    expect(one.data[0].embedding).not.toEqual(one.data[1].embedding)
    expect(one.data[0].embedding.reduce((sum: number, v: number) => sum + v * v, 0)).toBeCloseTo(1)
    const bytes = Buffer.from((await ask('a', 'base64')).data[0].embedding, 'base64')
    const decoded = new Float32Array(bytes.buffer, bytes.byteOffset, 8)
    for (const [index, value] of decoded.entries()) expect(value).toBeCloseTo(two.data[0].embedding[index])
    expect(one.usage.total_tokens).toBeGreaterThan(0)
  })

  it('serves completions and responses, streamed and unstreamed', async () => {
    const completed = await call(gateway(), {
      path: '/v1/completions',
      body: { model: 'any', prompt: 'once' },
    })
    expect(JSON.parse(completed.text).choices[0].text).toBe('once')
    const response = await call(gateway(), { path: '/v1/responses', body: { model: 'any', input: 'hello' } })
    expect(JSON.parse(response.text).output[0].content[0].text).toBe('hello')
    const streamed = await call(gateway(), {
      path: '/v1/responses',
      body: { model: 'any', input: 'hello', stream: true },
    })
    const types = events(streamed.text).map((event) => event.type)
    expect(types.at(0)).toBe('response.created')
    expect(types.at(-1)).toBe('response.completed')
    expect(streamed.exchange.facts.usage).toEqual(response.exchange.facts.usage)
    const texts = await call(gateway(), {
      path: '/v1/completions',
      body: { model: 'any', prompt: 'once', stream: true },
    })
    expect(texts.exchange.facts.usage).toEqual(completed.exchange.facts.usage)
  })

  it('pauses under back pressure and stops on cancellation', async () => {
    const body = { model: 'any', stream: true, messages: [{ role: 'user', content: 'x'.repeat(400) }] }
    const { reply } = await open(gateway(), { body })
    const source = reply.body
    if (source === undefined || source instanceof Uint8Array) throw new Error('expected a stream')
    let written = 0
    source.start({
      write() {
        written += 1
        return false
      },
      end: () => expect.unreachable(),
      fail: () => expect.unreachable(),
    })
    const turns = async () => {
      for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
    }
    await turns()
    expect(written).toBe(1)
    source.resume()
    await turns()
    expect(written).toBe(2)
    source.cancel()
    source.resume()
    await turns()
    expect(written).toBe(2)
  })
})
