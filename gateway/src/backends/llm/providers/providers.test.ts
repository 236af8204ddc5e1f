import { describe, expect, it } from 'vitest'
import { bodyOf, call, fixtureGateway, jsonReply } from '../../../../test/fixtures/llm.ts'
import type { LlmConfig, ModelConfig } from '../config/config.ts'

const chat = { model: 'm', messages: [{ role: 'user', content: 'x' }] }
const messages = { model: 'm', max_tokens: 5, messages: [{ role: 'user', content: 'x' }] }

async function sentFor(
  model: Partial<ModelConfig>,
  path: string,
  body: unknown,
  shared?: LlmConfig['providers'],
) {
  const config: LlmConfig = { models: [{ name: '*', provider: 'openai', ...model }] }
  const gateway = fixtureGateway(shared ? { ...config, providers: shared } : config, () => jsonReply({}))
  const outcome = await call(gateway, { path, body })
  const [request] = gateway.sent
  return { outcome, url: request && request.origin + request.path, body: bodyOf(request), gateway }
}

describe('a custom provider', () => {
  const custom = (formats: object[]): Partial<ModelConfig> => ({
    provider: { custom: { formats } } as never,
    params: { baseUrl: 'https://llm.test/base' },
  })

  it('serves a format at its default path below the base address', async () => {
    const { url } = await sentFor(custom([{ type: 'completions' }]), '/v1/chat/completions', chat)
    expect(url).toBe('https://llm.test/base/chat/completions')
  })

  it('serves a format at its own path from the root of the host', async () => {
    const formats = [{ type: 'completions' }, { type: 'messages', path: '/anthropic/v1/messages' }]
    const { url, body } = await sentFor(custom(formats), '/v1/messages', messages)
    expect(url).toBe('https://llm.test/anthropic/v1/messages')
    expect(body).toEqual(messages)
  })

  it('translates a request of a format that the server lacks', async () => {
    const { url } = await sentFor(custom([{ type: 'messages' }]), '/v1/chat/completions', chat)
    expect(url).toBe('https://llm.test/base/messages')
  })

  it('refuses a call without translation', async () => {
    const { outcome, url } = await sentFor(custom([{ type: 'messages' }]), '/v1/embeddings', {
      model: 'm',
      input: 'x',
    })
    expect([outcome.status, url]).toEqual([400, undefined])
    expect(outcome.text).toContain('provider custom of model \\"*\\" does not offer embeddings')
  })

  it('with responses only serves clients of other conversations', async () => {
    const only = custom([{ type: 'responses' }])
    const sent = [
      await sentFor(only, '/v1/chat/completions', chat),
      await sentFor(only, '/v1/messages', messages),
    ]
    for (const { url } of sent) expect(url).toBe('https://llm.test/base/responses')
    expect(sent[1]?.body).toMatchObject({ max_output_tokens: 16, store: false })
  })

  it('is named by providerOverride, else by the shared provider', async () => {
    const named = { custom: { formats: [{ type: 'completions' }], providerOverride: 'acme' } } as never
    const own = await sentFor({ ...custom([]), provider: named }, '/v1/chat/completions', chat)
    expect(own.outcome.exchange.facts.llm?.provider).toBe('acme')
    const shared = [
      {
        name: 'perplexity',
        provider: { custom: { formats: [{ type: 'completions' }] } } as never,
        params: { baseUrl: 'https://llm.test' },
      },
    ]
    const model = { provider: { reference: 'perplexity' } }
    const referring = await sentFor(model, '/v1/chat/completions', chat, shared)
    expect(referring.outcome.exchange.facts.llm?.provider).toBe('perplexity')
    expect(referring.url).toBe('https://llm.test/v1/chat/completions')
  })

  it('sends its own model', async () => {
    const provider = { custom: { model: 'own', formats: [{ type: 'completions' }] } } as never
    const { body } = await sentFor({ ...custom([]), provider }, '/v1/chat/completions', chat)
    expect(body).toMatchObject({ model: 'own' })
  })
})

describe('presets', () => {
  it.each([
    ['deepseek', '/v1/messages', 'https://api.deepseek.com/anthropic/v1/messages'],
    ['deepinfra', '/v1/messages', 'https://api.deepinfra.com/anthropic/v1/messages'],
    ['openrouter', '/v1/messages', 'https://openrouter.ai/api/v1/messages'],
    ['groq', '/v1/messages', 'https://api.groq.com/openai/v1/chat/completions'],
  ])('%s serves %s at %s', async (provider, path, url) => {
    expect((await sentFor({ provider }, path, messages)).url).toBe(url)
  })

  it.each([
    ['groq', 'https://api.groq.com/openai/v1/responses'],
    ['ollama', 'http://localhost:11434/v1/responses'],
  ])('%s serves responses', async (provider, url) => {
    const sent = await sentFor({ provider }, '/v1/responses', { model: 'm', input: 'x' })
    expect(sent.url).toBe(url)
  })
})

describe('models that are only in the Responses API', () => {
  const urlOf = async (
    model: string,
    provider = 'openai',
    params: object = {},
    path = '/v1/chat/completions',
  ) => {
    const { url } = await sentFor({ provider, params } as never, path, { ...chat, model })
    return new URL(url ?? 'https://none.test').pathname
  }

  it.each([
    ...[
      'gpt-5-pro',
      'gpt-5-pro-2025-10-06',
      'gpt-5.2-pro',
      'gpt-5.5-pro-2026-04-23',
      'o1-pro',
      'o3-pro-2025-06-10',
    ],
    ...['gpt-5-codex', 'gpt-5.1-codex-max', 'gpt-5.3-codex', 'codex-mini-latest', 'o3-deep-research'],
    ...['o4-mini-deep-research-2025-06-26', 'computer-use-preview'],
  ])('%s of openai is requested there', async (model) => {
    expect(await urlOf(model)).toBe('/v1/responses')
  })

  it.each(['gpt-5', 'gpt-5.1', 'gpt-4o', 'o3', 'o3-mini', 'o4-mini', 'gpt-5-prose', 'my-gpt-5-pro'])(
    '%s of openai is requested as chat completions',
    async (model) => {
      expect(await urlOf(model)).toBe('/v1/chat/completions')
    },
  )

  it.each([
    ['openAI', undefined, '/openai/v1/responses'],
    ['openAI', '2025-04-01-preview', '/openai/responses'],
    ['foundry', undefined, '/api/projects/contoso/openai/v1/responses'],
  ])('are requested there at Azure, %s %s', async (azureResourceType, azureApiVersion, expected) => {
    const params = { azureResourceName: 'contoso', azureResourceType, azureApiVersion, apiKey: 'k' }
    expect(await urlOf('gpt-5-codex', 'azure', params)).toBe(expected)
    expect(await urlOf('gpt-5', 'azure', params)).toContain('/chat/completions')
  })

  it('have no completions', async () => {
    const { outcome } = await sentFor({}, '/v1/completions', { model: 'gpt-5-pro', prompt: 'x' })
    expect([outcome.status, outcome.text.includes('unsupported_endpoint')]).toEqual([400, true])
  })
})
