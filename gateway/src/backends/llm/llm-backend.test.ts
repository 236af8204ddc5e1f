import { describe, expect, it } from 'vitest'
import { bodyOf, call, chatBody, completion, fixtureLlm, jsonReply } from '../../../test/fixtures/llm.ts'
import { fixtureContext, fixtureExchange } from '../../../test/fixtures/pipeline.ts'
import type { OutgoingRequest, Reply } from '../../net/http-client/send.ts'
import type { RequestFacts } from '../../pipeline/exchange.ts'
import { check } from '../../schema/check.ts'
import { type LlmBackendConfig, llmBackendSchema } from './config/backend-config.ts'
import { compileLlmBackend, type LlmBackendOptions } from './llm-backend.ts'

const answer = (): Reply => jsonReply(completion('Hi'))

function gatewayOf(
  config: LlmBackendConfig,
  options: Partial<LlmBackendOptions> = {},
  provider: (request: OutgoingRequest) => Reply = answer,
  random?: () => number,
) {
  const all: LlmBackendOptions = { place: 'route api', maxBufferSize: 1024 * 1024, ...options }
  return fixtureLlm((context) => compileLlmBackend(config, context, all), provider, random)
}

function urlOf(request: OutgoingRequest | undefined): string {
  return `${request?.origin}${request?.path}`
}

function requestTo(path: string): RequestFacts {
  return fixtureExchange({ path }).facts.request
}

const openAi: LlmBackendConfig = { provider: { openAI: {} } }

describe('passthrough routes', () => {
  const policies = { ai: { routes: { '*': 'passthrough' as const } } }
  const gemini: LlmBackendConfig = { provider: { gemini: {} }, policies }
  const azure = { azure: { resourceName: 'contoso', resourceType: 'openAI' as const, model: 'gpt-4o' } }
  const keyed = { ...policies, backendAuth: { key: 'k' } }
  const bedrock = { bedrock: { region: 'us-east-1' } }

  it.each([
    ['/v1beta/models/m:embedContent', gemini, {}, 200],
    ['/v1beta/models/m:embedContent', gemini, { model: 'other' }, 404],
    ['/v1beta/cachedContents', gemini, {}, 200],
    ['/openai/deployments/gpt-4o/images/x', { provider: azure, policies: keyed }, {}, 200],
    ['/openai/deployments/expensive/images/x', { provider: azure, policies: keyed }, {}, 404],
    ['/openai/Deployments%2Fexpensive/images/x', { provider: azure, policies: keyed }, {}, 404],
    ['/async-invoke', { provider: bedrock, policies }, { modelId: 'm' }, 404],
  ] satisfies [string, LlmBackendConfig, object, number][])(
    'name the permitted model only: %s',
    async (path, config, body, expected) => {
      const gateway = gatewayOf(config)
      expect((await call(gateway, { path, body })).status).toBe(expected)
      expect(gateway.sent.map((request) => request.path)).toEqual(expected === 200 ? [path] : [])
    },
  )

  it('check the model of a path against the key', async () => {
    const gateway = gatewayOf(gemini)
    const request = { path: '/v1beta/models/m:embedContent', body: {} }
    expect((await call(gateway, { ...request, mayUseModel: (name) => name === 'm' })).status).toBe(200)
    expect((await call(gateway, { ...request, mayUseModel: (name) => name === '*' })).status).toBe(403)
  })

  it('read calls of Bedrock', async () => {
    const gateway = gatewayOf({ provider: bedrock, policies })
    const body = { messages: [{ role: 'user', content: [{ text: 'x' }] }] }
    const { exchange } = await call(gateway, { path: '/model/m/converse', body })
    expect(exchange.facts.llm).toMatchObject({ api: 'converse', requestModel: 'm' })
    expect(exchange.llm?.message?.api).toBe('converse')
  })
})

describe('an ai backend', () => {
  it('requests a chat completion for all paths', async () => {
    const gateway = gatewayOf(openAi)
    const { status, exchange } = await call(gateway, { path: '/anything', query: '?a=1', body: chatBody })
    expect(status).toBe(200)
    expect(urlOf(gateway.sent[0])).toBe('https://api.openai.com/v1/chat/completions?a=1')
    expect(bodyOf(gateway.sent[0])).toEqual(chatBody)
    expect(exchange.facts.usage?.totalTokens).toBe(12)
  })

  it('sends the configured model, also without a requested model', async () => {
    const gateway = gatewayOf({ name: 'team', provider: { openAI: { model: 'gpt-4.1-nano' } } })
    const { model: _, ...unnamed } = chatBody
    expect((await call(gateway, { body: chatBody })).status).toBe(200)
    expect((await call(gateway, { body: unnamed })).status).toBe(200)
    expect(gateway.sent.map(bodyOf)).toEqual([
      { ...chatBody, model: 'gpt-4.1-nano' },
      { ...unnamed, model: 'gpt-4.1-nano' },
    ])
    expect(gateway.metered).toContain('tokens team openai 12 team')
  })

  it('requires a model if the provider has none configured', async () => {
    const { model: _, ...unnamed } = chatBody
    const { status, text } = await call(gatewayOf(openAi), { body: unnamed })
    expect(status).toBe(400)
    expect(text).toContain('missing_model')
  })

  it.each([null, 7, ''])('rejects the model %j even if one is configured', async (model) => {
    const gateway = gatewayOf({ provider: { openAI: { model: 'm' } } })
    expect((await call(gateway, { body: { ...chatBody, model } })).status).toBe(400)
    expect(gateway.sent).toEqual([])
  })

  it('checks an unnamed model against the models of the key', async () => {
    const gateway = gatewayOf({ provider: { openAI: { model: 'm' } } })
    const { model: _, ...unnamed } = chatBody
    const { status } = await call(gateway, { body: unnamed, mayUseModel: (model) => model === 'gpt-4o' })
    expect(status).toBe(403)
  })

  it('sends the credential of the provider, else of the backend', async () => {
    const backend = [undefined, { backendAuth: { key: 'outer' } }]
    const outer = gatewayOf(openAi, { backendPolicies: backend })
    await call(outer, { body: chatBody, headers: { authorization: 'Bearer client' } })
    expect(outer.sent[0]?.headers['authorization']).toBe('Bearer outer')
    const own = { ...openAi, policies: { backendAuth: { key: { file: '/secret' } } } }
    const inner = gatewayOf(own, { backendPolicies: backend })
    await call(inner, { body: chatBody })
    expect(inner.sent[0]?.headers['authorization']).toBe('Bearer content-of-/secret')
  })

  it('forwards the client credential without a configured one or with passthrough', async () => {
    const headers = { authorization: 'Bearer client' }
    const plain = gatewayOf(openAi)
    await call(plain, { body: chatBody, headers })
    expect(plain.sent[0]?.headers['authorization']).toBe('Bearer client')
    const told = gatewayOf(
      { ...openAi, policies: { backendAuth: { passthrough: {} } } },
      { backendPolicies: [{ backendAuth: { key: 'outer' } }] },
    )
    await call(told, { body: chatBody, headers })
    expect(told.sent[0]?.headers['authorization']).toBe('Bearer client')
  })

  it('forwards the accepted credential only with passthrough', async () => {
    for (const passthrough of [undefined, {}]) {
      const backend = passthrough === undefined ? [] : [{ backendAuth: { passthrough } }]
      const gateway = gatewayOf(openAi, { backendPolicies: backend })
      await call(gateway, { body: chatBody, credential: 'token' })
      const expected = passthrough === undefined ? undefined : 'Bearer token'
      expect(gateway.sent[0]?.headers['authorization']).toBe(expected)
    }
  })

  it('adds the credential at the configured location', async () => {
    const backendAuth = { key: 'k', location: { header: { name: 'Api-Key' } } }
    const gateway = gatewayOf(openAi, { backendPolicies: [{ backendAuth }] })
    await call(gateway, { body: chatBody, headers: { authorization: 'Bearer client' } })
    expect(gateway.sent[0]?.headers['api-key']).toBe('k')
    expect(gateway.sent[0]?.headers['authorization']).toBeUndefined()
  })

  it('edits headers in both directions', async () => {
    const backend = [
      {
        requestHeaderModifier: { set: { 'x-org': 'o' }, remove: ['x-drop'] },
        responseHeaderModifier: { set: { 'x-by': 'gateway' } },
      },
    ]
    const gateway = gatewayOf(openAi, { backendPolicies: backend })
    const { headers } = await call(gateway, { body: chatBody, headers: { 'x-drop': '1' } })
    expect(gateway.sent[0]?.headers).toMatchObject({ 'x-org': 'o', 'accept-encoding': 'identity' })
    expect(gateway.sent[0]?.headers['x-drop']).toBeUndefined()
    expect(headers['x-by']).toBe('gateway')
  })

  it.each([
    [{ hostOverride: 'localhost:11434' }, 'http://localhost:11434/v1/chat/completions'],
    [{ hostOverride: 'llm.test:443' }, 'https://llm.test/v1/chat/completions'],
    [{ hostOverride: '[::1]:80', pathPrefix: '/api/v2' }, 'http://[::1]/api/v2/chat/completions'],
    [{ hostOverride: 'llm.test:8080', pathOverride: '/chat' }, 'http://llm.test:8080/chat'],
    [{ pathPrefix: '/compatible/v1' }, 'https://api.openai.com/compatible/v1/chat/completions'],
  ])('calls %j at %s', async (override, url) => {
    const gateway = gatewayOf({ ...openAi, ...override })
    await call(gateway, { path: '/llm', body: chatBody })
    expect(urlOf(gateway.sent[0])).toBe(url)
  })

  it('calls another host over TLS with the settings of the backend', async () => {
    const backend = [{ backendTLS: { root: '/ca.pem' }, http: { requestTimeout: '5s' } }]
    const gateway = gatewayOf({ ...openAi, hostOverride: 'llm.test:8443' }, { backendPolicies: backend })
    await call(gateway, { body: chatBody })
    expect(gateway.sent[0]).toMatchObject({
      origin: 'https://llm.test:8443',
      firstByteTimeoutMs: 5_000,
      connection: { tls: { ca: 'content-of-/ca.pem\n' } },
    })
  })

  it('calls compatible servers with `custom`', async () => {
    const gateway = gatewayOf({ provider: { custom: {} }, hostOverride: 'vllm:8000' })
    await call(gateway, { body: chatBody })
    expect(urlOf(gateway.sent[0])).toBe('http://vllm:8000/v1/chat/completions')
  })

  it('responds without a provider with `echo`', async () => {
    const { status, text } = await call(gatewayOf({ provider: { echo: {} } }), { path: '/e', body: chatBody })
    expect(status).toBe(200)
    expect(text).toContain('Hello there')
  })

  it('rejects methods other than POST', async () => {
    const { status, headers } = await call(gatewayOf(openAi), { method: 'GET', path: '/x' })
    expect(status).toBe(405)
    expect(headers['allow']).toBe('POST')
  })
})

describe('routes of an ai backend', () => {
  const routes = {
    '/v1/chat/completions': 'completions',
    '/v1/messages': 'messages',
    '/v1/messages/count_tokens': 'anthropicTokenCount',
    '/v1/models': 'models',
    '/batches': 'passthrough',
    '*': 'passthrough',
  } as const
  const anthropic: LlmBackendConfig = { provider: { anthropic: {} }, policies: { ai: { routes } } }

  it('match paths by suffix', async () => {
    const gateway = gatewayOf(anthropic)
    const body = { ...chatBody, max_tokens: 5 }
    for (const path of ['/claude/v1/chat/completions', '/claude/v1/messages', '/v1/messages/count_tokens']) {
      await call(gateway, { path, body })
    }
    expect(gateway.sent.map(urlOf)).toEqual([
      'https://api.anthropic.com/v1/messages',
      'https://api.anthropic.com/v1/messages',
      'https://api.anthropic.com/v1/messages/count_tokens',
    ])
  })

  it('forward other paths unchanged, uncounted and with the credential', async () => {
    const gateway = gatewayOf(
      { ...anthropic, provider: { anthropic: { model: 'm' } } },
      { backendPolicies: [{ backendAuth: { key: 'k' } }] },
    )
    const { exchange } = await call(gateway, { method: 'GET', path: '/v1/files', query: '?limit=1' })
    expect(urlOf(gateway.sent[0])).toBe('https://api.anthropic.com/v1/files?limit=1')
    expect(gateway.sent[0]?.method).toBe('GET')
    expect(gateway.sent[0]?.headers['x-api-key']).toBe('k')
    expect(exchange.facts.usage).toBeUndefined()
  })

  const azure = (model?: string): LlmBackendConfig => ({
    provider: { azure: { resourceName: 'contoso', resourceType: 'openAI', apiVersion: '2024-10-21', model } },
    policies: { ai: { routes: { '*': 'passthrough' } }, backendAuth: { key: 'k' } },
  })
  const gemini: LlmBackendConfig = {
    provider: { gemini: {} },
    policies: { ai: { routes: { '*': 'passthrough' } }, backendAuth: { key: 'k' } },
  }
  const deployment = (name: string) => `/openai/deployments/${name}/videos/remix`

  it.each([
    [azure('small'), deployment('large'), {}],
    [azure('small'), deployment('small/../large'), {}],
    [azure('small'), deployment('small%252f..%252flarge'), {}],
    [azure('small'), '/openai/Deployments/large/videos/remix', {}],
    [azure(), deployment('large'), { model: 'small' }],
    [gemini, '/v1beta/models/large:embedText', { model: 'small' }],
    [gemini, '/v1beta/tunedModels/large:transferOwnership', { model: 'small' }],
    [openAi, deployment('large'), { model: 'small' }],
  ])('do not pass another model in a path through: %#', async (config, path, body) => {
    const gateway = gatewayOf({ ...config, policies: { ai: { routes: { '*': 'passthrough' } } } })
    const { status, text } = await call(gateway, { path, body })
    expect([status, gateway.sent]).toEqual([404, []])
    expect(text).toContain('names another model')
  })

  it.each([
    [azure(), deployment('large')],
    [azure('large'), deployment('large')],
    [gemini, '/v1beta/models/large:embedText'],
    [gemini, '/v1beta/tunedModels/large:embedText'],
  ])('pass the model in a path through, under the rules of keys: %#', async (config, path) => {
    const gateway = gatewayOf(config)
    expect((await call(gateway, { path, body: {} })).status).toBe(200)
    const refused = await call(gateway, { path, body: {}, mayUseModel: (model) => model === 'small' })
    expect([refused.status, gateway.sent.length]).toEqual([403, 1])
    const text = { 'content-type': 'text/plain' }
    expect((await call(gateway, { path, body: 'x', headers: text })).status).toBe(200)
    const form = await call(gateway, { path, body: 'x', headers: text, mayUseModel: () => false })
    expect([form.status, gateway.sent.length]).toEqual([403, 2])
  })

  it.each(['/V1/Messages', '/v1/messages;x', '/v1%2fmessages', '/v1/chat\\completions'])(
    'do not pass %s through, which may be a call that is counted',
    async (path) => {
      const gateway = gatewayOf(anthropic)
      expect((await call(gateway, { path, body: chatBody })).status).toBe(404)
      expect(gateway.sent).toEqual([])
    },
  )

  it('use the path after rewrites', async () => {
    const gateway = gatewayOf(anthropic)
    const forwarding = { path: '/v1/files', host: undefined, headerEdits: [] }
    await call(gateway, { method: 'GET', path: '/claude/v1/messages', forwarding })
    expect(urlOf(gateway.sent[0])).toBe('https://api.anthropic.com/v1/files')
  })

  it('list configured models with their aliases', async () => {
    const ai = { routes, modelAliases: { fast: 'gpt-4o-mini', 'old-*': 'gpt-4o' } }
    const gateway = gatewayOf({ provider: { openAI: { model: 'gpt-4o' } } }, { policies: [ai] })
    const { text } = await call(gateway, { method: 'GET', path: '/v1/models' })
    expect(JSON.parse(text).data.map(({ id }: { id: string }) => id)).toEqual(['fast', 'old-*', 'gpt-4o'])
    expect((await call(gateway, { method: 'GET', path: '/v1/models/gpt-4o' })).status).toBe(200)
    expect((await call(gateway, { method: 'GET', path: '/v1/models/other' })).status).toBe(404)
  })

  it('read other paths as chat completions', async () => {
    const gateway = gatewayOf({ ...openAi, policies: { ai: { routes: { '/v1/messages': 'messages' } } } })
    await call(gateway, { path: '/v1/else', body: chatBody })
    expect(urlOf(gateway.sent[0])).toBe('https://api.openai.com/v1/chat/completions')
  })

  it('are those of the most specific policy', async () => {
    const ai = [
      undefined,
      { routes: { '*': 'embeddings' } as const },
      { routes: { '*': 'responses' } as const },
    ]
    const outer = gatewayOf(openAi, { policies: ai })
    await call(outer, { body: chatBody })
    expect(urlOf(outer.sent[0])).toContain('/embeddings')
    const inner = gatewayOf(
      { ...openAi, policies: { ai: { routes: { '*': 'completions' } } } },
      { policies: ai },
    )
    await call(inner, { body: chatBody })
    expect(urlOf(inner.sent[0])).toContain('/chat/completions')
  })

  it('select the shape of errors', () => {
    const { llm } = gatewayOf(anthropic)
    expect(llm.errorFormat(requestTo('/x/v1/messages'))).toBe('anthropic')
    expect(llm.errorFormat(requestTo('/v1/chat/completions'))).toBe('openai')
  })
})

describe('policies of an ai backend', () => {
  it('rename models, exact names before patterns', async () => {
    const ai = { modelAliases: { fast: 'gpt-4o-mini', 'fast*': 'gpt-4o', '*': 'gpt-5' } }
    const gateway = gatewayOf(openAi, { policies: [ai] })
    for (const model of ['fast', 'faster', 'slow']) await call(gateway, { body: { ...chatBody, model } })
    expect(gateway.sent.map((request) => bodyOf(request))).toMatchObject([
      { model: 'gpt-4o-mini' },
      { model: 'gpt-4o' },
      { model: 'gpt-5' },
    ])
  })

  it('merge body fields, with precedence of the provider over the route', async () => {
    const gateway = gatewayOf(
      { ...openAi, policies: { ai: { overrides: { seed: 1 } } } },
      { policies: [{ overrides: { seed: 2, store: false }, defaults: { temperature: 0 } }] },
    )
    await call(gateway, { body: { ...chatBody, temperature: 1, seed: 3 } })
    expect(bodyOf(gateway.sent[0])).toEqual({ ...chatBody, temperature: 1, seed: 1, store: false })
  })

  it('edit the headers to providers, credential included', async () => {
    const edit = (headers: Record<string, string | string[]>) => {
      headers['x-team'] = 'a'
      headers['authorization'] = 'Bearer edited'
      delete headers['x-secret']
    }
    const forwarding = { path: undefined, host: undefined, headerEdits: [edit] }
    const gateway = gatewayOf(openAi)
    const headers = { 'x-secret': 's', authorization: 'Bearer client' }
    const { exchange } = await call(gateway, { body: chatBody, headers, forwarding })
    expect(gateway.sent[0]?.headers).toMatchObject({ 'x-team': 'a', authorization: 'Bearer edited' })
    expect(gateway.sent[0]?.headers['x-secret']).toBeUndefined()
    expect(exchange.facts.request.headers).toEqual(headers)
  })
})

describe('groups of an ai backend', () => {
  const groups: LlmBackendConfig = {
    groups: [
      {
        providers: [
          { name: 'a', provider: { openAI: {} }, hostOverride: 'a:1' },
          { name: 'b', provider: { openAI: {} }, hostOverride: 'b:1' },
        ],
      },
      { providers: [{ name: 'c', provider: { anthropic: { model: 'claude' } }, hostOverride: 'c:1' }] },
    ],
  }

  it('share the load within a group', async () => {
    const numbers = [0.1, 0.9, 0.9, 0.1, 0.5, 0.5]
    let next = 0
    const random = () => numbers[next++ % numbers.length] ?? 0
    const gateway = gatewayOf(
      { groups: [{ providers: [...(groups.groups?.[0]?.providers ?? [])] }] },
      {},
      answer,
      random,
    )
    await call(gateway, { body: chatBody })
    await call(gateway, { body: chatBody })
    expect(gateway.sent.map(({ origin }) => origin)).toEqual(['http://a:1', 'http://b:1'])
  })

  it('fail over to the next group, with translation between APIs', async () => {
    const gateway = gatewayOf(groups, {}, ({ origin }) =>
      origin === 'http://c:1'
        ? jsonReply({
            id: 'm',
            type: 'message',
            role: 'assistant',
            model: 'claude',
            content: [{ type: 'text', text: 'Bonjour' }],
            stop_reason: 'end_turn',
            usage: { input_tokens: 1, output_tokens: 2 },
          })
        : jsonReply({ error: { message: 'down' } }, 503),
    )
    const { status, text } = await call(gateway, { body: { ...chatBody, max_tokens: 9 } })
    expect(status).toBe(200)
    expect(text).toContain('Bonjour')
    expect(gateway.sent.map(({ origin }) => origin).sort()).toEqual([
      'http://a:1',
      'http://b:1',
      'http://c:1',
    ])
    await call(gateway, { body: { ...chatBody, max_tokens: 9 } })
    expect(gateway.sent[3]?.origin).toBe('http://c:1')
  })
})

it('follows the health of the backend and of its providers', async () => {
  const down = jsonReply({}, 401)
  const health = { unhealthyExpression: 'response.code == 401', eviction: { duration: '60s' } }
  const providers = (['a', 'b'] as const).map((name) => ({
    providers: [{ name, provider: { openAI: {} }, hostOverride: `${name}:1` }],
  }))
  const own = providers.map((group, index) => ({
    providers: group.providers.map((entry) => (index === 0 ? { ...entry, policies: { health } } : entry)),
  }))
  for (const gateway of [
    gatewayOf({ groups: providers }, { backendPolicies: [{ health }] }, ({ origin }) =>
      origin === 'http://a:1' ? down : answer(),
    ),
    gatewayOf({ groups: own }, {}, ({ origin }) => (origin === 'http://a:1' ? down : answer())),
  ]) {
    for (let request = 0; request < 2; request += 1)
      expect((await call(gateway, { body: chatBody })).status).toBe(200)
    gateway.context.clock.advance(59_000)
    await call(gateway, { body: chatBody })
    expect(gateway.sent.map(({ origin }) => origin.slice(7))).toEqual(['a:1', 'b:1', 'b:1', 'b:1'])
  }
})

it('retains an eviction per place of the backend', () => {
  const context = {
    ...fixtureContext(),
    metrics: {
      ...fixtureContext().metrics,
      llm: () => ({
        operation: () => ({ done() {}, tokens() {} }),
        upstreamError() {},
        queued() {},
        hedged() {},
        cost() {},
        unknownCost() {},
      }),
    },
  }
  const names: string[] = []
  const retained: typeof context.retained = (name, create) => {
    names.push(name)
    return context.retained(name, create)
  }
  for (const place of ['route a', 'route b']) {
    compileLlmBackend(openAi, { ...context, retained }, { place, maxBufferSize: 1 })
  }
  expect(new Set(names.filter((name) => name.includes('eviction'))).size).toBe(2)
})

describe('the schema of an ai backend', () => {
  it.each([
    { name: 'x', provider: { openAI: { model: 'm' } } },
    {
      provider: { gemini: {} },
      hostOverride: 'a:1',
      pathOverride: '/x',
      policies: { backendAuth: { key: '$K' } },
    },
    { groups: [{ providers: [{ provider: { groq: {} } }] }] },
  ])('accepts %j', (config) => {
    expect(check(llmBackendSchema, config).kind).toBe('valid')
  })

  it.each([
    {},
    { provider: {} },
    { provider: { openAI: {}, anthropic: {} } },
    { provider: { bedrock: {} } },
    { provider: { openAI: {} }, groups: [] },
    { groups: [{ providers: [] }] },
    { provider: { openAI: {} }, hostOverride: 'no-port' },
    { provider: { openAI: {} }, policies: { ai: { routes: { '/x': 'telepathy' } } } },
  ])('rejects %j', (config) => {
    expect(check(llmBackendSchema, config).kind).toBe('mistakes')
  })
})
