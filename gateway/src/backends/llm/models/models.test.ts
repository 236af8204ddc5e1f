import { describe, expect, it } from 'vitest'
import {
  call,
  completion,
  type FixtureOptions,
  fixtureGateway,
  jsonReply,
} from '../../../../test/fixtures/llm.ts'
import type { LlmConfig, ModelConfig } from '../config/config.ts'

const gatewayFor = (config: LlmConfig, options: FixtureOptions = {}) =>
  fixtureGateway(config, () => jsonReply(completion('hi')), options)

/** Which entry served a model name, as `entry > model sent upstream`, or the code of the refusal. */
async function served(
  config: LlmConfig,
  model: string,
  headers = {},
  options: FixtureOptions = {},
): Promise<string> {
  const gateway = gatewayFor(config, options)
  const { text, exchange } = await call(gateway, { headers, body: { model, messages: [] } })
  const sent = gateway.sent[0]
  if (!sent) return JSON.parse(text).error.code
  return `${exchange.facts.llm?.configuredModel} > ${JSON.parse(String(sent.body)).model}`
}

const entry = (name: string, more: Partial<ModelConfig> = {}): ModelConfig => ({
  name,
  provider: 'openai',
  ...more,
})

describe('resolution of models', () => {
  const models = [
    entry('*'),
    entry('gpt-*'),
    entry('*-mini'),
    entry('gpt-4o'),
    entry('gpt-4*', { params: { model: 'four' } }),
  ]

  it.each([
    ['gpt-4o', 'gpt-4o > gpt-4o'],
    ['gpt-4-turbo', 'gpt-4* > four'],
    ['gpt-5', 'gpt-* > gpt-5'],
    ['x-mini', '*-mini > x-mini'],
    ['gpt-5-mini', '*-mini > gpt-5-mini'],
    ['anything', '* > anything'],
    ['gpt-', 'gpt-* > gpt-'],
  ])('serves %s by %s: the most literal characters win', async (model, expected) => {
    expect(await served({ models }, model)).toBe(expected)
  })

  it('prefers the first of two equally specific patterns', async () => {
    expect(await served({ models: [entry('*bc'), entry('ab*')] }, 'abc')).toBe('*bc > abc')
    expect(await served({ models: [entry('ab*'), entry('*bc')] }, 'abc')).toBe('ab* > abc')
  })

  it('skips entries with failed header matches', async () => {
    const matches = (...headers: object[]) => [{ headers }] as ModelConfig['matches']
    const config = {
      models: [
        entry('m', {
          params: { model: 'exact' },
          matches: matches({ name: 'X-Team', value: { exact: 'red' } }),
        }),
        entry('m', {
          params: { model: 'both' },
          matches: matches(
            { name: 'x-team', value: { regex: '^b' } },
            { name: 'x-tier', value: { exact: '1' } },
          ),
        }),
      ],
    }
    expect(await served(config, 'm', { 'x-team': 'red' })).toBe('m > exact')
    expect(await served(config, 'm', { 'x-team': 'blue', 'x-tier': '1' })).toBe('m > both')
    expect(await served(config, 'm', { 'x-team': 'blue' })).toBe('model_not_found')
    expect(await served({ models: [...config.models, entry('*')] }, 'm')).toBe('* > m')
  })

  it('hides internal models from clients, not from virtual models', async () => {
    const config: LlmConfig = {
      models: [entry('secret', { visibility: 'internal' })],
      virtualModels: [{ name: 'open', routing: { weighted: { targets: [{ model: 'secret' }] } } }],
    }
    expect(await served(config, 'secret')).toBe('model_not_found')
    expect(await served(config, 'open')).toBe('secret > secret')
  })
})

describe('virtual models', () => {
  const models = [entry('a'), entry('b'), entry('c-*')]
  const virtual = (routing: unknown): LlmConfig => ({
    models,
    virtualModels: [{ name: 'v', routing: routing as never }],
  })

  it.each([
    [0, 'a > a'],
    [0.249, 'a > a'],
    [0.25, 'c-* > c-1'],
    [0.999, 'c-* > c-1'],
  ])('select by weight: %s', async (random, expected) => {
    const targets = [{ model: 'a' }, { model: 'b', weight: 0 }, { model: 'c-1', weight: 3 }]
    expect(await served(virtual({ weighted: { targets } }), 'v', {}, { random: () => random })).toBe(expected)
  })

  it('select by the first true condition; evaluation errors count as false', async () => {
    const targets = [
      { when: 'jwt.sub == "x"', model: 'a' },
      { when: 'llmRequest.messages.size() > 0', model: 'a' },
      { when: 'request.headers["x-team"] == "red"', model: 'b' },
      { model: 'c-1' },
    ]
    const config = virtual({ conditional: { targets } })
    expect(await served(config, 'v', { 'x-team': 'red' })).toBe('b > b')
    expect(await served(config, 'v')).toBe('c-* > c-1')
    expect(await served(virtual({ conditional: { targets: targets.slice(0, 3) } }), 'v')).toBe(
      'virtual_model_no_matching_target',
    )
  })

  it('take precedence over models of the same name', async () => {
    const config: LlmConfig = {
      models,
      virtualModels: [{ name: 'a', routing: { weighted: { targets: [{ model: 'b' }] } } }],
    }
    expect(await served(config, 'a')).toBe('b > b')
  })

  it('are checked against the key by the requested name', async () => {
    const gateway = gatewayFor(virtual({ weighted: { targets: [{ model: 'a' }] } }))
    const body = { model: 'v', messages: [] }
    expect((await call(gateway, { body, mayUseModel: (model) => model === 'v' })).status).toBe(200)
    expect((await call(gateway, { body, mayUseModel: (model) => model === 'a' })).status).toBe(403)
  })
})

describe('the list of models', () => {
  const config: LlmConfig = {
    models: [
      entry('gpt-*'),
      entry('hidden', { visibility: 'internal' }),
      entry('b'),
      entry('b', { matches: [] }),
    ],
    virtualModels: [{ name: 'fast', routing: { weighted: { targets: [{ model: 'b' }] } } }],
  }
  const get = (path: string, more = {}) => call(gatewayFor(config), { method: 'GET', path, ...more })

  it('contains virtual and public models, patterns as written', async () => {
    const { text, status } = await get('/v1/models')
    expect(status).toBe(200)
    expect(JSON.parse(text)).toEqual({
      object: 'list',
      data: ['fast', 'gpt-*', 'b'].map((id) => ({ id, object: 'model', created: 5, owned_by: 'openai' })),
    })
  })

  it('contains only models that the key permits', async () => {
    const mayUseModel = (model: string) => model === 'b'
    expect(JSON.parse((await get('/v1/models', { mayUseModel })).text).data).toHaveLength(1)
    expect((await get('/v1/models/b', { mayUseModel })).status).toBe(200)
    expect((await get('/v1/models/fast', { mayUseModel })).status).toBe(404)
  })

  it('contains the permitted part of a pattern as written in the key', async () => {
    const allowedModels = ['gpt-4o', 'gpt-5*', 'b', 'hidden', 'unknown', 'claude-*']
    const mayUseModel = (model: string) => allowedModels.includes(model) || model.startsWith('gpt-5')
    const { text } = await get('/v1/models', { mayUseModel, allowedModels })
    const ids = JSON.parse(text).data.map(({ id }: { id: string }) => id)
    expect(ids).toEqual(['b', 'gpt-4o', 'gpt-5*'])
  })

  it('returns one model, or 404', async () => {
    expect(JSON.parse((await get('/v1/models/gpt-9')).text)).toMatchObject({ id: 'gpt-9', object: 'model' })
    expect(JSON.parse((await get('/v1/models/fast')).text)).toMatchObject({ id: 'fast', object: 'model' })
    const missing = await get('/v1/models/hidden')
    expect(missing.status).toBe(404)
    expect(JSON.parse(missing.text).error.code).toBe('model_not_found')
  })

  it('has the shape of Anthropic’s API for its clients', async () => {
    const { text } = await get('/v1/models', { headers: { 'anthropic-version': '2023-06-01' } })
    expect(JSON.parse(text)).toMatchObject({
      data: [
        { type: 'model', id: 'fast', display_name: 'fast', created_at: '1970-01-01T00:00:05.000Z' },
        {},
        {},
      ],
      has_more: false,
      first_id: 'fast',
      last_id: 'b',
    })
  })
})
