import { describe, expect, it } from 'vitest'
import { fixtureContext, fixtureExchange } from '../../../../../test/fixtures/pipeline.ts'
import type { Exchange } from '../../../../pipeline/exchange.ts'
import { operations } from '../../request/endpoints.ts'
import { chargeOf, processOf } from './batch-charge.ts'
import type { ReadUse } from './batch-use.ts'
import { createSettleBatch } from './settle-batch.ts'

const context = fixtureContext()
const facts = { endpoint: 'chat' as const, inputTokens: 100, outputTokens: 900 }
const use: ReadUse = {
  extent: 'all',
  usage: {
    ...{ inputTokens: 90, outputTokens: 10, totalTokens: 100, reasoningTokens: 4, estimated: false },
    ...{ cachedInputTokens: 5, cacheCreationInputTokens: 0 },
  },
  cost: { amount: 150n, status: 'exact' },
}

function exchangeOf(requestId: string): Exchange {
  const exchange = { ...fixtureExchange(), requestId }
  exchange.llm = { operation: operations.batches, estimate: undefined, message: undefined }
  exchange.facts.llm = {
    ...{
      ...operations.batches,
      requestModel: 'm',
      configuredModel: 'm',
      provider: 'openai',
      streaming: false,
    },
  }
  return exchange
}

const chargeFor = (requestId: string, process = processOf(context)) =>
  chargeOf(exchangeOf(requestId), { facts, estimate: 1000, process })

describe('settling a batch', () => {
  it('stores the differences to its charge, once', () => {
    const settle = createSettleBatch(context)
    const exchange = exchangeOf('read-1')
    settle(exchange, chargeFor('one'), use)
    expect(exchange.facts.usage).toMatchObject({
      ...{ inputTokens: -10, outputTokens: -890, totalTokens: -900, estimated: false },
    })
    expect(exchange.facts.llm).toMatchObject({
      ...{ settles: 'one', costPicodollars: -850, costStatus: 'exact' },
    })
    expect(exchange.llm?.settlement).toEqual({ tokens: -900, picodollars: -850, budgets: [], isOwn: true })
    const again = exchangeOf('read-2')
    createSettleBatch(context)(again, chargeFor('one'), use)
    expect([again.facts.usage, again.llm?.settlement]).toEqual([undefined, undefined])
  })

  it('retains the estimated cost without a price', () => {
    const exchange = exchangeOf('read-3')
    const cost = { amount: undefined, status: 'missing' } as const
    createSettleBatch(context)(exchange, chargeFor('two'), { ...use, cost })
    expect(exchange.llm?.settlement).toMatchObject({ tokens: -900, picodollars: 0 })
    expect(exchange.facts.llm).toMatchObject({ costStatus: 'missing', settles: 'two' })
    expect(exchange.facts.llm?.costPicodollars).toBeUndefined()
  })

  it('recognises batches of other processes', () => {
    const exchange = exchangeOf('read-4')
    const other = processOf({ processKey: new Uint8Array(32).fill(7) })
    createSettleBatch(context)(exchange, chargeFor('three', other), use)
    expect(exchange.llm?.settlement?.isOwn).toBe(false)
  })

  it('raises the charge by results that were read in part, and never lowers it', () => {
    const settle = createSettleBatch(context)
    const corrected = (tokens: number, extent: 'all' | 'part') => {
      const exchange = exchangeOf('read')
      const usage = { ...use.usage, inputTokens: 0, outputTokens: tokens, totalTokens: tokens }
      settle(exchange, chargeFor('five'), {
        ...{ usage, cost: { amount: BigInt(tokens), status: 'exact' }, extent },
      })
      const { tokens: added, picodollars } = exchange.llm?.settlement ?? {}
      return [exchange.facts.llm?.settles, exchange.facts.usage?.totalTokens, added, picodollars]
    }
    const nothing = [undefined, undefined, undefined, undefined]
    expect(corrected(900, 'part')).toEqual(nothing)
    expect(corrected(1500, 'part')).toEqual(['five', 500, 500, 500])
    expect(corrected(1400, 'part')).toEqual(nothing)
    expect(corrected(1600, 'part')).toEqual(['five/2', 100, 100, 100])
    expect(corrected(1750, 'all')).toEqual(['five/3', 150, 150, 150])
    expect(corrected(9000, 'part')).toEqual(nothing)
    expect(corrected(9000, 'all')).toEqual(nothing)
  })
})
