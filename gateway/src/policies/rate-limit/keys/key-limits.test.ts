import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type FixtureContext, fixtureContext, fixtureExchange } from '../../../../test/fixtures/pipeline.ts'
import { createPlaneMemories } from '../../../../test/support/plane-memories.ts'
import { compileKeyLimits as compileLimitsOf } from '../../../pipeline/keys/key-limits.ts'
import { createKeyBuckets } from './key-buckets.ts'
import { takeKeyLimitsSnapshot } from './key-limit-snapshot.ts'
import { compileKeyLimits, keyTokenCharges } from './key-limits.ts'

type Limits = Parameters<typeof compileLimitsOf>[1]

function send(
  context: FixtureContext,
  keyId: string,
  limits: Limits,
  { hasTokens = true, method = 'POST' } = {},
) {
  const exchange = fixtureExchange({ method })
  exchange.auth.limits = compileLimitsOf(keyId, limits)
  const policy = compileKeyLimits(context, { hasTokens })
  const refused = policy.onRequest?.(exchange)
  if (refused instanceof Promise) throw new Error('not synchronous')
  const end = (totalTokens: number) => {
    exchange.facts.usage = { inputTokens: totalTokens, outputTokens: 0, totalTokens } as never
    keyTokenCharges.onEnd?.(exchange)
  }
  return { exchange, status: refused?.status ?? 200, headers: refused?.headers, end }
}

describe('limits of a key', () => {
  it('count requests per key over policies and reloads', () => {
    const context = fixtureContext()
    const limits = [{ requests: 2, unit: 'Minutes' as const }]
    expect([1, 2, 3].map(() => send(context, 'a', limits).status)).toEqual([200, 200, 429])
    expect(send(context, 'b', limits).status).toBe(200)
    const raised = [{ requests: 3, unit: 'Minutes' as const }]
    expect([1, 2].map(() => send(context, 'a', raised).status)).toEqual([200, 429])
    context.clock.advance(60_000)
    expect(send(context, 'a', limits).status).toBe(200)
  })

  it('state the limit and its reset', () => {
    const context = fixtureContext()
    const limits = [{ requests: 1, unit: 'Minutes' as const }]
    send(context, 'a', limits)
    const { exchange, headers } = send(context, 'a', limits)
    expect(headers?.['retry-after']).toBe('60')
    expect(exchange.log.refusedBy).toBe('rate-limit: apiKey: requests per minute')
    expect(exchange.limits?.refused).toEqual({ limit: 1, remaining: 0, resetSeconds: 60 })
    expect(Object.fromEntries(context.decisions)).toEqual({ 'apiKey allowed': 1, 'apiKey refused': 1 })
  })

  it('charge tokens at the end, on routes to models only', () => {
    const context = fixtureContext()
    const limits = [{ tokens: 10, unit: 'Hours' as const }]
    send(context, 'a', limits).end(11)
    expect(send(context, 'a', limits).status).toBe(429)
    expect(send(context, 'a', limits, { hasTokens: false }).status).toBe(200)
    expect(send(context, 'a', limits, { method: 'GET' }).status).toBe(200)
  })

  it('return the units of a request that another limit refuses', () => {
    const context = fixtureContext()
    const limits = [
      { requests: 5, unit: 'Hours' as const },
      { requests: 1, unit: 'Seconds' as const },
    ]
    expect([1, 2, 3].map(() => send(context, 'a', limits).status)).toEqual([200, 429, 429])
    context.clock.advance(1_000)
    const { exchange } = send(context, 'a', [{ requests: 5, unit: 'Hours' }])
    expect(exchange.limits?.requests?.remaining).toBe(3)
    for (const { release } of exchange.limits?.reservations ?? []) release()
    expect(send(context, 'a', [{ requests: 5, unit: 'Hours' }]).exchange.limits?.requests?.remaining).toBe(3)
  })

  it('are reported with the ids of keys', async () => {
    const context = fixtureContext()
    const longId = 'x'.repeat(500)
    send(context, 'a', [{ requests: 2, unit: 'Minutes' }])
    send(context, longId, [{ requests: 1, unit: 'Hours' }])
    const { used, exhausted, fullest } = await takeKeyLimitsSnapshot(context)
    expect([used, exhausted]).toEqual([2, 1])
    expect(fullest[0]).toMatchObject({ keyId: expect.stringMatching(/^sha256:[0-9a-f]{64}$/), remaining: 0 })
    expect(fullest[1]).toEqual({
      ...{ keyId: 'a', counts: 'requests', capacity: 2, refill: 2 },
      ...{ intervalSeconds: 60, remaining: 1, resetSeconds: 60 },
    })
  })
})

describe('buckets of keys in several data planes', () => {
  it('admit exactly the allowance of each key and interval', () => {
    const step = fc.record({ plane: fc.nat(2), key: fc.nat(3), wait: fc.constantFrom(0, 0, 0, 400, 1_000) })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), fc.integer({ min: 1, max: 5 }), (steps, allowance) => {
        const planes = createPlaneMemories(3).map(createKeyBuckets)
        const model = new Map<number, { used: number; refilledAt: number }>()
        let now = 0
        for (const { plane, key, wait } of steps) {
          now += wait
          const [limit] = compileLimitsOf(`key ${key}`, [{ requests: allowance, unit: 'Seconds' }]) ?? []
          if (limit === undefined) throw new Error('no limit')
          const known = model.get(key) ?? { used: 0, refilledAt: now }
          const intervals = Math.floor((now - known.refilledAt) / 1_000)
          known.refilledAt += intervals * 1_000
          if (intervals > 0) known.used = 0
          // A full bucket may begin its intervals anew.
          const expected = known.used < allowance
          const admitted = planes[plane]?.take(limit, 1, now)
          if (known.used > 0) expect(admitted).toBe(expected)
          if (admitted) known.used += 1
          expect(known.used).toBeLessThanOrEqual(allowance)
          model.set(key, known)
        }
      }),
    )
  })
})
