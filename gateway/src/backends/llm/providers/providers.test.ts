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
