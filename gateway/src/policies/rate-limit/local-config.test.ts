import { describe, expect, it } from 'vitest'
import {
  checkLocalRateLimit,
  describeRule,
  keyVariables,
  type LocalRateLimitConfig,
  limitRule,
  localRateLimitSchema,
} from './local-config.ts'

function issues(config: LocalRateLimitConfig): string[] {
  const found: string[] = []
  checkLocalRateLimit(
    config,
    () => keyVariables,
    (path, message) => found.push(`${path.join('.')}: ${message}`),
  )
  return found
}

function accepts(entry: unknown): boolean {
  return localRateLimitSchema.safeParse([entry]).success
}

describe('the written forms of a limit', () => {
  it('are an allowance per unit, and a bucket', () => {
    expect(accepts({ requests: 1, unit: 'Seconds' })).toBe(true)
    expect(accepts({ tokens: 5, unit: 'Hours', burst: 2, key: 'apiKey.id', name: 'x' })).toBe(true)
    expect(accepts({ maxTokens: 5, tokensPerFill: 5, fillInterval: '1m' })).toBe(true)
    expect(accepts({ type: 'tokens', maxTokens: 5, tokensPerFill: 5, fillInterval: '1m' })).toBe(true)
  })

  it.each([
    {},
    { requests: 1 },
    { requests: 0, unit: 'Seconds' },
    { requests: -1, unit: 'Seconds' },
    { requests: 1.5, unit: 'Seconds' },
    { requests: '5', unit: 'Seconds' },
    { requests: 1, tokens: 1, unit: 'Seconds' },
    { requests: 1, unit: 'seconds' },
    { requests: 1, unit: 'Days' },
    { requests: 1, unit: 'Seconds', burst: -1 },
    { requests: 1, unit: 'Seconds', fillInterval: '1s' },
    { maxTokens: 1, tokensPerFill: 1 },
    { maxTokens: 1, tokensPerFill: 0, fillInterval: '1s' },
    { maxTokens: 1, tokensPerFill: 1, fillInterval: 5 },
  ])('refuse %j', (entry) => {
    expect(accepts(entry)).toBe(false)
  })

  it('are equivalent for equal limits', () => {
    const perUnit = limitRule({ requests: 10, unit: 'Minutes', burst: 5 })
    expect(limitRule({ maxTokens: 15, tokensPerFill: 10, fillInterval: '60s' })).toEqual(perUnit)
    expect(perUnit.rate).toEqual({ capacity: 15, refill: 10, intervalMs: 60_000 })
  })

  it('have names that people read', () => {
    expect(describeRule(limitRule({ tokens: 1, unit: 'Hours', key: 'apiKey.id' }))).toBe(
      'tokens per hour by apiKey.id',
    )
    expect(describeRule(limitRule({ maxTokens: 1, tokensPerFill: 1, fillInterval: '90s' }))).toBe(
      'requests per 90s',
    )
  })
})

describe('checking limits', () => {
  it('finds nothing wrong with good ones', () => {
    expect(issues([{ requests: 1, unit: 'Seconds', key: 'request.headers["x-user"]' }])).toEqual([])
  })

  it('finds a bucket smaller than its refill, and an interval of nothing', () => {
    expect(issues([{ maxTokens: 3, tokensPerFill: 4, fillInterval: '0s' }])).toEqual([
      '0.fillInterval: must be greater than 0',
      '0.maxTokens: must be at least tokensPerFill, which is 4',
    ])
  })

  it('finds sums beyond exact numbers', () => {
    expect(issues([{ requests: Number.MAX_SAFE_INTEGER, burst: 1, unit: 'Hours' }])).toHaveLength(1)
  })

  it('finds two limits with one name', () => {
    const limit = { requests: 1, unit: 'Seconds', name: 'a' } as const
    expect(issues([limit, { ...limit, name: 'b' }, limit])).toEqual([
      '2.name: limit 1 of this list has the same name',
    ])
  })

  it('finds keys that do not compile or name unknown variables', () => {
    const found = issues([
      { requests: 1, unit: 'Seconds', key: 'apiKey.' },
      { requests: 1, unit: 'Seconds', key: 'apikey.id' },
    ])
    expect(found).toHaveLength(2)
    expect(found[0]).toMatch(/^0\.key: .*column/)
    expect(found[1]).toMatch(/^1\.key: .*apikey.*apiKey/)
  })
})
