import { describe, expect, it } from 'vitest'
import {
  bodyOf,
  call,
  chatBody,
  completion,
  type FixtureCall,
  fixtureGateway,
  jsonReply,
  streamReply,
} from '../../../../test/fixtures/llm.ts'
import type { LlmConfig, ModelConfig } from '../config/config.ts'

const done = 'data: [DONE]\n\n'

async function sentFor(model: Partial<ModelConfig>, request: FixtureCall, config: Partial<LlmConfig> = {}) {
  const gateway = fixtureGateway(
    { models: [{ name: '*', provider: 'openai', ...model }], ...config },
    ({ body }) => (/"stream": ?true/.test(String(body)) ? streamReply([done]) : jsonReply(completion('hi'))),
  )
  const outcome = await call(gateway, request)
  return { outcome, sent: gateway.sent[0], text: String(gateway.sent[0]?.body) }
}

describe('the body sent upstream', () => {
  const body = '{ "model" : "gpt-4o",\n "seed":12345678901234567890, "x_unknown" : [1.0], "messages":[]}'

  it('equals the client bytes without edits', async () => {
    expect((await sentFor({}, { body })).text).toBe(body)
  })

  it('has the configured model and is otherwise unchanged', async () => {
    const { text } = await sentFor({ params: { model: 'gpt-4o-mini' } }, { body })
    expect(text).toBe(body.replace('"gpt-4o"', '"gpt-4o-mini"'))
  })

  it('has overrides always, and defaults for absent fields but not for null', async () => {
    const model = {
      params: { model: 'configured' },
      overrides: { store: false, seed: 7 },
      defaults: { temperature: 0.5, store: true, x_unknown: 1, top_p: null },
    }
    const { sent } = await sentFor(model, { body: { ...chatBody, seed: 1, store: true, x_unknown: null } })
    expect(bodyOf(sent)).toEqual({
      ...chatBody,
      model: 'configured',
      seed: 7,
      store: false,
      x_unknown: null,
      temperature: 0.5,
      top_p: null,
    })
  })

  it('applies an override of the model last', async () => {
    const { sent } = await sentFor({ params: { model: 'a' }, overrides: { model: 'b' } }, { body: chatBody })
    expect(bodyOf(sent)).toMatchObject({ model: 'b' })
  })

  it('applies model defaults before provider defaults', async () => {
    const { sent } = await sentFor(
      { provider: { reference: 'shared' }, defaults: { b: 2 } },
      { body: chatBody },
      { providers: [{ name: 'shared', provider: 'openai', defaults: { defaults: { a: 1, b: 1 } } }] },
    )
    expect(bodyOf(sent)).toEqual({ ...chatBody, a: 1, b: 2 })
  })

  it.each([
    [{ stream: true }, { include_usage: true }],
    [{ stream: true, stream_options: null }, { include_usage: true }],
    [{ stream: true, stream_options: {} }, { include_usage: true }],
    [
      { stream: true, stream_options: { include_usage: false, x: 1 } },
      { include_usage: true, x: 1 },
    ],
    [{ stream: true, stream_options: { include_usage: true } }, { include_usage: true }],
    [{ stream: false }, undefined],
  ])('requests usage of all streams: %j', async (fields, expected) => {
    const { sent } = await sentFor(
      { provider: 'custom', params: { baseUrl: 'http://upstream' } },
      { body: { ...chatBody, ...fields } },
    )
    expect(bodyOf(sent)).toEqual({ ...chatBody, ...fields, ...(expected && { stream_options: expected }) })
  })

  it('does not request usage of responses, which always report it', async () => {
    const request = { path: '/v1/responses', body: { model: 'gpt-4o', input: 'x', stream: true } }
    expect(bodyOf((await sentFor({}, request)).sent)).toEqual(request.body)
  })

  it.each([
    ['openai', 'gpt-4o', true],
    ['openai', 'o3-mini', true],
    ['openai', 'omni', false],
    ['openai', 'llama-3', false],
    ['groq', 'gpt-4o', false],
  ])('sends max_tokens to %s for %s as max_completion_tokens: %s', async (provider, model, renamed) => {
    const { sent } = await sentFor({ provider }, { body: { model, max_tokens: 5 } })
    expect(bodyOf(sent)).toEqual(renamed ? { model, max_completion_tokens: 5 } : { model, max_tokens: 5 })
  })

  it('preserves max_completion_tokens if the client sent both', async () => {
    const { sent } = await sentFor({}, { body: { model: 'gpt-4o', max_tokens: 5, max_completion_tokens: 6 } })
    expect(bodyOf(sent)).toEqual({ model: 'gpt-4o', max_completion_tokens: 6 })
  })

  it('is translated for a provider of the other chat API', async () => {
    const { sent } = await sentFor(
      { provider: 'anthropic', params: { model: 'claude-x' }, defaults: { max_tokens: 77 } },
      { body: chatBody },
    )
    expect(sent).toMatchObject({ origin: 'https://api.anthropic.com', path: '/v1/messages' })
    expect(bodyOf(sent)).toMatchObject({ model: 'claude-x', max_tokens: 77, messages: [{ role: 'user' }] })
  })

  it('preserves large integers in translation', async () => {
    const parameters = '{"type":"object","properties":{"id":{"const":12345678901234567890}}}'
    const tools = `[{"type":"function","function":{"name":"f","parameters":${parameters}}}]`
    const body = `{"model":"m","messages":[{"role":"user","content":"x"}],"tools":${tools}}`
    expect((await sentFor({ provider: 'anthropic' }, { body })).text).toContain(parameters)
  })

  it('requests usage of a translated stream', async () => {
    const body = { model: 'gpt-4o', max_tokens: 5, stream: true, messages: [{ role: 'user', content: 'x' }] }
    const { sent } = await sentFor({}, { path: '/v1/messages', body })
    expect(sent?.path).toBe('/v1/chat/completions')
    expect(bodyOf(sent)).toMatchObject({
      stream: true,
      stream_options: { include_usage: true },
      max_completion_tokens: 5,
    })
  })

  it('reports the field that cannot be translated', async () => {
    const { outcome, sent } = await sentFor({ provider: 'anthropic' }, { body: { ...chatBody, n: 2 } })
    expect(outcome.status).toBe(400)
    expect(JSON.parse(outcome.text).error).toMatchObject({ code: 'unsupported_parameter', param: 'n' })
    expect(sent).toBeUndefined()
  })

  it('reports the provider without support for a call', async () => {
    const { outcome } = await sentFor(
      { provider: 'anthropic' },
      { path: '/v1/embeddings', body: { model: 'e', input: 'x' } },
    )
    expect(outcome.status).toBe(400)
    expect(JSON.parse(outcome.text).error.message).toMatch(
      /^provider anthropic of model "\*" does not offer embeddings: use a model of another provider, such as openai, /,
    )
  })
})

describe('the address', () => {
  it.each([
    ['openai', undefined, 'https://api.openai.com/v1/chat/completions'],
    ['openai', 'http://upstream:8000', 'http://upstream:8000/v1/chat/completions'],
    ['openai', 'http://upstream:8000/', 'http://upstream:8000/v1/chat/completions'],
    ['openai', 'http://upstream/a/v2/', 'http://upstream/a/v2/chat/completions'],
    ['custom', 'http://upstream', 'http://upstream/v1/chat/completions'],
    ['ollama', undefined, 'http://localhost:11434/v1/chat/completions'],
    ['groq', undefined, 'https://api.groq.com/openai/v1/chat/completions'],
    ['anthropic', 'http://upstream', 'http://upstream/v1/messages'],
    ['anthropic', 'http://upstream/v1', 'http://upstream/v1/messages'],
    ['anthropic', 'http://upstream/a/v1', 'http://upstream/a/v1/messages'],
    ['anthropic', 'http://upstream/a', 'http://upstream/a/messages'],
  ])('of %s at %s is %s', async (provider, baseUrl, expected) => {
    const { sent } = await sentFor({ provider, params: baseUrl ? { baseUrl } : {} }, { body: chatBody })
    expect(`${sent?.origin}${sent?.path}`).toBe(expected)
  })

  it('has no query of a token count of Vertex AI', async () => {
    const request = {
      path: '/v1/projects/p/locations/l/publishers/anthropic/models/count-tokens:rawPredict',
      query: '?key=secret',
      body: { model: 'claude-x', messages: [{ role: 'user', content: 'x' }] },
    }
    expect((await sentFor({ provider: 'anthropic' }, request)).sent?.path).toBe('/v1/messages/count_tokens')
  })

  it('preserves the query of the client', async () => {
    expect((await sentFor({}, { query: '?api-version=1', body: chatBody })).sent?.path).toBe(
      '/v1/chat/completions?api-version=1',
    )
  })
})

describe('the headers', () => {
  const client = {
    host: 'gateway',
    'content-length': '3',
    'content-type': 'application/json',
    'accept-encoding': 'gzip',
    connection: 'keep-alive, x-hop',
    'x-hop': '1',
    'keep-alive': 'timeout=5',
    cookie: 'session=secret',
    forwarded: 'for=1.2.3.4',
    'x-forwarded-for': '1.2.3.4',
    'x-real-ip': '1.2.3.4',
    origin: 'https://site',
    referer: 'https://site/page',
    'sec-fetch-mode': 'cors',
    'access-control-request-method': 'POST',
    expect: '100-continue',
    'user-agent': 'sdk/1',
    'openai-beta': 'assistants=v2',
    'idempotency-key': 'abc',
  }

  it('contain no data about the client except for the call', async () => {
    const { sent } = await sentFor(
      { params: { apiKey: 'provider-key' } },
      { headers: client, body: chatBody },
    )
    expect(sent?.headers).toEqual({
      'content-type': 'application/json',
      'accept-encoding': 'identity',
      'user-agent': 'sdk/1',
      'openai-beta': 'assistants=v2',
      'idempotency-key': 'abc',
      authorization: 'Bearer provider-key',
    })
  })

  it('contain the configured credential in place of the client’s', async () => {
    const headers = { authorization: 'Bearer client', 'x-api-key': 'client' }
    const { sent } = await sentFor(
      { provider: 'anthropic', params: { apiKey: 'k' } },
      { headers, body: chatBody },
    )
    expect(sent?.headers).toMatchObject({ 'x-api-key': 'k' })
    expect(sent?.headers).not.toHaveProperty('authorization')
  })

  it.each([
    ['openai', { authorization: 'Bearer client' }, { authorization: 'Bearer client' }],
    ['openai', { 'x-api-key': 'client' }, { authorization: 'Bearer client' }],
    ['anthropic', { authorization: 'bearer client' }, { 'x-api-key': 'client' }],
    ['anthropic', { authorization: 'Bearer sk-ant-oat-1' }, { authorization: 'Bearer sk-ant-oat-1' }],
  ])('of %s contain an unconsumed credential: %j', async (provider, headers, expected) => {
    const { sent } = await sentFor({ provider }, { headers, body: chatBody })
    expect(sent?.headers).toMatchObject(expected)
    expect(
      Object.keys(sent?.headers ?? {}).filter((name) => name in { authorization: 1, 'x-api-key': 1 }),
    ).toHaveLength(1)
  })

  it('contain a credential from a file', async () => {
    const { sent } = await sentFor({ params: { apiKey: { file: '/run/secret' } } }, { body: chatBody })
    expect(sent?.headers['authorization']).toBe('Bearer content-of-/run/secret')
  })

  it('reject a file without a credential', async () => {
    const unreadable = sentFor({ params: { apiKey: { file: 'two words' } } }, { body: chatBody })
    await expect(unreadable).rejects.toThrow('two words does not contain a credential')
  })

  it('contain the Anthropic version unless the client sent one', async () => {
    const request = { path: '/v1/messages', body: { model: 'c', max_tokens: 1, messages: [] } }
    expect((await sentFor({ provider: 'anthropic' }, request)).sent?.headers['anthropic-version']).toBe(
      '2023-06-01',
    )
    const headers = { 'anthropic-version': '2024-01-01', 'anthropic-beta': 'x' }
    expect((await sentFor({ provider: 'anthropic' }, { ...request, headers })).sent?.headers).toMatchObject(
      headers,
    )
  })

  it('have the configured timeouts', async () => {
    const config = { timeouts: { firstByte: '2s', idle: '500ms' } }
    expect((await sentFor({}, { body: chatBody }, config)).sent).toMatchObject({
      firstByteTimeoutMs: 2000,
      idleTimeoutMs: 500,
    })
  })
})
