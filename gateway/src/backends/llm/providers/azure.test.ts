import { describe, expect, it } from 'vitest'
import { bodyOf, call, fixtureGateway, jsonReply } from '../../../../test/fixtures/llm.ts'
import { checkLlm } from '../config/check.ts'
import type { LlmConfig, LlmParams } from '../config/config.ts'

const chat = { messages: [{ role: 'user', content: 'x' }] }
const openAI = { azureResourceName: 'contoso', azureResourceType: 'openAI' } satisfies LlmParams
const foundry = { azureResourceName: 'contoso', azureResourceType: 'foundry' } satisfies LlmParams

type Sent = { path?: string; query?: string; model?: string; body?: object; headers?: Record<string, string> }

async function sentFor(params: LlmParams, { model = 'gpt-4o', body = chat, ...request }: Sent = {}) {
  const config: LlmConfig = {
    models: [{ name: '*', provider: 'azure', params: { apiKey: 'key', ...params } }],
  }
  const gateway = fixtureGateway(config, () => jsonReply({}))
  const outcome = await call(gateway, { ...request, body: { model, ...body } })
  const [sent] = gateway.sent
  return { outcome, sent, url: sent && sent.origin + sent.path }
}

function issuesOf(params: LlmParams): string[] {
  const reported: string[] = []
  checkLlm({ models: [{ name: '*', provider: 'azure', params }] }, (path, message) =>
    reported.push(`${path.slice(2).join('.')}: ${message}`),
  )
  return reported
}

const dated = { ...openAI, azureApiVersion: '2024-10-21' }

describe('addresses of Azure OpenAI', () => {
  it.each([
    [openAI, '/v1/chat/completions', 'https://contoso.openai.azure.com/openai/v1/chat/completions'],
    [openAI, '/v1/responses', 'https://contoso.openai.azure.com/openai/v1/responses'],
    [openAI, '/v1/embeddings', 'https://contoso.openai.azure.com/openai/v1/embeddings'],
    [
      { ...openAI, azureApiVersion: 'preview' },
      '/v1/responses',
      'https://contoso.openai.azure.com/openai/v1/responses?api-version=preview',
    ],
    [
      dated,
      '/v1/chat/completions',
      'https://contoso.openai.azure.com/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21',
    ],
    [dated, '/v1/responses', 'https://contoso.openai.azure.com/openai/responses?api-version=2024-10-21'],
    [
      { ...openAI, baseUrl: 'http://proxy.test/azure' },
      '/v1/chat/completions',
      'http://proxy.test/azure/openai/v1/chat/completions',
    ],
  ])('with %j for %s are %s', async (params, path, expected) => {
    expect((await sentFor(params, { path })).url).toBe(expected)
  })

  it.each([
    [openAI, '?api-version=2024-02-01&a=1', '?a=1'],
    [openAI, '?api%2Dversion=x&API-Version=y&b', '?b'],
    [dated, '?api-version=2024-02-01&a=1', '?api-version=2024-10-21&a=1'],
  ])('with %j replace the version in %s', async (params, query, expected) => {
    expect(new URL((await sentFor(params, { query })).url ?? '').search).toBe(expected)
  })

  it('contain the model as one segment', async () => {
    expect((await sentFor(dated, { model: 'a/../b?c' })).sent?.path).toBe(
      '/openai/deployments/a%2F..%2Fb%3Fc/chat/completions?api-version=2024-10-21',
    )
  })

  it.each(['..', '.'])('refuse the model %j', async (model) => {
    const { outcome, sent } = await sentFor(dated, { model })
    expect([outcome.status, sent]).toEqual([400, undefined])
  })

  it('serve messages by translation', async () => {
    const { url } = await sentFor(openAI, { path: '/v1/messages', body: { ...chat, max_tokens: 5 } })
    expect(url).toBe('https://contoso.openai.azure.com/openai/v1/chat/completions')
  })
})

describe('addresses of Azure AI Foundry', () => {
  it.each([
    [foundry, 'gpt-4o', '/v1/chat/completions', '/api/projects/contoso/openai/v1/chat/completions'],
    [
      { ...foundry, azureProjectName: 'team' },
      'gpt-4o',
      '/v1/responses',
      '/api/projects/team/openai/v1/responses',
    ],
    [foundry, 'claude-sonnet-4-5', '/v1/messages', '/anthropic/v1/messages'],
    [foundry, 'claude-sonnet-4-5', '/v1/messages/count_tokens', '/anthropic/v1/messages/count_tokens'],
    [foundry, 'Claude-sonnet-4-5', '/v1/chat/completions', '/anthropic/v1/messages'],
    [
      { ...foundry, azureResourceType: 'aiServices' as const },
      'claude-x',
      '/v1/messages',
      '/anthropic/v1/messages',
    ],
  ])('with %j for %s at %s are %s', async (params, model, path, expected) => {
    const { sent } = await sentFor(params, { model, path, body: { ...chat, max_tokens: 5 } })
    expect(sent).toMatchObject({
      origin: 'https://contoso.services.ai.azure.com',
      path: expected,
      headers: { 'anthropic-version': '2023-06-01' },
    })
  })

  it('refuse embeddings of Claude', async () => {
    const { outcome } = await sentFor(foundry, { model: 'claude-x', path: '/v1/embeddings' })
    expect(outcome.text).toContain('does not offer embeddings')
  })
})

describe('requests to Azure', () => {
  it('have a key in its header', async () => {
    const { headers } = (await sentFor(openAI)).sent ?? {}
    expect([headers?.['api-key'], headers?.['authorization']]).toEqual(['key', undefined])
  })

  it('have a token of Entra as bearer token', async () => {
    const { headers } = (await sentFor({ ...openAI, apiKey: 'eyJh.b.c' })).sent ?? {}
    expect([headers?.['api-key'], headers?.['authorization']]).toEqual([undefined, 'Bearer eyJh.b.c'])
  })

  it('never have the credential of the client', async () => {
    const headers = { authorization: 'Bearer client', 'api-key': 'client', 'x-api-key': 'client' }
    const { sent } = await sentFor(openAI, { headers })
    expect(JSON.stringify(sent?.headers)).not.toContain('client')
  })

  it('without a key have a token of the implicit identity', async () => {
    const config: LlmConfig = { models: [{ name: '*', provider: 'azure', params: openAI }] }
    const gateway = fixtureGateway(config, ({ origin }) =>
      origin === 'http://169.254.169.254'
        ? jsonReply({ access_token: 'entra', expires_in: '3600' })
        : jsonReply({ model: 'gpt-4o' }),
    )
    const { status } = await call(gateway, { body: { model: 'gpt-4o', ...chat } })
    expect(status).toBe(200)
    expect(gateway.sent[1]?.headers['authorization']).toBe('Bearer entra')
  })

  it.each<[LlmParams, boolean]>([
    [openAI, true],
    [dated, true],
    [{ ...openAI, azureApiVersion: '2024-02-01' }, false],
  ])('with %j have max_completion_tokens: %s', async (params, isRenamed) => {
    const { sent } = await sentFor(params, { body: { ...chat, max_tokens: 5 } })
    expect(Object.hasOwn(bodyOf(sent) as object, 'max_completion_tokens')).toBe(isRenamed)
  })
})

describe('settings of Azure', () => {
  it.each([openAI, foundry, dated, { ...foundry, azureProjectName: 'a_b.c-1' }])('%j are valid', (params) => {
    expect(issuesOf(params)).toEqual([])
  })

  it.each([
    [{}, 'params.azureResourceName: must be set for provider "azure"'],
    [{ ...openAI, azureResourceName: 'a.evil.test/' }, 'params.azureResourceName: must be letters'],
    [{ ...openAI, azureApiVersion: 'v1&x=1' }, 'params.azureApiVersion: must be v1, preview or a date'],
    [{ ...foundry, azureProjectName: '../x' }, 'params.azureProjectName: must be letters'],
    [
      { ...foundry, azureApiVersion: '2024-10-21' },
      'params.azureApiVersion: must be v1 with resourceType foundry',
    ],
    [
      { ...openAI, azureProjectName: 'p' },
      'params.azureProjectName: is only valid with resourceType foundry',
    ],
  ])('%j are reported: %s', (params, message) => {
    expect(issuesOf(params)[0]).toContain(message)
  })

  it('are reported on other providers', () => {
    const reported: string[] = []
    checkLlm({ models: [{ name: '*', provider: 'openai', params: openAI }] }, (path, message) =>
      reported.push(`${path.join('.')}: ${message}`),
    )
    expect(reported).toEqual([
      'models.0.params.azureResourceName: is only valid with provider "azure"',
      'models.0.params.azureResourceType: is only valid with provider "azure"',
    ])
  })
})
