import { describe, expect, it } from 'vitest'
import { bodyOf, call, fixtureGateway, jsonReply, streamReply } from '../../../../../test/fixtures/llm.ts'
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

const contents = { contents: [{ role: 'user', parts: [{ text: 'x' }] }] }
const models = '/v1/projects/team/locations/global/publishers/google/models'

describe('models of Google', () => {
  it.each([
    ['vertex', 'gemini-2.5-pro', false, `${models}/gemini-2.5-pro:generateContent`],
    ['vertex', 'google/gemini-2.5-pro', true, `${models}/gemini-2.5-pro:streamGenerateContent?alt=sse`],
    ['vertex', 'publishers/google/models/gemini-3-pro', false, `${models}/gemini-3-pro:generateContent`],
    ['gemini', 'gemini-2.5-pro', false, '/v1beta/models/gemini-2.5-pro:generateContent'],
    ['gemini', 'models/gemini-2.5-pro', true, '/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse'],
    ['gemini', 'tunedModels/mine', false, '/v1beta/tunedModels/mine:generateContent'],
    ['gemini', 'a/../../b', false, '/v1beta/models/a%2F..%2F..%2Fb:generateContent'],
    ['gemini', 'a?alt=json#', false, '/v1beta/models/a%3Falt%3Djson%23:generateContent'],
  ] as const)('of %s: %s, streamed %s, have the path %s', async (provider, model, stream, path) => {
    const params = provider === 'vertex' ? project : {}
    const { sent } = await sentFor(provider, params, { model, body: { ...chat, stream }, query: '?alt=json' })
    expect(sent?.path).toBe(path)
    expect(bodyOf(sent)).toEqual(contents)
  })

  it('are streamed by settings of the configuration', async () => {
    const settings = [{ overrides: { stream: true } }, { defaults: { stream: true } }]
    for (const fields of settings) {
      const config: LlmConfig = {
        models: [{ name: '*', provider: 'gemini', params: { apiKey: 'key' }, ...fields }],
      }
      const gateway = fixtureGateway(config, () => jsonReply({}))
      await call(gateway, { body: { model: 'gemini-2.5-pro', ...chat } })
      expect(gateway.sent[0]?.path).toContain(':streamGenerateContent?alt=sse')
    }
  })

  it.each([
    // A call that the gateway reads, in a form that it does not.
    ['gemini-3', '/v1/publishers/google/models/gemini-3:streamgeneratecontent', 404],
    ['claude-x', '/v1/publishers/anthropic/models/claude-x:RawPredict', 404],
    ['claude-x', '/v1/publishers/anthropic/models/claude-x%3AstreamRawPredict', 404],
  ])('of Vertex AI are not forwarded unread: %s at %s', async (model, path, expected) => {
    const models = [{ name: '*', provider: 'vertex' as const, params: { apiKey: 'key', ...project } }]
    const gateway = fixtureGateway({ models, passthrough: true }, () => jsonReply({}))
    const { status } = await call(gateway, { path, body: { model, ...contents } })
    expect([status, gateway.sent]).toEqual([expected, []])
  })

  it.each([
    ['gemini', {}, 'https://generativelanguage.googleapis.com/v1beta/openai/embeddings'],
    ['vertex', project, `https://aiplatform.googleapis.com${models}/gemini-embedding-001:predict`],
  ] as const)('for embeddings of %s', async (provider, params, expected) => {
    const request = { path: '/v1/embeddings', model: 'gemini-embedding-001', body: { input: 'a' } }
    expect((await sentFor(provider, params, request)).url).toBe(expected)
  })

  it.each(['/v1/messages', '/v1/responses'])('serve %s by translation', async (path) => {
    const body = path === '/v1/messages' ? messages : { input: 'x' }
    const { sent } = await sentFor('gemini', {}, { path, body })
    expect(sent?.path).toBe('/v1beta/models/gemini-2.5-pro:generateContent')
    expect(bodyOf(sent)).toMatchObject(contents)
  })

  it('count tokens and cost of a stream whose counts follow the end of the content', async () => {
    const modelVersion = 'gemini-2.5-pro-002'
    const usageMetadata = {
      ...{ promptTokenCount: 7, candidatesTokenCount: 2, thoughtsTokenCount: 3, toolUsePromptTokenCount: 1 },
    }
    const events = [
      { candidates: [{ content: { parts: [{ text: 'Hi' }] }, finishReason: 'STOP' }], modelVersion },
      { usageMetadata, modelVersion },
    ]
    const text = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
    const config: LlmConfig = { models: [{ name: '*', provider: 'gemini', params: { apiKey: 'key' } }] }
    const gateway = fixtureGateway(config, () => streamReply([text]))
    const { text: answer, exchange } = await call(gateway, {
      body: { model: 'gemini-2.5-pro', ...chat, stream: true },
    })
    expect(answer).toContain('"completion_tokens":5')
    expect(answer.endsWith('data: [DONE]\n\n')).toBe(true)
    expect(exchange.facts.usage).toMatchObject({
      inputTokens: 8,
      outputTokens: 5,
      reasoningTokens: 3,
      estimated: false,
    })
    expect(exchange.facts.llm?.responseModel).toBe('gemini-2.5-pro-002')
  })

  it('report a stream that ends before its candidate', async () => {
    const text = `data: ${JSON.stringify({ candidates: [{ content: { parts: [{ text: 'finishReason' }] } }] })}\n\n`
    const config: LlmConfig = { models: [{ name: '*', provider: 'gemini', params: { apiKey: 'key' } }] }
    const gateway = fixtureGateway(config, () => streamReply([text]))
    const outcome = await call(gateway, { body: { model: 'gemini-2.5-pro', ...chat, stream: true } })
    expect(outcome.text).not.toContain('[DONE]')
    expect(outcome.text).toContain('upstream_reset')
  })
})

const gemini: LlmConfig = {
  models: [
    { name: 'fast', provider: 'gemini', params: { apiKey: 'key', model: 'gemini-2.5-flash' } },
    { name: 'gemini-*', provider: 'vertex', params: { apiKey: 'key', ...project } },
    { name: 'gpt', provider: 'openai', params: { apiKey: 'key' } },
    { name: 'jina', provider: 'jina', params: { apiKey: 'key' } },
  ],
}

async function nativeCall(path: string, { query = '', body = contents as object, method = 'POST' } = {}) {
  const gateway = fixtureGateway(gemini, () => jsonReply({ candidates: [] }))
  const outcome = await call(gateway, { path, query, body, method })
  return { ...outcome, sent: gateway.sent[0], json: JSON.parse(outcome.text) }
}

describe('clients of the Gemini API', () => {
  it.each([
    ['/v1beta/models/fast:generateContent', '', '/v1beta/models/gemini-2.5-flash:generateContent'],
    ['/team/v1/models/fast:countTokens', '?key=k', '/v1beta/models/gemini-2.5-flash:countTokens'],
    [
      '/v1beta1/projects/other/locations/x/publishers/google/models/gemini-3-pro:streamGenerateContent',
      '?alt=sse&key=k&a=1',
      `${models}/gemini-3-pro:streamGenerateContent?alt=sse&a=1`,
    ],
  ])('at %s%s reach %s with an unchanged body', async (path, query, expected) => {
    const { sent } = await nativeCall(path, { query })
    expect(sent?.path).toBe(expected)
    expect(bodyOf(sent)).toEqual(contents)
    expect(sent?.headers['x-goog-api-key']).toBe('key')
  })

  it('may repeat the model in the body', async () => {
    const body = { model: 'models/other', ...contents }
    const { sent } = await nativeCall('/v1beta/models/fast:generateContent', { body })
    expect(bodyOf(sent)).toEqual(contents)
  })

  it.each([
    ['/v1beta/models/lost:generateContent', '', 404, 'NOT_FOUND', 'model_not_found'],
    ['/v1beta/models/jina:generateContent', '', 400, 'INVALID_ARGUMENT', 'unsupported_endpoint'],
  ])('at %s%s are refused with %d in the shape of Google', async (path, query, code, status, reason) => {
    const { json, ...outcome } = await nativeCall(path, { query })
    expect(outcome.status).toBe(code)
    expect(json.error).toMatchObject({ code, status, details: [{ reason }] })
  })

  it.each([
    ['', 'application/json', '[{"candidates":[]},\r\n{"candidates":[{"finishReason":"STOP"}]}]'],
    ['?alt=json', 'application/json', '[{"candidates":[]},\r\n{"candidates":[{"finishReason":"STOP"}]}]'],
    [
      '?alt=sse',
      'text/event-stream',
      'data: {"candidates":[]}\n\ndata: {"candidates":[{"finishReason":"STOP"}]}\n\n',
    ],
  ])('receive a stream with the query %j as %s', async (query, type, expected) => {
    const events = 'data: {"candidates":[]}\n\ndata: {"candidates":[{"finishReason":"STOP"}]}\n\n'
    const gateway = fixtureGateway(gemini, () => streamReply([events]))
    const path = '/v1beta/models/fast:streamGenerateContent'
    const { text, headers } = await call(gateway, { path, query, body: contents })
    expect(text).toBe(expected)
    expect(headers['content-type']).toContain(type)
    expect(gateway.sent[0]?.path).toContain('?alt=sse')
  })

  it('receive an estimate of tokens from other providers', async () => {
    const { json, headers } = await nativeCall('/v1beta/models/gpt:countTokens')
    expect(json).toEqual({ totalTokens: 2 })
    expect(headers['x-tollgate-estimated']).toBe('true')
  })

  it('must use POST', async () => {
    expect((await nativeCall('/v1beta/models/fast:generateContent', { method: 'PUT' })).status).toBe(405)
  })

  it.each([
    ['/v1beta/Models/fast:generateContent'],
    ['/v1beta/models/fast:GenerateContent'],
    ['/v1beta/models/fast%3AgenerateContent'],
  ])('in another spelling (%s) are refused under passthrough', async (path) => {
    const gateway = fixtureGateway({ ...gemini, passthrough: true }, () => jsonReply({}))
    const { status } = await call(gateway, { path, body: contents })
    expect(status).toBeGreaterThanOrEqual(400)
    expect(gateway.sent).toHaveLength(0)
  })

  it('are counted by the limits of the configuration of generation', async () => {
    const gateway = fixtureGateway(gemini, () => jsonReply({ candidates: [] }))
    const generationConfig = { maxOutputTokens: 30, candidateCount: 2 }
    const { exchange } = await call(gateway, {
      path: '/v1beta/models/fast:generateContent',
      body: { ...contents, generationConfig },
    })
    const { tokens } = exchange.llm?.estimate?.(exchange) ?? { tokens: 0 }
    expect(tokens).toBe(60)
  })

  it('have prompts of the configuration', async () => {
    const [model] = gemini.models
    const prompts = {
      prepend: [{ role: 'system' as const, content: 'Be brief.' }],
      append: [{ role: 'assistant' as const, content: 'Sure:' }],
    }
    const gateway = fixtureGateway({ models: model ? [{ ...model, prompts }] : [] }, () => jsonReply({}))
    await call(gateway, {
      path: '/v1beta/models/fast:generateContent',
      body: { contents: { parts: { text: 'x' } }, system_instruction: { parts: [{ text: 'Own.' }] } },
    })
    expect(bodyOf(gateway.sent[0])).toEqual({
      system_instruction: { parts: [{ text: 'Be brief.' }, { text: 'Own.' }] },
      contents: [{ parts: { text: 'x' } }, { role: 'model', parts: [{ text: 'Sure:' }] }],
    })
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
