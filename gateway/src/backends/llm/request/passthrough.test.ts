import { describe, expect, it } from 'vitest'
import {
  call,
  chatBody,
  completion,
  type FixtureCall,
  fixtureGateway,
  jsonReply,
  streamReply,
} from '../../../../test/fixtures/llm.ts'
import { checkLlm } from '../config/check.ts'
import type { LlmConfig, ModelConfig } from '../config/config.ts'
import type { ModelSettings } from '../config/model-settings.ts'

const text = '{ "model":"m", "stream":true,\n "messages":[]}'

async function passed(model: Partial<ModelConfig>, request: FixtureCall, config: Partial<LlmConfig> = {}) {
  const models = [{ name: '*', provider: 'openai', ...model }]
  const gateway = fixtureGateway({ models, ...config }, ({ body }) =>
    String(body).includes('"stream":true')
      ? streamReply(['data: {"choices":[{"delta":{"content":"hi"}}]}\n\n', 'data: [DONE]\n\n'])
      : jsonReply(completion('hi')),
  )
  return { ...(await call(gateway, request)), sent: gateway.sent[0], metered: gateway.metered }
}

describe('passthrough of a model', () => {
  it('forwards body and path unchanged', async () => {
    for (const passthrough of ['detect', 'opaque'] as const) {
      const { sent, text: answer, exchange } = await passed({ passthrough }, { body: text })
      expect([String(sent?.body), sent?.path]).toEqual([text, '/v1/chat/completions'])
      expect(answer).toContain('[DONE]')
      expect(exchange.llm?.message).toBeUndefined()
    }
  })

  it('counts usage with detect only', async () => {
    const detected = await passed({ passthrough: 'detect' }, { body: chatBody })
    expect(detected.exchange.facts.usage).toMatchObject({ totalTokens: 12 })
    const opaque = await passed({ passthrough: 'opaque' }, { body: chatBody })
    expect(opaque.exchange.facts.usage).toBeUndefined()
  })

  it('sends the configured model and the credential', async () => {
    const params = { model: 'real', apiKey: 'k' }
    const { sent } = await passed({ passthrough: 'opaque', params }, { body: text })
    expect(String(sent?.body)).toBe(text.replace('"m"', '"real"'))
    expect(sent?.headers['authorization']).toBe('Bearer k')
  })

  it('does not translate', async () => {
    const { sent } = await passed({ passthrough: 'detect' }, { path: '/v1/messages', body: chatBody })
    expect(sent?.path).toBe('/v1/messages')
  })

  it('forwards paths of unknown calls, for its models only', async () => {
    const body = { model: 'm' }
    const known = await passed({ passthrough: 'opaque' }, { path: '/v1/videos/remix', body })
    expect([known.status, known.sent?.path]).toEqual([200, '/v1/videos/remix'])
    const models = [
      { name: 'a', provider: 'openai', passthrough: 'opaque' as const },
      { name: 'm', provider: 'openai' },
    ]
    const refused = await passed({}, { path: '/v1/videos/remix', body }, { models })
    expect([refused.status, refused.sent]).toEqual([404, undefined])
  })

  it('sends known calls to the path of the provider, with the model of the path', async () => {
    const azure = {
      provider: 'azure',
      params: {
        azureResourceName: 'contoso',
        azureResourceType: 'openAI' as const,
        azureApiVersion: '2024-10-21',
        apiKey: 'k',
      },
    }
    const dated = await passed({ passthrough: 'detect', ...azure }, { body: chatBody })
    expect(dated.sent?.path).toBe('/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21')
    const params = { ...azure.params, azureApiVersion: 'v1' }
    const named = await passed(
      { passthrough: 'opaque', ...azure, params },
      { path: '/openai/deployments/m/chat/completions', body: { messages: [] } },
    )
    expect(named.sent?.path).toBe('/openai/v1/chat/completions')
    expect(JSON.parse(String(named.sent?.body))).toMatchObject({ model: 'm' })
  })

  it.each([
    '/v1/deployments/expensive/chat/completions',
    '/v1/deployments/m/chat/completions',
    '/v1/Deployments/expensive/videos/remix',
    '/v1/deployments%2Fexpensive/videos/remix',
    '/v1/x/../deployments/expensive/videos/remix',
  ])('refuses %s, which a provider serves for another model or as a known call', async (path) => {
    const azure = {
      provider: 'azure',
      params: {
        azureResourceName: 'contoso',
        azureResourceType: 'openAI' as const,
        azureApiVersion: '2024-10-21',
        apiKey: 'k',
      },
    }
    const { status, sent } = await passed({ passthrough: 'opaque', ...azure }, { path, body: { model: 'm' } })
    expect([status, sent]).toEqual([404, undefined])
    const own = await passed(
      { passthrough: 'opaque', ...azure },
      { path: '/v1/deployments/m/videos/remix', body: { model: 'm' } },
    )
    expect(own.sent?.path).toBe('/openai/deployments/m/videos/remix?api-version=2024-10-21')
  })

  it('refuses another spelling of a configured path', async () => {
    const params = { baseUrl: 'http://own/v1', pathOverride: '/v1/chat' }
    const request = { path: '/v1/chat', body: { model: 'm' } }
    const { status, sent } = await passed({ params, passthrough: 'opaque' }, request)
    expect([status, sent]).toEqual([404, undefined])
    const { pathOverride: _, ...free } = params
    expect((await passed({ params: free, passthrough: 'opaque' }, request)).sent?.path).toBe('/v1/chat')
  })

  it('leaves a failover with other models to the usual treatment', async () => {
    const models = [
      { name: 'a', provider: 'openai', passthrough: 'opaque' as const },
      { name: 'b', provider: 'openai' },
    ]
    const targets = models.map(({ name }, priority) => ({ model: name, priority }))
    const virtualModels = [{ name: 'm', routing: { failover: { targets } } as never }]
    const { exchange } = await passed({}, { body: { ...chatBody, model: 'm' } }, { models, virtualModels })
    expect(exchange.llm?.message).toBeDefined()
  })

  it('is not valid with settings that it bypasses', () => {
    const found: string[] = []
    const model = { name: 'a', provider: 'echo', passthrough: 'detect' as const, overrides: { a: 1 } }
    checkLlm({ models: [model], guardrails: {} }, (path, message) =>
      found.push(`${path.join('.')}: ${message}`),
    )
    expect(found).toEqual([
      'models.0.overrides: is not valid with passthrough: requests are forwarded unchanged',
      expect.stringMatching(/^models\.0\.passthrough: is not valid with guardrails of llm/),
    ])
  })

  it('is not valid with settings of its provider that change requests', () => {
    const found: string[] = []
    const shared = { name: 'team', provider: 'openai' as const }
    const model = { name: '*', provider: { reference: 'team' }, passthrough: 'detect' as const }
    const check = (defaults: ModelSettings) =>
      checkLlm({ providers: [{ ...shared, defaults }], models: [model] }, (path, message) =>
        found.push(`${path.join('.')}: ${message}`),
      )
    check({ health: {}, defaults: {} })
    expect(found).toEqual([])
    check({ overrides: { user: 'x' }, prompts: { prepend: [{ role: 'system', content: 'x' }] } })
    expect(found).toEqual([
      expect.stringMatching(
        /^models\.0\.passthrough: is not valid with overrides in the defaults of provider "team"/,
      ),
      expect.stringMatching(/^models\.0\.passthrough: is not valid with prompts in/),
    ])
  })
})
