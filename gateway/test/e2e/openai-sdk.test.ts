import OpenAI from 'openai'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { aliceKey, llmConfig } from '../support/llm-config.ts'
import { anthropicErrors, type MockAnthropic, mockAnthropic } from '../support/mock-anthropic.ts'
import { type MockOpenAi, mockOpenAi, openAiErrors, openAiKey } from '../support/mock-openai.ts'
import { member } from '../support/mock-server.ts'

let gateway: Gateway
let openai: MockOpenAi
let anthropic: MockAnthropic
let client: OpenAI

beforeAll(async () => {
  openai = await mockOpenAi({ lifetime: 'file' })
  anthropic = await mockAnthropic({ lifetime: 'file' })
  const config = llmConfig({ openai, anthropic })
  // A server with chat completions only.
  const chatOnly = {
    name: 'plain-*',
    provider: { custom: { formats: [{ type: 'completions' }] } },
    params: { baseUrl: `${openai.url}/v1`, apiKey: openAiKey, model: 'gpt-test' },
  }
  const given: object[] = Array.isArray(config.llm?.['models']) ? config.llm['models'] : []
  gateway = await startGateway({ llm: { ...config.llm, models: [chatOnly, ...given] } }, { lifetime: 'file' })
  client = createClient(aliceKey)
})

beforeEach(() => {
  openai.seen.length = 0
  anthropic.seen.length = 0
})

function createClient(apiKey: string): OpenAI {
  return new OpenAI({ apiKey, baseURL: `${gateway.url}/v1`, maxRetries: 0 })
}

const question = [
  { role: 'system' as const, content: 'You are brief.' },
  { role: 'user' as const, content: 'Good morning' },
]

const weatherTool = {
  type: 'function' as const,
  function: {
    name: 'get_weather',
    description: 'Weather of a city',
    parameters: { type: 'object', properties: { city: { type: 'string' }, days: { type: 'integer' } } },
  },
}

const upstreams = [
  {
    title: 'an OpenAI upstream',
    model: 'gpt-test',
    content: () => openai.behaviour.content,
    tokens: [21, 9],
  },
  // Chat completions count cached input within the prompt: 12 + 6 read + 4 written.
  {
    title: 'an Anthropic upstream',
    model: 'claude-test',
    content: () => anthropic.behaviour.content,
    tokens: [22, 11],
  },
]

describe.each(upstreams)('the openai package against $title', ({ model, content, tokens }) => {
  it('gets an unstreamed answer with usage', async () => {
    const answer = await client.chat.completions.create({ model, messages: question })
    expect(answer.object).toBe('chat.completion')
    expect(answer.choices[0]?.message.role).toBe('assistant')
    expect(answer.choices[0]?.message.content).toBe(content())
    expect(answer.choices[0]?.message.refusal).toBeNull()
    expect(answer.choices[0]?.finish_reason).toBe('stop')
    expect(answer.usage?.prompt_tokens).toBe(tokens[0])
    expect(answer.usage?.completion_tokens).toBe(tokens[1])
    expect(answer.usage?.total_tokens).toBe((tokens[0] ?? 0) + (tokens[1] ?? 0))
  })

  it('gets a streamed answer piece by piece, with the usage at the end', async () => {
    const stream = await client.chat.completions.create({
      model,
      messages: question,
      stream: true,
      stream_options: { include_usage: true },
    })
    let text = ''
    let pieces = 0
    let finish: string | null | undefined
    let usage: OpenAI.CompletionUsage | null | undefined
    for await (const chunk of stream) {
      const [choice] = chunk.choices
      if (choice?.delta.content) {
        text += choice.delta.content
        pieces += 1
      }
      finish = choice?.finish_reason ?? finish
      usage = chunk.usage ?? usage
    }
    expect(text).toBe(content())
    expect(pieces).toBeGreaterThan(2)
    expect(finish).toBe('stop')
    expect(usage?.prompt_tokens).toBe(tokens[0])
    expect(usage?.completion_tokens).toBe(tokens[1])
  })

  it('calls a tool and sends its result back', async () => {
    const first = await client.chat.completions.create({ model, messages: question, tools: [weatherTool] })
    expect(first.choices[0]?.finish_reason).toBe('tool_calls')
    const message = first.choices[0]?.message
    const call = message?.tool_calls?.[0]
    expect(call?.type).toBe('function')
    if (call?.type !== 'function' || !message) throw new Error('no function call')
    expect(call.function.name).toBe('get_weather')
    expect(JSON.parse(call.function.arguments)).toEqual({ city: 'Paris', days: 3 })

    const second = await client.chat.completions.create({
      model,
      messages: [...question, message, { role: 'tool', tool_call_id: call.id, content: '{"sky":"clear"}' }],
      tools: [weatherTool],
    })
    expect(second.choices[0]?.message.content).toBe(content())
  })

  it('assembles a streamed tool call', async () => {
    const stream = client.chat.completions.stream({ model, messages: question, tools: [weatherTool] })
    const final = await stream.finalChatCompletion()
    const call = final.choices[0]?.message.tool_calls?.[0]
    expect(call?.type === 'function' && call.function.name).toBe('get_weather')
    expect(call?.type === 'function' && JSON.parse(call.function.arguments)).toEqual({
      city: 'Paris',
      days: 3,
    })
    expect(final.choices[0]?.finish_reason).toBe('tool_calls')
  })
})

describe('the openai package against echo', () => {
  it('gets an unstreamed answer with every field of the LLM route', async () => {
    const answer = await client.chat.completions.create({ model: 'echo', messages: question })
    expect(answer.choices[0]?.message.content).toContain('Good morning')
    expect(answer.usage?.total_tokens).toBe(
      (answer.usage?.prompt_tokens ?? 0) + (answer.usage?.completion_tokens ?? 0),
    )
    expect(Object.keys(answer).toSorted()).toEqual(
      expect.arrayContaining([
        'choices',
        'created',
        'id',
        'model',
        'object',
        'service_tier',
        'system_fingerprint',
        'usage',
      ]),
    )
    expect(Object.keys(answer.choices[0] ?? {})).toEqual(
      expect.arrayContaining(['index', 'message', 'logprobs', 'finish_reason']),
    )
    expect(Object.keys(answer.choices[0]?.message ?? {})).toEqual(
      expect.arrayContaining(['role', 'content', 'refusal', 'annotations']),
    )
    expect(answer.usage?.prompt_tokens_details).toMatchObject({ cached_tokens: 0, audio_tokens: 0 })
    expect(answer.usage?.completion_tokens_details).toMatchObject({
      reasoning_tokens: 0,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    })
  })

  it('gets the same answer streamed', async () => {
    const whole = await client.chat.completions.create({ model: 'echo', messages: question })
    const stream = await client.chat.completions.create({ model: 'echo', messages: question, stream: true })
    let text = ''
    let usage: OpenAI.CompletionUsage | null | undefined
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? ''
      usage = chunk.usage ?? usage
    }
    expect(text).toBe(whole.choices[0]?.message.content)
    expect(usage?.total_tokens).toBe(whole.usage?.total_tokens)
  })
})

describe('the openai package for other calls', () => {
  it('lists the models it may use', async () => {
    const names: string[] = []
    for await (const model of client.models.list()) names.push(model.id)
    expect(names).toEqual(expect.arrayContaining(['gpt-*', 'claude-*', 'echo']))
  })

  it('gets embeddings, the numbers untouched', async () => {
    const answer = await client.embeddings.create({ model: 'text-embedding-3-small', input: ['a', 'b'] })
    expect(answer.data.map(({ embedding }) => embedding)).toEqual([
      [0.25, -0.5, 0.125],
      [0.25, -0.5, 0.125],
    ])
    expect(answer.usage.total_tokens).toBe(7)
  })

  it('gets a legacy completion, unstreamed and streamed', async () => {
    const whole = await client.completions.create({ model: 'gpt-instruct', prompt: 'Say hello' })
    expect(whole.choices[0]?.text).toBe(openai.behaviour.content)
    const stream = await client.completions.create({
      model: 'gpt-instruct',
      prompt: 'Say hello',
      stream: true,
    })
    let text = ''
    for await (const chunk of stream) text += chunk.choices[0]?.text ?? ''
    expect(text).toBe(openai.behaviour.content)
  })

  it('gets a response of the responses API, unstreamed and streamed', async () => {
    const whole = await client.responses.create({ model: 'gpt-test', input: 'Good morning' })
    expect(whole.output_text).toBe(openai.behaviour.content)
    expect(whole.usage?.total_tokens).toBe(30)
    const stream = await client.responses.create({ model: 'gpt-test', input: 'Good morning', stream: true })
    const types: string[] = []
    let text = ''
    for await (const event of stream) {
      types.push(event.type)
      if (event.type === 'response.output_text.delta') text += event.delta
    }
    expect(text).toBe(openai.behaviour.content)
    expect(types.at(0)).toBe('response.created')
    expect(types.at(-1)).toBe('response.completed')
  })

  it('hears which call a provider does not offer', async () => {
    const refused = client.embeddings.create({ model: 'claude-test', input: 'Good morning' })
    await expect(refused).rejects.toBeInstanceOf(OpenAI.APIError)
    await expect(refused).rejects.toMatchObject({
      status: expect.toSatisfy((status) => status >= 400 && status < 500),
    })
  })
})

describe.each([
  {
    title: 'chat completions only',
    model: 'plain-test',
    answer: () => openai.behaviour.content,
    tokens: [21, 9],
  },
  {
    title: 'messages only',
    model: 'claude-test',
    answer: () => anthropic.behaviour.content,
    tokens: [22, 11],
  },
])('the responses of the openai package against a server with $title', ({ model, answer, tokens }) => {
  const { name, description, parameters } = weatherTool.function
  const tools = [{ type: 'function' as const, name, description, parameters, strict: false }]

  it('have text and usage', async () => {
    const request = { model, input: 'Good morning', instructions: 'Be brief.', temperature: 0.5 }
    const whole = await client.responses.create(request)
    expect(whole).toMatchObject({ status: 'completed', instructions: 'Be brief.', temperature: 0.5 })
    expect(whole.output_text).toBe(answer())
    expect([whole.usage?.input_tokens, whole.usage?.output_tokens]).toEqual(tokens)
  })

  it('arrive piece by piece', async () => {
    const stream = client.responses.stream({ model, input: 'Good morning' })
    let pieces = 0
    stream.on('response.output_text.delta', () => {
      pieces += 1
    })
    const final = await stream.finalResponse()
    expect(pieces).toBeGreaterThan(2)
    expect(final.output_text).toBe(answer())
    expect([final.usage?.input_tokens, final.usage?.output_tokens]).toEqual(tokens)
  })

  it('call a tool, and continue with its result', async () => {
    const first = await client.responses.stream({ model, input: 'Good morning', tools }).finalResponse()
    const call = first.output.find((item) => item.type === 'function_call')
    if (call === undefined) throw new Error('no function call')
    expect([call.name, JSON.parse(call.arguments)]).toEqual(['get_weather', { city: 'Paris', days: 3 }])
    const second = await client.responses.create({
      model,
      tools,
      input: [
        { role: 'user', content: 'Good morning' },
        call,
        { type: 'function_call_output', call_id: call.call_id, output: '{"sky":"clear"}' },
      ],
    })
    expect(second.output_text).toBe(answer())
  })

  it('are refused with the field that has no counterpart', async () => {
    const refused = client.responses.create({ model, input: 'x', previous_response_id: 'resp_1' })
    await expect(refused).rejects.toMatchObject({ status: 400, param: 'previous_response_id' })
  })
})

describe('errors reach the openai package as its own classes', () => {
  it('AuthenticationError for an unknown virtual key', async () => {
    const refused = createClient('tg-unknown').chat.completions.create({ model: 'echo', messages: question })
    await expect(refused).rejects.toBeInstanceOf(OpenAI.AuthenticationError)
    await expect(refused).rejects.toThrow(/api key authentication failure: invalid credentials/)
  })

  it('NotFoundError for an unknown model', async () => {
    const refused = client.chat.completions.create({ model: 'nobody-serves-this', messages: question })
    await expect(refused).rejects.toBeInstanceOf(OpenAI.NotFoundError)
    await expect(refused).rejects.toMatchObject({ code: 'model_not_found', type: 'invalid_request_error' })
  })

  it('RateLimitError of the provider, with its own words and headers', async () => {
    openai.next(openAiErrors.rateLimited)
    const refused = client.chat.completions.create({ model: 'gpt-test', messages: question })
    await expect(refused).rejects.toBeInstanceOf(OpenAI.RateLimitError)
    await expect(refused).rejects.toMatchObject({ code: 'rate_limit_exceeded' })
    await expect(refused).rejects.toThrow(/Rate limit reached/)
  })

  it('InternalServerError of the provider', async () => {
    openai.next(openAiErrors.failed)
    const refused = client.chat.completions.create({ model: 'gpt-test', messages: question })
    await expect(refused).rejects.toBeInstanceOf(OpenAI.InternalServerError)
    await expect(refused).rejects.toThrow(/The server had an error/)
  })

  it('BadRequestError of the provider, param included', async () => {
    openai.next(openAiErrors.contextLength)
    const refused = client.chat.completions.create({ model: 'gpt-test', messages: question, stream: true })
    await expect(refused).rejects.toBeInstanceOf(OpenAI.BadRequestError)
    await expect(refused).rejects.toMatchObject({ code: 'context_length_exceeded', param: 'messages' })
  })

  it('RateLimitError for a rate limit of an Anthropic upstream', async () => {
    anthropic.next(anthropicErrors.rateLimited)
    const refused = client.chat.completions.create({ model: 'claude-test', messages: question })
    await expect(refused).rejects.toBeInstanceOf(OpenAI.RateLimitError)
    await expect(refused).rejects.toThrow(/would exceed your rate limit/)
  })

  it('BadRequestError that names a field which cannot be translated', async () => {
    const refused = client.chat.completions.create({ model: 'claude-test', messages: question, n: 2 })
    await expect(refused).rejects.toBeInstanceOf(OpenAI.BadRequestError)
    await expect(refused).rejects.toMatchObject({ param: 'n' })
    expect(anthropic.seen).toHaveLength(0)
  })

  it('an overloaded provider as an error of 5xx', async () => {
    anthropic.next(anthropicErrors.overloaded)
    const refused = client.chat.completions.create({ model: 'claude-test', messages: question, stream: true })
    await expect(refused).rejects.toBeInstanceOf(OpenAI.InternalServerError)
    await expect(refused).rejects.toThrow(/Overloaded/)
  })
})

describe('sampling parameters for an Anthropic upstream', () => {
  it('arrive under the version of the API that takes them', async () => {
    await client.chat.completions.create({
      model: 'claude-test',
      messages: question,
      temperature: 0.3,
      top_p: 0.9,
    })
    expect(anthropic.seen[0]?.json).toMatchObject({ temperature: 0.3, top_p: 0.9 })
  })
})

describe('the provider request of the openai package', () => {
  it('is its own credential and not the virtual key', async () => {
    await client.chat.completions.create({ model: 'gpt-test', messages: question })
    const seen = openai.seen[0]
    expect(seen?.path).toBe('/v1/chat/completions')
    expect(JSON.stringify(seen)).not.toContain(aliceKey)
  })

  it('is the whole body, fields the gateway does not know included', async () => {
    const extra = { future_option: { deep: [1, 2.5, null] }, messages: question, model: 'gpt-test' }
    const answer = await client.chat.completions.create(extra)
    expect(member(openai.seen[0]?.json, 'future_option')).toEqual({ deep: [1, 2.5, null] })
    expect(member(answer, 'x_unknown_field')).toEqual({ kept: true })
  })
})
