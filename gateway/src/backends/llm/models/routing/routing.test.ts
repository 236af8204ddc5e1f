import { describe, expect, it } from 'vitest'
import {
  call,
  chatBody,
  completion,
  type FixtureOptions,
  fixtureGateway,
  jsonReply,
} from '../../../../../test/fixtures/llm.ts'
import type { OutgoingRequest, Reply } from '../../../../net/http-client/send.ts'
import type { LlmConfig } from '../../config/config.ts'

type Options = FixtureOptions & { labels?: Record<string, Record<string, string>> }

/** A gateway with the models a, b and c, and the virtual model v. */
function routed(
  routing: object,
  answer: (host: string) => Reply | Promise<Reply> = () => jsonReply(completion('hi')),
  { labels = {}, ...options }: Options = {},
) {
  const config: LlmConfig = {
    models: ['a', 'b', 'c'].map((name) => ({
      name,
      provider: 'openai',
      params: { baseUrl: `http://${name}` },
      labels: labels[name],
    })),
    virtualModels: [{ name: 'v', routing: routing as never }],
  }
  const hostOf = ({ origin }: OutgoingRequest) => origin.slice('http://'.length)
  const gateway = fixtureGateway(config, (request) => answer(hostOf(request)), options)
  return { gateway, asked: () => gateway.sent.map(hostOf).join(' ') }
}

const equals = ['a', 'b', 'c'].map((model) => ({ model, priority: 0 }))
const body = { ...chatBody, model: 'v' }
const session = (id: string) => ({ body, headers: { 'x-session': id } })

describe('sessionAffinity', () => {
  const sessionAffinity = { source: 'request.headers["x-session"]' }

  it('sends a session to one target, and to another one during its eviction', async () => {
    let broken: string | undefined
    const { gateway, asked } = routed({ failover: { targets: equals, sessionAffinity } }, (host) =>
      host === broken ? jsonReply({}, 500) : jsonReply(completion('hi')),
    )
    for (let request = 0; request < 3; request += 1) await call(gateway, session('s1'))
    const [first = ''] = asked().split(' ')
    expect(asked()).toBe([first, first, first].join(' '))
    broken = first
    gateway.sent.length = 0
    for (let request = 0; request < 3; request += 1) await call(gateway, session('s1'))
    const [, second = ''] = asked().split(' ')
    expect(asked()).toBe([first, second, second, second].join(' '))
    broken = undefined
    gateway.context.clock.advance(3_001)
    await call(gateway, session('s1'))
    expect(asked().split(' ').at(-1)).toBe(first)
  })

  it('respects the weights, and a weight of zero', async () => {
    const targets = [{ model: 'a', weight: 0 }, { model: 'b' }, { model: 'c', weight: 3 }]
    const { gateway, asked } = routed({ weighted: { targets, sessionAffinity } })
    for (let request = 0; request < 200; request += 1) await call(gateway, session(`s${request}`))
    const shares = Map.groupBy(asked().split(' '), (host) => host)
    expect([...shares.keys()].toSorted()).toEqual(['b', 'c'])
    expect(shares.get('c')?.length).toBeGreaterThan(120)
  })
})

describe('requiredLabels', () => {
  const labels = { a: { region: 'eu' }, b: { region: 'us' } }
  const requiredLabels = { region: 'request.headers["x-region"].split(",")' }
  const from = (region: string | undefined) => ({ body, headers: region ? { 'x-region': region } : {} })

  it.each(['failover', 'weighted'])('restricts %s to targets with permitted values', async (kind) => {
    const targets = kind === 'failover' ? equals : equals.map(({ model }) => ({ model }))
    const { gateway, asked } = routed({ [kind]: { targets, requiredLabels } }, undefined, { labels })
    for (const region of ['eu', 'us', 'eu,us']) await call(gateway, from(region))
    expect(asked()).toMatch(/^a b [ab]$/)
    for (const region of ['asia', undefined]) {
      const { status, text } = await call(gateway, from(region))
      expect([status, JSON.parse(text).error.code]).toEqual([400, 'virtual_model_no_matching_target'])
    }
    expect(gateway.sent).toHaveLength(3)
  })

  it('applies to failover', async () => {
    const { gateway, asked } = routed(
      { failover: { targets: equals, requiredLabels } },
      () => jsonReply({}, 500),
      {
        labels: { ...labels, c: { region: 'eu' } },
      },
    )
    await call(gateway, from('eu'))
    expect(asked()).toMatch(/^(a c|c a)$/)
  })
})

describe('prefer', () => {
  it('cost selects the model with the lowest price', async () => {
    const amounts: Record<string, bigint> = { a: 3n, b: 1n }
    const prices: FixtureOptions['prices'] = (_, [model = '']) => {
      const amount = amounts[model]
      return amount === undefined ? { kind: 'missing' } : { kind: 'cost', amount }
    }
    const { gateway, asked } = routed(
      { failover: { targets: equals, prefer: 'cost' } },
      () => jsonReply({}, 500),
      {
        prices,
      },
    )
    await call(gateway, { body })
    expect(asked()).toBe('b a c')
  })

  it('latency selects the faster of two targets', async () => {
    const targets = equals.slice(0, 2)
    const { gateway, asked } = routed({ failover: { targets, prefer: 'latency' } }, (host) => {
      gateway.context.clock.advance(host === 'a' ? 400 : 100)
      return jsonReply(completion('hi'))
    })
    for (let request = 0; request < 6; request += 1) await call(gateway, { body })
    // Each is tried without an observation first.
    expect(asked().split(' ').slice(2)).toEqual(['b', 'b', 'b', 'b'])
  })
})

describe('contextFallback', () => {
  const priorities = equals.map(({ model }, priority) => ({ model, priority }))
  const limits = (contextWindow: number) => ({ limits: { contextWindow } })
  const modelCatalog = [
    { inline: { providers: { openai: { models: { a: limits(10), b: limits(100), c: limits(1_000) } } } } },
  ]
  const failover = { targets: priorities, contextFallback: true }
  const tooLong = () => jsonReply({ error: { message: '', code: 'context_length_exceeded' } }, 400)
  const long = (words: number) => ({ ...body, messages: [{ role: 'user', content: 'word '.repeat(words) }] })

  it('tries models with a smaller context window than the prompt last', async () => {
    const { gateway, asked } = routed({ failover }, undefined, { modelCatalog })
    await call(gateway, { body: long(1) })
    await call(gateway, { body: long(60) })
    await call(gateway, { body: long(500) })
    expect(asked()).toBe('a b c')
  })

  it('continues with a larger model after an error about the length', async () => {
    const { gateway, asked } = routed(
      { failover },
      (host) => (host === 'c' ? jsonReply(completion('hi')) : tooLong()),
      {
        modelCatalog,
      },
    )
    const { status, exchange } = await call(gateway, { body: long(1) })
    expect([status, asked()]).toEqual([200, 'a b c'])
    expect(exchange.facts.llm).toMatchObject({ configuredModel: 'c' })
    // The models are not evicted: the length is a property of the request.
    await call(gateway, { body: long(1) })
    expect(asked()).toBe('a b c a b c')
  })

  it('returns the error if no model is larger', async () => {
    const { gateway, asked } = routed({ failover }, tooLong, { modelCatalog })
    const { status, text } = await call(gateway, { body: long(500) })
    expect([status, JSON.parse(text).error.code, asked()]).toEqual([400, 'context_length_exceeded', 'c'])
  })

  it('continues without a catalog, but not without the setting or after other errors', async () => {
    const known = routed({ failover }, (host) => (host === 'a' ? tooLong() : jsonReply(completion('hi'))))
    expect((await call(known.gateway, { body })).status).toBe(200)
    const without = routed({ failover: { targets: priorities } }, tooLong)
    expect((await call(without.gateway, { body })).status).toBe(400)
    const other = routed({ failover }, () => jsonReply({ error: { message: 'bad' } }, 400))
    const { text } = await call(other.gateway, { body })
    expect([JSON.parse(text).error.message, other.asked()]).toEqual(['bad', 'a'])
  })
})
