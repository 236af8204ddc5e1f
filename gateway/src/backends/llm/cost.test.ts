import { describe, expect, it } from 'vitest'
import {
  call,
  chatBody,
  completion,
  type FixtureProvider,
  fixtureGateway,
  jsonReply,
  open,
  streamReply,
} from '../../../test/fixtures/llm.ts'
import { fixtureContext } from '../../../test/fixtures/pipeline.ts'
import { createCancellation } from '../../lib/cancellation.ts'
import { compilePrices, type Prices } from './catalog/prices.ts'

type Asked = { provider: string; models: readonly (string | undefined)[]; tokens: number }

function gatewayWith(provider: FixtureProvider, outcome: ReturnType<Prices>, asked: Asked[] = []) {
  const prices: Prices = (name, models, usage) => {
    asked.push({ provider: name, models, tokens: usage.totalTokens })
    return outcome
  }
  const config = {
    models: [
      { name: 'gpt-*', provider: 'openai' as const, params: { apiKey: 'sk' } },
      { name: 'mine', provider: 'openai' as const, params: { apiKey: 'sk', model: 'gpt-4o' } },
      { name: 'claude', provider: 'anthropic' as const, params: { apiKey: 'sk', model: 'claude-x' } },
    ],
  }
  return fixtureGateway(config, provider, { prices })
}

const cent = { kind: 'cost', amount: 10n ** 10n } as const
const event = (data: unknown) => `data: ${JSON.stringify(data)}\n\n`

describe('the cost of a call', () => {
  it('is counted with its tokens by key group', async () => {
    const gateway = gatewayWith(() => jsonReply(completion('hi')), cent)
    const { exchange } = await call(gateway, { body: chatBody })
    expect(exchange.facts.llm).toMatchObject({ cost: 0.01, costStatus: 'exact' })
    expect(gateway.metered).toContain('cost gpt-* openai 10000000000 team')
  })

  it('is priced by response model, then requested model, then configured model', async () => {
    const asked: Asked[] = []
    const gateway = gatewayWith(() => jsonReply(completion('hi')), cent, asked)
    await call(gateway, { body: { ...chatBody, model: 'mine' } })
    expect(asked).toEqual([
      { provider: 'openai', models: ['gpt-4o-2024-08-06', 'gpt-4o', 'mine'], tokens: 12 },
    ])
  })

  it.each([
    ['unpriced', 'unpriced'],
    ['missing', 'missing'],
  ] as const)('is said to be %s where the catalog does not tell', async (kind, status) => {
    const gateway = gatewayWith(() => jsonReply(completion('hi')), { kind })
    const { exchange } = await call(gateway, { body: chatBody })
    expect(exchange.facts.llm?.costStatus).toBe(status)
    expect(exchange.facts.llm?.cost).toBeUndefined()
    expect(gateway.metered).toContain(`cost ${status} gpt-* openai`)
  })

  it('is an estimate for estimated tokens', async () => {
    const gateway = gatewayWith(() => jsonReply(completion('hi', null)), cent)
    const { exchange } = await call(gateway, { body: chatBody })
    expect(exchange.facts.llm).toMatchObject({ cost: 0.01, costStatus: 'estimated' })
  })

  it('is an estimate after a disconnect before the response', async () => {
    const cancellation = createCancellation()
    const gateway = gatewayWith(() => {
      cancellation.cancel()
      throw new Error('gone')
    }, cent)
    const { exchange } = await open(gateway, { body: chatBody, cancellation })
    gateway.llm.llmRequest.onEnd?.(exchange)
    expect(exchange.facts.llm).toMatchObject({ costStatus: 'estimated' })
  })

  it('is computed from the last usage report of a stream', async () => {
    const asked: Asked[] = []
    const gateway = gatewayWith(
      () =>
        streamReply([
          event({ model: 'gpt-4o-x', choices: [{ delta: { content: 'hi' } }] }),
          event({ model: 'gpt-4o-x', choices: [], usage: { prompt_tokens: 5, completion_tokens: 2 } }),
          'data: [DONE]\n\n',
        ]),
      cent,
      asked,
    )
    const { exchange } = await call(gateway, { body: { ...chatBody, stream: true } })
    expect(asked).toEqual([{ provider: 'openai', models: ['gpt-4o-x', 'gpt-4o', 'gpt-*'], tokens: 7 }])
    expect(exchange.facts.llm?.cost).toBe(0.01)
  })

  it('uses the model name of the first event of messages', async () => {
    const asked: Asked[] = []
    const messages = [
      {
        type: 'message_start',
        message: { model: 'claude-x-1', usage: { input_tokens: 5, output_tokens: 1 } },
      },
      { type: 'message_delta', delta: {}, usage: { output_tokens: 9 } },
      { type: 'message_stop' },
    ]
    const gateway = gatewayWith(
      () => streamReply(messages.map((data) => `event: ${data.type}\n${event(data)}`)),
      cent,
      asked,
    )
    await call(gateway, {
      path: '/v1/messages',
      body: { model: 'claude', max_tokens: 9, stream: true, messages: [{ role: 'user', content: 'hi' }] },
    })
    expect(asked).toEqual([
      { provider: 'anthropic', models: ['claude-x-1', 'claude-x', 'claude'], tokens: 14 },
    ])
  })

  it('is absent for failed and refused calls', async () => {
    const asked: Asked[] = []
    const gateway = gatewayWith(() => jsonReply({ error: { message: 'no' } }, 500), cent, asked)
    const failed = await call(gateway, { body: chatBody })
    const refused = await call(gateway, { body: { ...chatBody, model: 'unknown' } })
    expect([failed.status, refused.status]).toEqual([500, 404])
    expect(asked).toEqual([])
    expect(failed.exchange.facts.llm?.costStatus).toBeUndefined()
  })

  it('is absent without a catalog', async () => {
    const gateway = fixtureGateway({ models: [{ name: 'gpt-*', provider: 'openai' }] }, () =>
      jsonReply(completion('hi')),
    )
    const { exchange } = await call(gateway, { body: chatBody })
    expect(exchange.facts.llm?.costStatus).toBeUndefined()
    expect(gateway.metered.join()).not.toContain('cost')
  })

  it.each([17, '', 'x'.repeat(10_000), { a: 1 }, null])(
    'does not believe a model named %j',
    async (model) => {
      const asked: Asked[] = []
      const gateway = gatewayWith(() => jsonReply({ ...completion('hi'), model }), cent, asked)
      await call(gateway, { body: chatBody })
      expect(asked[0]?.models).toEqual([undefined, 'gpt-4o', 'gpt-*'])
    },
  )
})

describe('the cost of images and audio', () => {
  const units = { perMillionCharacters: '15', perImage: '0.04', perMinute: '0.006' }
  const models = { tts: { units }, 'dall-e-3': { units } }
  const prices = compilePrices([{ inline: { providers: { openai: { models } } } }], fixtureContext())
  const llm = (provider: FixtureProvider) =>
    fixtureGateway(
      { models: [{ name: '*', provider: 'openai', params: { apiKey: 'sk' } }] },
      provider,
      prices ? { prices } : {},
    )

  it('is exact by characters of speech', async () => {
    const gateway = llm(() => ({
      status: 200,
      headers: { 'content-type': 'audio/mpeg' },
      body: Buffer.from('x'),
    }))
    const body = { model: 'tts', voice: 'alloy', input: 'héllo 🙂' }
    const { exchange } = await call(gateway, { path: '/v1/audio/speech', body })
    expect(exchange.facts.llm).toMatchObject({ costPicodollars: 7 * 15_000_000, costStatus: 'exact' })
  })

  it('is an estimate by the requested images before a response', async () => {
    const cancellation = createCancellation()
    const gateway = llm(() => {
      cancellation.cancel()
      throw new Error('gone')
    })
    const { exchange } = await open(gateway, {
      ...{ path: '/v1/images/generations', cancellation },
      body: { model: 'dall-e-3', prompt: 'a cat', n: 2 },
    })
    gateway.llm.llmRequest.onEnd?.(exchange)
    expect(exchange.facts.llm).toMatchObject({ cost: 0.08, costStatus: 'estimated' })
    expect(exchange.llm?.estimate?.(exchange).picodollars).toBe(0.08e12)
  })

  it('is exact by the number of images', async () => {
    const gateway = llm(() => jsonReply({ created: 1, data: [{ url: 'a' }, { url: 'b' }] }))
    const body = { model: 'dall-e-3', prompt: 'a cat', n: 2 }
    const { exchange } = await call(gateway, { path: '/v1/images/generations', body })
    expect(exchange.facts.llm).toMatchObject({ cost: 0.08, costStatus: 'exact' })
  })
})
