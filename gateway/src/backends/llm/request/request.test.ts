import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import {
  bodyOf,
  call,
  chatBody,
  completion,
  type FixtureCall,
  fixtureGateway,
  jsonReply,
} from '../../../../test/fixtures/llm.ts'

const config = { models: [{ name: 'gpt-4o', provider: 'openai' }] }
const gateway = (options = {}) => fixtureGateway(config, () => jsonReply(completion('hi')), options)

describe('readRequest', () => {
  it.each<[string, FixtureCall, number, string, string | null]>([
    ['an unknown path', { path: '/v1/threads', body: chatBody }, 404, 'not_found', null],
    ['a wrong method', { method: 'GET' }, 405, 'method_not_allowed', null],
    ['a wrong method on models', { method: 'POST', path: '/v1/models' }, 405, 'method_not_allowed', null],
    [
      'another content type',
      { headers: { 'content-type': 'text/plain' }, body: chatBody },
      415,
      'unsupported_content_type',
      null,
    ],
    ['no body', {}, 400, 'invalid_request_body', null],
    ['broken JSON', { body: '{"model":' }, 400, 'invalid_request_body', null],
    ['an array', { body: '[]' }, 400, 'invalid_request_body', null],
    [
      'bytes that are no UTF-8',
      { body: Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]) },
      400,
      'invalid_request_body',
      null,
    ],
    [
      'duplicate keys',
      { body: '{"model":"gpt-4o","mod\\u0065l":"other"}' },
      400,
      'invalid_request_body',
      'model',
    ],
    [
      'duplicate keys deep inside',
      { body: '{"model":"gpt-4o","messages":[{"role":"user","role":"system"}]}' },
      400,
      'invalid_request_body',
      'messages[0].role',
    ],
    [
      'a key that folds to a field',
      { body: { ...chatBody, me\u017f\u017fages: [] } },
      400,
      'invalid_request_body',
      'me\u017f\u017fages',
    ],
    [
      'a key of a part that folds to a field',
      { body: { model: 'gpt-4o', messages: [{ role: 'user', content: [{ type: 'text', Text: 'x' }] }] } },
      400,
      'invalid_request_body',
      'messages[0].content[0].Text',
    ],
    [
      'another charset',
      { headers: { 'content-type': 'application/json; charset=utf-7' }, body: chatBody },
      415,
      'unsupported_content_type',
      null,
    ],
    ['no model', { body: { messages: [] } }, 400, 'missing_model', 'model'],
    ['a model that is no string', { body: { model: 3 } }, 400, 'missing_model', 'model'],
    ['an empty model', { body: { model: '' } }, 400, 'missing_model', 'model'],
    ['an unknown model', { body: { model: 'nope' } }, 404, 'model_not_found', 'model'],
    [
      'a model the key may not use',
      { body: chatBody, mayUseModel: () => false },
      403,
      'model_not_allowed',
      'model',
    ],
    [
      'a model the key may not use among those to fall back to',
      { body: { ...chatBody, models: ['gpt-4o', 'other'] }, mayUseModel: (name: string) => name !== 'other' },
      403,
      'model_not_allowed',
      'models',
    ],
    [
      'a model the key may not use in place of one that declines',
      {
        body: { ...chatBody, fallbacks: [{ model: 'gpt-4o' }, { model: 'other' }] },
        mayUseModel: (name: string) => name !== 'other',
      },
      403,
      'model_not_allowed',
      'fallbacks',
    ],
    [
      'a model that the provider chooses, where the key names some',
      { body: { ...chatBody, fallbacks: 'default' }, mayUseModel: () => true },
      403,
      'model_not_allowed',
      'fallbacks',
    ],
    [
      'a model of a tool that the key may not use',
      {
        body: { ...chatBody, tools: [{ type: 'image_generation', model: 'other' }] },
        mayUseModel: (name: string) => name !== 'other',
      },
      403,
      'model_not_allowed',
      'tools[0].model',
    ],
    [
      'stream that is no boolean',
      { body: { ...chatBody, stream: 'true' } },
      400,
      'invalid_request_body',
      'stream',
    ],
    [
      'stream_options that is no object',
      { body: { ...chatBody, stream_options: 'x' } },
      400,
      'invalid_request_body',
      'stream_options',
    ],
    [
      'include_usage that is no boolean',
      { body: { ...chatBody, stream: true, stream_options: { include_usage: 0 } } },
      400,
      'invalid_request_body',
      'stream_options.include_usage',
    ],
    [
      'a content coding nobody knows',
      { headers: { 'content-encoding': 'snappy' }, body: chatBody },
      415,
      'unsupported_encoding',
      null,
    ],
    [
      'two codings',
      { headers: { 'content-encoding': 'gzip, br' }, body: chatBody },
      415,
      'unsupported_encoding',
      null,
    ],
    [
      'a body that is not in its coding',
      { headers: { 'content-encoding': 'gzip' }, body: chatBody },
      400,
      'request_body_decode_failed',
      null,
    ],
  ])('rejects %s', async (_, request, status, code, param) => {
    const { sent, ...rest } = gateway()
    const outcome = await call({ sent, ...rest }, request)
    expect(outcome.status).toBe(status)
    expect(outcome.headers['content-type']).toBe('application/json')
    expect(JSON.parse(outcome.text)).toEqual({
      error: { message: expect.any(String), type: 'invalid_request_error', param, code },
    })
    expect(sent).toEqual([])
    expect(outcome.exchange.facts.usage).toBeUndefined()
  })

  it('reports the allowed methods', async () => {
    expect((await call(gateway(), { method: 'PUT' })).headers['allow']).toBe('POST')
    expect((await call(gateway(), { method: 'PUT', path: '/v1/models' })).headers['allow']).toBe('GET, HEAD')
  })

  it('uses common terms in messages', async () => {
    const messageFor = async (request: FixtureCall) =>
      JSON.parse((await call(gateway(), request)).text).error.message
    expect(await messageFor({ body: { model: 'nope' } })).toBe('Model not found')
    expect(await messageFor({ body: chatBody, mayUseModel: () => false })).toBe(
      'Model is not allowed for this API key',
    )
    expect(await messageFor({ body: '{"model":"a","model":"b"}' })).toBe('duplicate key "model"')
  })

  it('rejects in the error shape of the client API', async () => {
    const { status, text } = await call(gateway(), { path: '/v1/messages', body: { model: 'nope' } })
    expect(status).toBe(404)
    expect(JSON.parse(text)).toEqual({
      type: 'error',
      error: { type: 'not_found_error', message: 'Model not found' },
    })
  })

  it('rejects a body over the limit, before or after decompression', async () => {
    const large = { ...chatBody, user: 'x'.repeat(5000) }
    for (const request of [
      { body: large },
      { body: gzipSync(JSON.stringify(large)), headers: { 'content-encoding': 'gzip' } },
      { body: gzipSync(Buffer.alloc(50_000_000)), headers: { 'content-encoding': 'gzip' } },
    ]) {
      const { status, text } = await call(gateway({ maxBufferSize: 4096 }), request)
      expect(status).toBe(413)
      expect(JSON.parse(text).error.code).toBe('request_body_too_large')
    }
  })

  it.each([
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
    ['zstd', zstdCompressSync],
  ])('decodes %s', async (encoding, compress) => {
    const target = gateway()
    const { status } = await call(target, {
      headers: { 'content-encoding': encoding },
      body: compress(JSON.stringify(chatBody)),
    })
    expect(status).toBe(200)
    expect(bodyOf(target.sent[0])).toEqual(chatBody)
    expect(target.sent[0]?.headers).not.toHaveProperty('content-encoding')
  })

  it.each([
    'application/json',
    'application/json; charset=utf-8',
    'Application/JSON',
    'application/vnd.api+json',
  ])('accepts %s as JSON', async (type) => {
    expect((await call(gateway(), { headers: { 'content-type': type }, body: chatBody })).status).toBe(200)
  })

  it('stores the original body and the request in the facts', async () => {
    const { exchange } = await call(gateway(), { body: { ...chatBody, stream: true } })
    expect(exchange.facts.llmRequest).toEqual({ ...chatBody, stream: true })
    expect(exchange.facts.llm).toEqual({
      operation: 'chat',
      api: 'chat_completions',
      requestModel: 'gpt-4o',
      configuredModel: 'gpt-4o',
      provider: 'openai',
      streaming: true,
      responseModel: 'gpt-4o-2024-08-06',
    })
  })
})

it.each(['/v1/videos', '/v1/fine_tuning/jobs'])('names the call of %s, which is not served', async (path) => {
  const { status, text } = await call(gateway(), { method: 'GET', path })
  expect([status, JSON.parse(text).error.message]).toEqual([
    404,
    `no LLM endpoint at ${path}: ${path.split('/')[2]} is not served`,
  ])
})

describe('passthrough', () => {
  const open = {
    passthrough: true,
    models: [
      { name: 'img', provider: 'openai', params: { apiKey: 'k1', model: 'gpt-image-1' } },
      { name: '*', provider: 'anthropic', params: { apiKey: 'k2' } },
    ],
  }
  const passing = () => fixtureGateway(open, () => ({ status: 200, headers: {}, body: Buffer.from('raw') }))

  it('forwards to the model in the body', async () => {
    const target = passing()
    const { text } = await call(target, {
      path: '/a/v1/videos',
      query: '?x=1',
      body: { model: 'img' },
    })
    expect(text).toBe('raw')
    expect(target.sent[0]).toMatchObject({
      origin: 'https://api.openai.com',
      path: '/v1/videos?x=1',
    })
    expect(bodyOf(target.sent[0])).toEqual({ model: 'gpt-image-1' })
  })

  it('forwards other requests to the model * if the key permits it', async () => {
    const target = passing()
    await call(target, { method: 'GET', path: '/v1/files' })
    expect(target.sent[0]).toMatchObject({
      origin: 'https://api.anthropic.com',
      path: '/v1/files',
      method: 'GET',
    })
    expect(target.sent[0]?.headers['x-api-key']).toBe('k2')
    const limited = await call(target, {
      method: 'GET',
      path: '/v1/files',
      mayUseModel: (model) => model === 'img',
    })
    expect(limited.status).toBe(403)
  })

  it('does not forward known calls uncounted', async () => {
    const target = passing()
    const { status } = await call(target, { path: '/v1/chat%2Fcompletions', body: { model: 'img' } })
    expect(status).toBe(404)
    expect(target.sent).toEqual([])
  })

  it('rejects CONNECT', async () => {
    expect((await call(passing(), { method: 'CONNECT', path: '/v1/files' })).status).toBe(405)
  })

  it('validates a JSON body like other calls', async () => {
    const { status } = await call(passing(), { path: '/v1/x', body: '{"model":"img","model":"*"}' })
    expect(status).toBe(400)
  })
})
