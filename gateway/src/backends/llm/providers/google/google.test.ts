import { describe, expect, it } from 'vitest'
import { bodyOf, call, fixtureGateway, jsonReply } from '../../../../../test/fixtures/llm.ts'
import { checkLlm } from '../../config/check.ts'
import type { LlmConfig, LlmParams } from '../../config/config.ts'

const chat = { messages: [{ role: 'user', content: 'x' }] }
const messages = { ...chat, max_tokens: 10 }
const project = { vertexProject: 'team' } satisfies LlmParams

type Sent = { path?: string; query?: string; model?: string; body?: object; headers?: Record<string, string> }

async function sentFor(
  provider: 'gemini' | 'vertex',
  params: LlmParams,
  { model = 'gemini-2.5-pro', body = chat, ...request }: Sent = {},
) {
  const config: LlmConfig = { models: [{ name: '*', provider, params: { apiKey: 'key', ...params } }] }
  const gateway = fixtureGateway(config, () => jsonReply({}))
  const outcome = await call(gateway, { ...request, body: { model, ...body } })
  const [sent] = gateway.sent
  return { outcome, sent, url: sent && sent.origin + sent.path }
}

function issuesOf(params: LlmParams): string[] {
  const reported: string[] = []
  checkLlm({ models: [{ name: '*', provider: 'vertex', params }] }, (path, message) =>
    reported.push(`${path.slice(2).join('.')}: ${message}`),
  )
  return reported
}

const claude = '/v1/projects/team/locations/global/publishers/anthropic/models'

describe('addresses of Vertex AI', () => {
  it.each([
    [undefined, 'https://aiplatform.googleapis.com/v1/projects/team/locations/global/'],
    ['global', 'https://aiplatform.googleapis.com/v1/projects/team/locations/global/'],
    ['eu', 'https://aiplatform.eu.rep.googleapis.com/v1/projects/team/locations/eu/'],
    ['us-central1', 'https://us-central1-aiplatform.googleapis.com/v1/projects/team/locations/us-central1/'],
  ])('of region %s', async (vertexRegion, expected) => {
    const { url } = await sentFor('vertex', { ...project, vertexRegion }, { model: 'meta/llama-4' })
    expect(url).toBe(`${expected}endpoints/openapi/chat/completions`)
  })

  it('follow a base address', async () => {
    const { url } = await sentFor(
      'vertex',
      { ...project, baseUrl: 'http://proxy.test/v' },
      { model: 'meta/llama-4' },
    )
    expect(url).toBe(
      'http://proxy.test/v/v1/projects/team/locations/global/endpoints/openapi/chat/completions',
    )
  })

  it.each([
    ['claude-sonnet-4-5', false, `${claude}/claude-sonnet-4-5:rawPredict`],
    ['claude-sonnet-4-5-20250929', true, `${claude}/claude-sonnet-4-5@20250929:streamRawPredict`],
    ['anthropic/claude-opus-4@20250514', false, `${claude}/claude-opus-4@20250514:rawPredict`],
    ['publishers/anthropic/models/claude-x', false, `${claude}/claude-x:rawPredict`],
    ['claude-../../x', false, `${claude}/claude-..%2F..%2Fx:rawPredict`],
  ])('of model %s, streamed %s', async (model, stream, expected) => {
    const { sent } = await sentFor('vertex', project, {
      path: '/v1/messages',
      model,
      body: { ...messages, stream },
    })
    expect(sent?.path).toBe(expected)
    const { model: named, ...body } = bodyOf(sent) as Record<string, unknown>
    expect(named).toBeUndefined()
    expect(body).toEqual({ ...messages, stream, anthropic_version: 'vertex-2023-10-16' })
  })

  it('of token counting, whose body has the model', async () => {
    const { sent } = await sentFor('vertex', project, {
      path: '/v1/messages/count_tokens',
      model: 'claude-opus-4-20250514',
    })
    expect(sent?.path).toBe(`${claude}/count-tokens:rawPredict`)
    expect(bodyOf(sent)).toEqual({
      ...chat,
      model: 'claude-opus-4@20250514',
      anthropic_version: 'vertex-2023-10-16',
    })
  })

  it('of translated chat completions to Claude', async () => {
    const { sent } = await sentFor('vertex', project, { model: 'claude-x', body: { ...chat, stream: true } })
    expect(sent?.path).toBe(`${claude}/claude-x:streamRawPredict`)
    expect(bodyOf(sent)).toMatchObject({ anthropic_version: 'vertex-2023-10-16', max_tokens: 8192 })
    expect(bodyOf(sent)).not.toHaveProperty('model')
  })
})

describe('settings of Vertex AI', () => {
  it.each([
    [{}, 'params.vertexProject: must be set for provider "vertex"'],
    [
      { vertexProject: 'a/../b' },
      'params.vertexProject: must be the id or the number of a Google Cloud project',
    ],
    [{ ...project, vertexRegion: 'evil.test/' }, 'params.vertexRegion: must be global, us, eu or a region'],
    [{ ...project, azureResourceName: 'x' }, 'params.azureResourceName: is only valid with provider "azure"'],
  ])('%j are reported', (params, expected) => {
    expect(issuesOf(params).some((issue) => issue.startsWith(expected))).toBe(true)
  })
})

describe('requests to Google', () => {
  it.each([
    ['AIza-key', { 'x-goog-api-key': 'AIza-key' }],
    ['ya29.token', { authorization: 'Bearer ya29.token' }],
    ['eyJ0.a.b', { authorization: 'Bearer eyJ0.a.b' }],
  ])('have the credential %s in its header', async (apiKey, expected) => {
    const { sent } = await sentFor('vertex', { ...project, apiKey }, { model: 'meta/llama-4' })
    expect(sent?.headers).toMatchObject(expected)
  })

  it('have neither credentials nor system parameters of the client', async () => {
    const headers = { 'x-goog-api-key': 'client', 'x-goog-user-project': 'other', 'x-team': 'a' }
    const query = '?key=client&access_token=x&%6Bey=y&$fields=a&fields=b&Alt=media&userProject=p&a=1'
    const { sent } = await sentFor('gemini', {}, { headers, query })
    expect(sent?.path).toMatch(/\?a=1$/)
    expect(sent?.headers['x-goog-user-project']).toBeUndefined()
    expect(sent?.headers['x-team']).toBe('a')
    expect(JSON.stringify(sent?.headers)).not.toContain('client')
  })
})
