import { describe, expect, it } from 'vitest'
import {
  call,
  chatBody,
  completion,
  type FixtureCall,
  type FixtureOptions,
  fixtureGateway,
  jsonReply,
  open,
  streamReply,
} from '../../../../test/fixtures/llm.ts'
import { GatewayError } from '../../../lib/gateway-error.ts'
import { runToCompletion } from '../../../lib/scheduling/yielding.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import { checkLlm } from '../config/check.ts'
import type { LlmConfig, ModelConfig } from '../config/config.ts'
import { compileLlmSection } from '../llm-section.ts'
import type { ResponseCacheConfig } from './config.ts'

const delta = 'data: {"model":"gpt-4o-1","choices":[{"delta":{"content":"hi"}}]}\n\n'
const streamed = () => streamReply([delta, 'data: [DONE]\n\n'])

/** A gateway with a cached model, and the number of calls of its provider. */
function cached(
  cache: Partial<ResponseCacheConfig> = {},
  reply: (body: string) => Reply | Promise<Reply> = (body) =>
    body.includes('"stream":true') ? streamed() : jsonReply(completion('hi')),
  { model = {}, options = {} }: { model?: Partial<ModelConfig>; options?: FixtureOptions } = {},
) {
  const models = [{ name: '*', provider: 'openai', ...model, cache: { ttl: '1h', ...cache } }]
  const gateway = fixtureGateway({ models, passthrough: true }, ({ body }) => reply(String(body)), options)
  return {
    gateway,
    ask: (request: FixtureCall = {}) => call(gateway, { body: chatBody, ...request }),
    calls: () => gateway.sent.length,
  }
}

const resultsOf = async (ask: (request: FixtureCall) => ReturnType<typeof call>, requests: FixtureCall[]) => {
  const results: unknown[] = []
  for (const request of requests) results.push((await ask(request)).headers['x-cache'])
  return results
}

describe('a cached response', () => {
  it.each([false, true])('is returned without a call, streamed: %s', async (stream) => {
    const { ask, calls, gateway } = cached()
    const body = { ...chatBody, stream }
    const first = await ask({ body })
    gateway.context.clock.advance(2_500)
    const second = await ask({ body })
    expect([first.headers['x-cache'], second.headers['x-cache'], second.headers['age']]).toEqual([
      'miss',
      'hit',
      '2',
    ])
    expect(second.text).toBe(first.text)
    expect(second.headers['content-type']).toBe(first.headers['content-type'])
    expect(calls()).toBe(1)
    expect(second.exchange.facts.llm).toMatchObject({
      cache: 'hit',
      configuredModel: '*',
      provider: 'openai',
      responseModel: first.exchange.facts.llm?.responseModel,
    })
    expect(second.exchange.facts.usage).toBeUndefined()
    expect(second.exchange.facts.llm?.cost).toBeUndefined()
    expect(gateway.metered.filter((line) => line.startsWith('tokens'))).toHaveLength(1)
    expect(gateway.context.decisions.get('* cache hit')).toBe(1)
    expect(gateway.context.decisions.get('* cache miss')).toBe(1)
  })

  it('is stored for chat of Cohere unless the response failed', async () => {
    const replies = ['ERROR', 'COMPLETE'].map((end) =>
      jsonReply({ id: 'h', finish_reason: end, message: { role: 'assistant', content: [] } }),
    )
    const { ask } = cached({}, () => replies.shift() ?? jsonReply({}), { model: { provider: 'cohere' } })
    const request = { path: '/v2/chat', body: chatBody }
    expect(await resultsOf(ask, [request, request, request])).toEqual(['miss', 'miss', 'hit'])
  })

  it('is equal for bodies that differ in white space and order of members only', async () => {
    const { ask } = cached()
    const texts = [
      '{"model":"gpt-4o","messages":[{"role":"user","content":"a"}],"temperature":1}',
      ' { "temperature":1.0,\n"messages":[{"content":"\\u0061","role":"user"}], "model" : "gpt-4o" }',
      '{"model":"gpt-4o","messages":[{"role":"user","content":"a "}],"temperature":1}',
      '{"model":"gpt-4o","messages":[{"role":"user","content":"a"}],"temperature":1,"seed":9007199254740993}',
      '{"model":"gpt-4o","messages":[{"role":"user","content":"a"}],"temperature":1,"seed":9007199254740992}',
      '{"model":"gpt-4o","messages":[{"role":"user","content":"a"}],"temperature":1,"seed":1e400}',
      '{"model":"gpt-4o","messages":[{"role":"user","content":"a"}],"temperature":1,"seed":null}',
      '{"model":"gpt-4o-mini","messages":[{"role":"user","content":"a"}],"temperature":1}',
    ]
    const results = await resultsOf(
      ask,
      texts.map((body) => ({ body })),
    )
    expect(results).toEqual(['miss', 'hit', 'miss', 'miss', 'miss', 'miss', 'miss', 'miss'])
  })

  it('depends on path, headers of providers and configured headers', async () => {
    const { ask } = cached({ headers: ['X-Tenant'] })
    const results = await resultsOf(ask, [
      {},
      { headers: { 'user-agent': 'other', 'x-request-id': '2' } },
      { headers: { 'openai-project': 'a' } },
      { headers: { 'x-tenant': 'a' } },
      { query: '?api-version=1' },
      { path: '/v1/completions', body: { model: 'gpt-4o', prompt: 'a' } },
    ])
    expect(results).toEqual(['miss', 'hit', 'miss', 'miss', 'miss', 'miss'])
  })

  it('belongs to the credential of the client', async () => {
    const { ask } = cached()
    const as = (authorization: string) => ({ headers: { authorization } })
    const requests = [as('Bearer a'), as('Bearer b'), as('Bearer a'), {}]
    expect(await resultsOf(ask, requests)).toEqual(['miss', 'miss', 'hit', 'miss'])
  })

  it.each(['x-api-key', 'ocp-apim-subscription-key', 'apikey', 'x-auth-token'])(
    'belongs to the credential in %s, which a gateway of the provider verifies',
    async (name) => {
      const { ask } = cached()
      const as = (credential: string) => ({ headers: { [name]: credential } })
      expect(await resultsOf(ask, [as('a'), as('b'), as('a'), {}])).toEqual(['miss', 'miss', 'hit', 'miss'])
    },
  )

  it('is shared by the value of the configured key only', async () => {
    const { ask } = cached({ key: 'request.headers["x-team"]' })
    const as = (authorization: string, team?: string) => ({
      headers: { authorization, ...(team === undefined ? {} : { 'x-team': team }) },
    })
    const requests = [as('a', 't'), as('b', 't'), as('b', 'u'), as('b'), as('b')]
    expect(await resultsOf(ask, requests)).toEqual(['miss', 'hit', 'miss', undefined, undefined])
  })

  it('ends after its time to live', async () => {
    const { ask, gateway } = cached({ ttl: '10s' })
    await ask()
    gateway.context.clock.advance(9_999)
    expect(await resultsOf(ask, [{}])).toEqual(['hit'])
    gateway.context.clock.advance(1)
    expect(await resultsOf(ask, [{}, {}])).toEqual(['miss', 'hit'])
  })

  it('follows cache-control of the client', async () => {
    const { ask, gateway } = cached()
    const control = (text: string) => ({ headers: { 'cache-control': text } })
    expect(await resultsOf(ask, [control('no-store'), {}, control('no-store')])).toEqual([
      undefined,
      'miss',
      undefined,
    ])
    gateway.context.clock.advance(5_000)
    const requests = [
      control('max-age=6'),
      control('private, Max-Age=5'),
      control('no-cache'),
      control('max-age=x'),
    ]
    expect(await resultsOf(ask, requests)).toEqual(['hit', 'miss', 'miss', 'miss'])
  })

  it('has the headers of the model', async () => {
    const { ask } = cached({}, undefined, { model: { responseHeaders: { set: { 'x-model': 'a' } } } })
    await ask()
    expect((await ask()).headers).toMatchObject({ 'x-cache': 'hit', 'x-model': 'a' })
  })

  it('is read for guards', async () => {
    const { ask, gateway } = cached()
    await ask()
    const { exchange } = await open(gateway, { body: chatBody, readsAnswer: true })
    expect(exchange.llm?.message?.answer).toMatchObject({
      kind: 'whole',
      json: { value: { object: 'chat.completion' } },
    })
    await ask({ body: { ...chatBody, stream: true } })
    const again = await open(gateway, { body: { ...chatBody, stream: true }, readsAnswer: true })
    expect(again.exchange.llm?.message?.answer).toEqual({ kind: 'stream' })
  })

  it('is that of a translation', async () => {
    const message = {
      type: 'message',
      model: 'claude-1',
      content: [{ type: 'text', text: 'hi' }],
      stop_reason: 'end_turn',
    }
    const { ask, calls } = cached({}, () => jsonReply(message), { model: { provider: 'anthropic' } })
    const texts = [(await ask()).text, (await ask()).text]
    expect(texts[1]).toBe(texts[0])
    expect(calls()).toBe(1)
  })

  it('depends on computed fields', async () => {
    const model = { transformation: { user: 'request.headers["x-user"]' } }
    const { ask } = cached({ key: '"all"' }, undefined, { model })
    const as = (user: string) => ({ headers: { 'x-user': user } })
    expect(await resultsOf(ask, [as('a'), as('b'), as('a')])).toEqual(['miss', 'miss', 'hit'])
  })
})

describe('the cache stores no response', () => {
  const never: [string, () => Reply][] = [
    ['of another status', () => jsonReply(completion('hi'), 201)],
    ['of an error', () => jsonReply({ error: { message: 'no' } }, 429)],
    ['with an error', () => jsonReply({ error: { message: 'no' } })],
    ['that is large', () => jsonReply(completion('x'.repeat(2_000)))],
  ]
  it.each(never)('%s', async (_, reply) => {
    const { ask, calls } = cached({ maxEntryBytes: 1_024 }, reply)
    expect(await resultsOf(ask, [{}, {}])).toEqual(['miss', 'miss'])
    expect(calls()).toBe(2)
  })

  const broken: [string, () => Reply][] = [
    ['that is truncated', () => streamReply([delta])],
    ['that fails', () => streamReply([delta], new GatewayError('upstream_reset', 'reset'))],
    ['with an error', () => streamReply([delta, 'data: {"error":{"message":"no"}}\n\n'])],
    ['that is large', () => streamReply([...Array.from({ length: 40 }, () => delta), 'data: [DONE]\n\n'])],
  ]
  it.each(broken)('streamed %s', async (_, reply) => {
    const { ask, calls } = cached({ maxEntryBytes: 1_024 }, reply)
    const body = { ...chatBody, stream: true }
    expect(await resultsOf(ask, [{ body }, { body }])).toEqual(['miss', 'miss'])
    expect(calls()).toBe(2)
  })

  it('of a client that disconnects', async () => {
    const { gateway, calls } = cached()
    for (let times = 0; times < 2; times += 1) {
      const { reply } = await open(gateway, { body: { ...chatBody, stream: true } })
      if (reply.body && !(reply.body instanceof Uint8Array)) reply.body.cancel()
    }
    expect(calls()).toBe(2)
  })

  const path = '/v1/responses'
  const response = { id: 'resp_1', object: 'response', status: 'completed', output: [] }
  it.each([
    ['in the background', { background: true, max_output_tokens: 5 }, response],
    ['of a conversation', { conversation: 'conv_1' }, response],
    ['that failed', {}, { ...response, status: 'failed' }],
    ['in progress', {}, { ...response, status: 'in_progress' }],
  ])('of the responses API %s', async (_, fields, reply) => {
    const { ask, calls } = cached({}, () => jsonReply(reply))
    const request = { path, body: { model: 'gpt-4o', input: 'a', ...fields } }
    await ask(request)
    expect((await ask(request)).headers['x-cache']).not.toBe('hit')
    expect(calls()).toBe(2)
  })

  it('streamed of the responses API that failed', async () => {
    const event = (type: string) => `event: ${type}\ndata: {"type":"${type}","response":{"status":"x"}}\n\n`
    const results: unknown[] = []
    for (const end of ['response.failed', 'response.completed']) {
      const text =
        'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"a"}\n\n'
      const { ask } = cached({}, () => streamReply([text, event(end)]))
      const request = { path, body: { model: 'gpt-4o', input: 'a', stream: true } }
      results.push(await resultsOf(ask, [request, request]))
    }
    expect(results).toEqual([
      ['miss', 'miss'],
      ['miss', 'hit'],
    ])
  })

  it('of another target after a failover', async () => {
    const config: LlmConfig = {
      models: ['a', 'b'].map((name) => ({
        name,
        provider: 'openai',
        params: { baseUrl: `http://${name}` },
        cache: { ttl: '1h' },
      })),
      virtualModels: [
        {
          name: 'v',
          routing: {
            failover: {
              targets: [
                { model: 'a', priority: 0 },
                { model: 'b', priority: 1 },
              ],
            },
          },
        },
      ],
    }
    let failing = true
    const gateway = fixtureGateway(config, ({ origin }) =>
      origin === 'http://a' && failing ? jsonReply({ error: 'no' }, 503) : jsonReply(completion(origin)),
    )
    const body = { ...chatBody, model: 'v' }
    expect((await call(gateway, { body })).text).toContain('http://b')
    failing = false
    gateway.context.clock.advance(600_000)
    expect((await call(gateway, { body })).text).toContain('http://a')
    expect((await call(gateway, { body })).headers['x-cache']).toBe('hit')
  })

  it('of token counts and paths of unknown calls', async () => {
    const { gateway } = cached({}, () => jsonReply({ input_tokens: 3 }), { model: { provider: 'anthropic' } })
    const request = { path: '/v1/messages/count_tokens', body: { model: 'claude', messages: [] } }
    for (let times = 0; times < 2; times += 1)
      expect((await call(gateway, request)).headers['x-cache']).toBeUndefined()
  })
})

it('removes the least recently used responses beyond its limits', async () => {
  const of = (text: string) => ({ body: { ...chatBody, user: text } })
  for (const limits of [{ maxEntries: 2 }, { maxEntryBytes: 65_536, maxBytes: 65_536 }]) {
    const { ask } = cached(limits, () => jsonReply(completion('x'.repeat(30_000))))
    const requests = [of('a'), of('b'), of('a'), of('c'), of('b'), of('c')]
    expect(await resultsOf(ask, requests)).toEqual(['miss', 'miss', 'hit', 'miss', 'miss', 'hit'])
  }
})

it('reserves a limited amount of memory for streams in progress', async () => {
  const { gateway, ask } = cached({ maxEntryBytes: 65_536, maxBytes: 65_536 }, (body) =>
    body.includes('"large"')
      ? streamReply([
          `data: {"choices":[{"delta":{"content":"${'x'.repeat(60_000)}"}}]}\n\n`,
          new Uint8Array(0),
        ])
      : streamReply([delta.replace('hi', 'x'.repeat(10_000)), 'data: [DONE]\n\n']),
  )
  const small = { body: { ...chatBody, stream: true } }
  const { reply } = await open(gateway, { body: { ...small.body, user: 'large' } })
  const { body } = reply
  if (body === undefined || body instanceof Uint8Array) throw new Error('not a stream')
  // The reader pauses, so that the stream remains in progress.
  body.start({ write: () => false, end() {}, fail() {} })
  expect(await resultsOf(ask, [small, small])).toEqual(['miss', 'miss'])
  body.cancel()
  expect(await resultsOf(ask, [small, small])).toEqual(['miss', 'hit'])
})

it('returns responses after a reload, but not after a change of the model', async () => {
  const { gateway, ask } = cached()
  await ask()
  const reloaded = (more: Partial<ModelConfig>) => {
    const models = [{ name: '*', provider: 'openai', ...more, cache: { ttl: '1h' } }]
    const section = compileLlmSection({ models }, gateway.context, { maxBufferSize: 100_000 })
    return { ...gateway, llm: runToCompletion(section) }
  }
  const results: unknown[] = []
  for (const more of [{}, { overrides: { temperature: 0 } }])
    results.push((await call(reloaded(more), { body: chatBody })).headers['x-cache'])
  expect(results).toEqual(['hit', 'miss'])
})

it('checks its configuration', () => {
  const found: string[] = []
  const check = (model: Partial<ModelConfig>) =>
    checkLlm({ models: [{ name: 'a', provider: 'openai', ...model }] }, (path, message) =>
      found.push(`${path.slice(2).join('.')}: ${message}`),
    )
  check({ cache: { ttl: '1h', key: 'apiKey.group', headers: ['x-a'] } })
  expect(found).toEqual([])
  check({ cache: { ttl: '0s', key: 'llm.cost', headers: ['a b'], maxBytes: 65_536 } })
  check({ cache: { ttl: '1h' }, finalTransformation: { user: 'jwt.sub' } })
  check({ cache: { ttl: '1h' }, passthrough: 'detect' })
  expect(found).toEqual([
    'cache.ttl: must be greater than 0',
    expect.stringMatching(/^cache.key: .*only after the response/),
    'cache.headers.0: must be the name of a header',
    'cache.maxEntryBytes: must be at most maxBytes',
    expect.stringMatching(/^cache: is not valid with a final transformation/),
    'cache: is not valid with passthrough: requests are forwarded unchanged',
  ])
})
