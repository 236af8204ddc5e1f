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
import type { LlmConfig, ModelConfig } from '../config/config.ts'

async function sentFor(model: Partial<ModelConfig>, config: Partial<LlmConfig> = {}, more: FixtureCall = {}) {
  const gateway = fixtureGateway({ models: [{ name: '*', provider: 'openai', ...model }], ...config }, () =>
    jsonReply(completion('hi'), 200, { 'x-region': 'eu', 'x-internal': 'node-7' }),
  )
  const outcome = await call(gateway, { body: chatBody, ...more })
  const [sent] = gateway.sent
  if (sent === undefined) throw new Error('nothing was sent')
  return { outcome, sent }
}

describe('headers of a model', () => {
  it('changes those of requests and of responses', async () => {
    const { sent, outcome } = await sentFor(
      {
        requestHeaders: { set: { 'x-workspace': 'w1' }, remove: ['x-debug'] },
        responseHeaders: { add: { 'x-region': 'b' }, remove: ['x-internal'] },
      },
      {},
      { headers: { 'x-debug': '1' } },
    )
    expect(sent.headers['x-workspace']).toBe('w1')
    expect(sent.headers['x-debug']).toBeUndefined()
    expect(outcome.headers['x-region']).toBe('eu,b')
    expect(outcome.headers['x-internal']).toBeUndefined()
  })

  it('changes those of error responses', async () => {
    const gateway = fixtureGateway(
      { models: [{ name: '*', provider: 'openai', responseHeaders: { set: { 'x-a': '1' } } }] },
      () => jsonReply({ error: { message: 'no' } }, 400),
    )
    const { status, headers } = await call(gateway, { body: chatBody })
    expect([status, headers['x-a']]).toEqual([400, '1'])
  })
})

it('connections pass the proxy of the model, or of its provider', async () => {
  const backendTunnel = { proxy: { host: 'proxy.test:3128' } }
  const proxy = { tunnel: { host: 'proxy.test', port: 3128 } }
  expect((await sentFor({ backendTunnel })).sent.connection).toMatchObject(proxy)
  const gateway = fixtureGateway(
    {
      providers: [{ name: 'shared', provider: 'openai', defaults: { backendTunnel } }],
      models: [{ name: '*', provider: { reference: 'shared' } }],
    },
    () => jsonReply({}, 400),
  )
  await call(gateway, { body: chatBody })
  expect(gateway.sent[0]?.connection).toMatchObject(proxy)
})

describe('credentials of a model', () => {
  it('places a key as the provider does, or at a location', async () => {
    const anthropic = { provider: 'anthropic', auth: { key: 'secret' } } as const
    expect((await sentFor(anthropic)).sent.headers['x-api-key']).toBe('secret')
    const location = { header: { name: 'x-token', prefix: 'Key ' } } as const
    const { sent } = await sentFor({ auth: { key: { value: 'secret', location } } })
    expect(sent.headers['x-token']).toBe('Key secret')
    expect(sent.headers['authorization']).toBeUndefined()
  })

  it('adds further credentials to that of the provider, and hides them in errors', async () => {
    const location = { header: { name: 'x-tenant' } }
    const auth = { key: 'secret', credentials: [{ location, key: 'tenant-key' }] }
    const { sent } = await sentFor({ provider: 'anthropic', auth })
    expect([sent.headers['x-api-key'], sent.headers['x-tenant']]).toEqual(['secret', 'tenant-key'])
    const gateway = fixtureGateway({ models: [{ name: '*', provider: 'openai', auth }] }, () =>
      jsonReply({ error: { message: 'no secret tenant-key' } }, 401),
    )
    expect((await call(gateway, { body: chatBody })).text).toContain('no [hidden] [hidden]')
  })

  it('does not show a key at a location in errors', async () => {
    const auth = { key: { value: 'secret', location: { header: { name: 'x-token' } } } } as const
    const gateway = fixtureGateway({ models: [{ name: '*', provider: 'openai', auth }] }, () =>
      jsonReply({ error: { message: 'invalid key secret' } }, 401),
    )
    const { text } = await call(gateway, { body: chatBody })
    expect(JSON.parse(text)).toEqual({ error: { message: 'invalid key [hidden]' } })
  })

  it('forwards the accepted credential of the client', async () => {
    const { sent } = await sentFor({ auth: { passthrough: {} } }, {}, { credential: 'accepted' })
    expect(sent.headers['authorization']).toBe('Bearer accepted')
  })
})

describe('addresses of a model', () => {
  it.each([
    [{ hostOverride: 'localhost:8000' }, 'http://localhost:8000', '/v1/chat/completions'],
    [
      { hostOverride: 'llm.example.com:443', pathPrefix: '/api' },
      'https://llm.example.com:443',
      '/api/chat/completions',
    ],
    [{ hostOverride: 'localhost:8000', pathOverride: '/chat' }, 'http://localhost:8000', '/chat'],
    [{ pathPrefix: '/v2' }, 'https://api.openai.com', '/v2/chat/completions'],
  ])('has the parts %j', async (params, origin, path) => {
    const { sent } = await sentFor({ params })
    expect([sent.origin, sent.path]).toEqual([origin.replace(':443', ''), path])
  })

  it('uses TLS with TLS settings', async () => {
    const { sent } = await sentFor({
      params: { baseUrl: 'http://llm:8443/v1' },
      tls: { hostname: 'a.example' },
    })
    expect(sent.origin).toBe('https://llm:8443')
    expect(sent.connection?.tls?.serverName).toBe('a.example')
    const other = await sentFor({ params: { hostOverride: 'llm:8443' }, backendTLS: {} })
    expect(other.sent.origin).toBe('https://llm:8443')
  })
})

describe('defaults of a provider', () => {
  const shared = {
    name: 'shared',
    provider: 'openai',
    defaults: {
      defaults: { a: 1, b: 1 },
      overrides: { c: 1 },
      transformation: { user: '"shared"', seed: '7' },
      requestHeaders: { set: { 'x-from': 'shared' } },
      auth: { key: 'shared-key' },
      tls: { hostname: 'shared.example' },
    },
  } as const
  const reference = { provider: { reference: 'shared' } }
  const config = { providers: [shared] }

  it('apply to models that reference it', async () => {
    const { sent } = await sentFor(reference, config)
    expect(bodyOf(sent)).toEqual({ ...chatBody, a: 1, b: 1, c: 1, user: 'shared', seed: 7 })
    expect(sent.headers).toMatchObject({ 'x-from': 'shared', authorization: 'Bearer shared-key' })
    expect(sent.connection?.tls?.serverName).toBe('shared.example')
  })

  it('yield to settings of the model, and merge body fields', async () => {
    const own = {
      defaults: { b: 2 },
      transformation: { user: '"own"' },
      requestHeaders: { set: { 'x-own': '1' } },
      auth: { key: 'own-key' },
      backendTLS: { hostname: 'own.example' },
    }
    const { sent } = await sentFor({ ...reference, ...own }, config)
    expect(bodyOf(sent)).toEqual({ ...chatBody, a: 1, b: 2, c: 1, user: 'own', seed: 7 })
    expect(sent.headers).toMatchObject({ 'x-own': '1', authorization: 'Bearer own-key' })
    expect(sent.headers['x-from']).toBeUndefined()
    expect(sent.connection?.tls?.serverName).toBe('own.example')
  })
})
