import { describe, expect, it } from 'vitest'
import { type FixtureCall, fixtureGateway, open } from '../../../../test/fixtures/llm.ts'
import type { CallEstimate } from '../../../pipeline/exchange.ts'
import type { Prices } from '../catalog/prices.ts'

const prices: Prices = (provider, models, { inputTokens, outputTokens }) =>
  provider === 'openai' && models.includes('gpt-test')
    ? { kind: 'cost', amount: BigInt(inputTokens + 10 * outputTokens) }
    : { kind: 'missing' }

/** Estimate of a call at the time of the policies, which precede the backend. */
async function estimateOf(request: FixtureCall, model = 'gpt-test'): Promise<CallEstimate | undefined> {
  const gateway = fixtureGateway(
    {
      models: [
        { name: '*', provider: 'openai', params: { apiKey: 'k', baseUrl: 'http://provider.test/v1' } },
      ],
    },
    () => {
      throw new Error('no call expected')
    },
    { prices },
  )
  let estimate: CallEstimate | undefined
  gateway.llm.backend = (exchange) => {
    estimate = exchange.llm?.estimate?.(exchange)
    return { status: 200, headers: {}, body: undefined }
  }
  await open(gateway, { ...request, body: { model, ...(request.body as object) } })
  return estimate
}

const messages = [{ role: 'user', content: 'hello' }]

describe('the estimate of a call', () => {
  it('is a token per four bytes, and the stated output limit', async () => {
    const body = { messages, max_tokens: 100 }
    const input = Math.ceil(JSON.stringify({ model: 'gpt-test', ...body }).length / 4)
    expect(await estimateOf({ body })).toEqual({ tokens: input + 100, picodollars: input + 1_000 })
  })

  it('assumes 1,024 tokens for each choice without a limit', async () => {
    const body = { messages, n: 2 }
    const input = Math.ceil(JSON.stringify({ model: 'gpt-test', ...body }).length / 4)
    expect((await estimateOf({ body }))?.tokens).toBe(input + 2_048)
  })

  it('does not count the bytes of images', async () => {
    const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(100_000)}` } }
    const body = { messages: [{ role: 'user', content: [image] }], max_tokens: 1 }
    expect((await estimateOf({ body }))?.tokens).toBeLessThan(100)
  })

  it('has no amount without a price', async () => {
    expect((await estimateOf({ body: { messages } }, 'other'))?.picodollars).toBeUndefined()
  })
})
