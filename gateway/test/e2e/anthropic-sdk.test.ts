import Anthropic from '@anthropic-ai/sdk'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { aliceKey, llmConfig } from '../support/llm-config.ts'
import {
  anthropicErrors,
  anthropicKey,
  type MockAnthropic,
  mockAnthropic,
} from '../support/mock-anthropic.ts'
import { type MockOpenAi, mockOpenAi, openAiErrors } from '../support/mock-openai.ts'
import { member } from '../support/mock-server.ts'

let gateway: Gateway
let openai: MockOpenAi
let anthropic: MockAnthropic
let client: Anthropic

beforeAll(async () => {
  openai = await mockOpenAi({ lifetime: 'file' })
  anthropic = await mockAnthropic({ lifetime: 'file' })
  gateway = await startGateway(llmConfig({ openai, anthropic }), { lifetime: 'file' })
  client = createClient(aliceKey)
})

beforeEach(() => {
  openai.seen.length = 0
  anthropic.seen.length = 0
})

function createClient(apiKey: string): Anthropic {
  return new Anthropic({ apiKey, baseURL: gateway.url, maxRetries: 0 })
}

const question = {
  max_tokens: 100,
  system: 'You are brief.',
  messages: [{ role: 'user' as const, content: 'Good morning' }],
}

const weatherTool: Anthropic.Tool = {
  name: 'get_weather',
  description: 'Weather of a city',
  input_schema: { type: 'object', properties: { city: { type: 'string' }, days: { type: 'integer' } } },
}

const upstreams = [
  {
    title: 'an Anthropic upstream',
    model: 'claude-test',
    content: () => anthropic.behaviour.content,
    usage: {
      input_tokens: 12,
      cache_read_input_tokens: 6,
      cache_creation_input_tokens: 4,
      output_tokens: 11,
    },
  },
  {
    // Messages count cached input apart from the rest: 21 of which 5 cached.
    title: 'an OpenAI upstream',
    model: 'gpt-test',
    content: () => openai.behaviour.content,
    usage: { input_tokens: 16, cache_read_input_tokens: 5, output_tokens: 9 },
  },
]

describe.each(upstreams)('the anthropic package against $title', ({ model, content, usage }) => {
  it('gets an unstreamed answer with usage', async () => {
    const answer = await client.messages.create({ model, ...question })
    expect(answer.type).toBe('message')
    expect(answer.role).toBe('assistant')
    expect(answer.content[0]).toMatchObject({ type: 'text', text: content() })
    expect(answer.stop_reason).toBe('end_turn')
    expect(answer.usage).toMatchObject(usage)
  })

  it('gets a streamed answer piece by piece, with the usage at the end', async () => {
    const stream = client.messages.stream({ model, ...question })
    let pieces = 0
    stream.on('text', () => {
      pieces += 1
    })
    const final = await stream.finalMessage()
    expect(final.content[0]).toMatchObject({ type: 'text', text: content() })
    expect(pieces).toBeGreaterThan(2)
    expect(final.stop_reason).toBe('end_turn')
    expect(final.usage.output_tokens).toBe(usage.output_tokens)
  })

  it('sees the events of a stream in the order the API defines', async () => {
    const stream = await client.messages.create({ model, ...question, stream: true })
    const types: string[] = []
    for await (const event of stream) types.push(event.type)
    expect(types[0]).toBe('message_start')
    expect(types[1]).toBe('content_block_start')
    expect(types.slice(-3)).toEqual(['content_block_stop', 'message_delta', 'message_stop'])
  })

  it('calls a tool and sends its result back', async () => {
    const first = await client.messages.create({ model, ...question, tools: [weatherTool] })
    expect(first.stop_reason).toBe('tool_use')
    const use = first.content.find((block) => block.type === 'tool_use')
    expect(use).toMatchObject({ name: 'get_weather', input: { city: 'Paris', days: 3 } })

    const second = await client.messages.create({
      model,
      ...question,
      tools: [weatherTool],
      messages: [
        ...question.messages,
        { role: 'assistant', content: first.content },
        {
          role: 'user',
          content: [{ type: 'tool_result', tool_use_id: use?.id ?? '', content: 'clear sky' }],
        },
      ],
    })
    expect(second.content[0]).toMatchObject({ type: 'text', text: content() })
  })

  it('assembles a streamed tool call', async () => {
    const final = await client.messages.stream({ model, ...question, tools: [weatherTool] }).finalMessage()
    const use = final.content.find((block) => block.type === 'tool_use')
    expect(use).toMatchObject({ name: 'get_weather', input: { city: 'Paris', days: 3 } })
    expect(final.stop_reason).toBe('tool_use')
  })
})

describe('the anthropic package against echo', () => {
  it('gets an unstreamed answer with usage', async () => {
    const answer = await client.messages.create({ model: 'echo', ...question })
    expect(member(answer.content[0], 'text')).toContain('Good morning')
    expect(answer.usage.input_tokens).toBeGreaterThan(0)
    expect(answer.usage.output_tokens).toBeGreaterThan(0)
  })

  it('gets the same answer streamed', async () => {
    const whole = await client.messages.create({ model: 'echo', ...question })
    const streamed = await client.messages.stream({ model: 'echo', ...question }).finalMessage()
    expect(member(streamed.content[0], 'text')).toBe(member(whole.content[0], 'text'))
    expect(streamed.usage.output_tokens).toBe(whole.usage.output_tokens)
  })
})

describe('the anthropic package for other calls', () => {
  it('counts tokens at the provider', async () => {
    const answer = await client.messages.countTokens({ model: 'claude-test', messages: question.messages })
    expect(answer.input_tokens).toBe(14)
    expect(anthropic.seen[0]?.path).toBe('/v1/messages/count_tokens')
  })

  it('counts tokens of a model whose provider offers no count', async () => {
    const count = async (content: string) => {
      const messages = [{ role: 'user' as const, content }]
      return (await client.messages.countTokens({ model: 'gpt-test', messages })).input_tokens
    }
    const [few, many] = [await count('one two three'), await count('one two three '.repeat(100))]
    expect(few).toBeGreaterThan(0)
    expect(many).toBeGreaterThan(few * 20)
    expect(openai.seen).toHaveLength(0)
  })

  it('keeps its version and beta headers on the way to the provider', async () => {
    const headers = { 'anthropic-beta': 'some-beta-2026-01-01' }
    const direct = new Anthropic({ apiKey: anthropicKey, baseURL: anthropic.url, maxRetries: 0 })
    for (const asking of [direct, client]) {
      await asking.messages.create({ model: 'claude-test', ...question }, { headers })
    }
    const [sent, arrived] = anthropic.seen
    expect(sent?.headers['anthropic-version']).toMatch(/^\d{4}-\d{2}-\d{2}$/)
    expect(arrived?.headers['anthropic-version']).toBe(sent?.headers['anthropic-version'])
    expect(arrived?.headers['anthropic-beta']).toBe('some-beta-2026-01-01')
  })
})

describe('errors reach the anthropic package as its own classes', () => {
  it('AuthenticationError for an unknown virtual key', async () => {
    const refused = createClient('tg-unknown').messages.create({ model: 'echo', ...question })
    await expect(refused).rejects.toBeInstanceOf(Anthropic.AuthenticationError)
    await expect(refused).rejects.toThrow(/api key authentication failure: invalid credentials/)
    await expect(refused).rejects.toMatchObject({
      error: { type: 'error', error: { type: 'authentication_error' } },
    })
  })

  it('NotFoundError for an unknown model', async () => {
    const refused = client.messages.create({ model: 'nobody-serves-this', ...question })
    await expect(refused).rejects.toBeInstanceOf(Anthropic.NotFoundError)
    await expect(refused).rejects.toMatchObject({
      error: { type: 'error', error: { type: 'not_found_error' } },
    })
  })

  it('RateLimitError of the provider, with its own words', async () => {
    anthropic.next(anthropicErrors.rateLimited)
    const refused = client.messages.create({ model: 'claude-test', ...question })
    await expect(refused).rejects.toBeInstanceOf(Anthropic.RateLimitError)
    await expect(refused).rejects.toThrow(/would exceed your rate limit/)
  })

  it('InternalServerError when the provider is overloaded', async () => {
    anthropic.next(anthropicErrors.overloaded)
    const refused = client.messages.create({ model: 'claude-test', ...question })
    await expect(refused).rejects.toBeInstanceOf(Anthropic.InternalServerError)
    await expect(refused).rejects.toMatchObject({ status: 529 })
  })

  it('RateLimitError and InternalServerError of an OpenAI upstream, in the messages shape', async () => {
    openai.next(openAiErrors.rateLimited, openAiErrors.failed)
    const limited = client.messages.create({ model: 'gpt-test', ...question })
    await expect(limited).rejects.toBeInstanceOf(Anthropic.RateLimitError)
    await expect(limited).rejects.toMatchObject({
      error: { type: 'error', error: { type: 'rate_limit_error' } },
    })
    const failed = client.messages.create({ model: 'gpt-test', ...question, stream: true })
    await expect(failed).rejects.toBeInstanceOf(Anthropic.InternalServerError)
  })
})

describe('the provider request of the anthropic package', () => {
  it('is its own credential and not the virtual key', async () => {
    await client.messages.create({ model: 'claude-test', ...question })
    await client.messages.create({ model: 'gpt-test', ...question })
    expect(anthropic.seen).toHaveLength(1)
    expect(openai.seen).toHaveLength(1)
    expect(JSON.stringify([anthropic.seen, openai.seen])).not.toContain(aliceKey)
  })

  it('is the whole body, fields the gateway does not know included', async () => {
    const extra = { model: 'claude-test', ...question, future_option: { deep: [1, 2.5, null] } }
    const answer = await client.messages.create(extra)
    expect(member(anthropic.seen[0]?.json, 'future_option')).toEqual({ deep: [1, 2.5, null] })
    expect(member(answer, 'x_unknown_field')).toEqual({ kept: true })
  })

  it('accepts the key as a bearer token as well', async () => {
    const bearer = new Anthropic({ apiKey: null, authToken: aliceKey, baseURL: gateway.url, maxRetries: 0 })
    const answer = await bearer.messages.create({ model: 'claude-test', ...question })
    expect(answer.stop_reason).toBe('end_turn')
    expect(anthropic.seen[0]?.headers.authorization).toBeUndefined()
  })
})
