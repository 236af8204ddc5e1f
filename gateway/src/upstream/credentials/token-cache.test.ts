import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createTokenCache, RequestNotSent, type TimedToken } from './token-cache.ts'

function cacheAt(maxEntries = 10) {
  const clock = { ms: 0 }
  const cache = createTokenCache(maxEntries, { monotonic: () => clock.ms })
  return { cache, clock }
}

const lasting = (token: string, lifetimeMs = 100_000) => Promise.resolve({ token, lifetimeMs })

describe('the token cache', () => {
  it('shares one request between concurrent calls with the same key', async () => {
    const { cache } = cacheAt()
    let requests = 0
    const request = () => {
      requests += 1
      return lasting('t')
    }
    const tokens = await Promise.all([1, 2, 3].map(() => cache.get('key', request)))
    expect({ tokens, requests }).toEqual({ tokens: ['t', 't', 't'], requests: 1 })
    expect(cache.get('key', request)).toBe('t')
  })

  it('requests a token anew before its end and serves the old one meanwhile', async () => {
    const { cache, clock } = cacheAt()
    await cache.get('key', () => lasting('old'))
    clock.ms = 70_000
    expect(cache.get('key', () => lasting('new'))).toBe('old')
    await Promise.resolve().then(() => Promise.resolve())
    await new Promise(setImmediate)
    expect(cache.get('key', () => lasting('unused'))).toBe('new')
  })

  it('does not serve a token near its end', async () => {
    const { cache, clock } = cacheAt()
    await cache.get('key', () => lasting('old'))
    clock.ms = 85_001
    await expect(cache.get('key', () => Promise.reject(new Error('down')))).rejects.toThrow('down')
  })

  it.each([0, -5, 1])('serves a token that ends in %d ms for a second', async (lifetimeMs) => {
    const { cache, clock } = cacheAt()
    await cache.get('key', () => lasting('short', lifetimeMs))
    clock.ms = 500
    expect(cache.get('key', () => lasting('unused'))).toBe('short')
    clock.ms = 1_001
    expect(await cache.get('key', () => lasting('new'))).toBe('new')
  })

  it('requests a token anew after a day, whatever lifetime a server reports', async () => {
    const { cache, clock } = cacheAt()
    await cache.get('key', () => lasting('old', Number.POSITIVE_INFINITY))
    clock.ms = 86_400_000
    expect(await cache.get('key', () => lasting('new'))).toBe('new')
  })

  it('does not repeat a failure of a request that was not sent', async () => {
    const { cache } = cacheAt()
    const refused = () => Promise.reject(new RequestNotSent('credential_unavailable', 'too many'))
    await expect(Promise.resolve(cache.get('key', refused))).rejects.toThrow('too many')
    expect(await cache.get('key', () => lasting('t'))).toBe('t')
  })

  it('repeats a failure without a request until the pause ends, which grows', async () => {
    const { cache, clock } = cacheAt()
    let requests = 0
    const failing = () => {
      requests += 1
      return Promise.reject<TimedToken>(new Error('down'))
    }
    const attempt = async () => await cache.get('key', failing)
    await expect(attempt()).rejects.toThrow('down')
    await expect(attempt()).rejects.toThrow('down')
    expect(requests).toBe(1)
    clock.ms += 501
    await expect(attempt()).rejects.toThrow('down')
    clock.ms += 501
    await expect(attempt()).rejects.toThrow('down')
    expect(requests).toBe(2)
    clock.ms += 501
    expect(await cache.get('key', () => lasting('t'))).toBe('t')
  })

  it('requests another token after a refusal, at most once in 30 seconds', async () => {
    const { cache, clock } = cacheAt()
    cache.refuse('key')
    await cache.get('key', () => lasting('one'))
    await cache.get('other', () => lasting('of other'))
    cache.refuse('key')
    expect(await cache.get('key', () => lasting('two'))).toBe('two')
    expect(cache.get('other', () => lasting('unused'))).toBe('of other')
    clock.ms += 29_999
    cache.refuse('key')
    expect(cache.get('key', () => lasting('unused'))).toBe('two')
    clock.ms += 1
    cache.refuse('key')
    expect(await cache.get('key', () => lasting('three'))).toBe('three')
  })

  it('uses a refused token while no other can be requested', async () => {
    const { cache, clock } = cacheAt()
    await cache.get('key', () => lasting('old'))
    cache.refuse('key')
    const failing = () => Promise.reject<TimedToken>(new Error('down'))
    await expect(Promise.resolve(cache.get('key', failing))).rejects.toThrow('down')
    expect(cache.get('key', failing)).toBe('old')
    clock.ms += 501
    expect(cache.get('key', () => lasting('new'))).toBe('old')
    await new Promise(setImmediate)
    expect(cache.get('key', failing)).toBe('new')
  })

  it('returns no token of another key for any order of calls and ends', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ user: fc.nat(4), passes: fc.nat(120_000), fails: fc.boolean() }), {
          maxLength: 60,
        }),
        fc.integer({ min: 1, max: 3 }),
        async (calls, maxEntries) => {
          const { cache, clock } = cacheAt(maxEntries)
          const results = calls.map(({ user, passes, fails }) => {
            clock.ms += passes
            const key = `user ${user}`
            const request = async () => {
              await new Promise(setImmediate)
              if (fails) throw new Error(`failure of ${key}`)
              return { token: `token of ${key}`, lifetimeMs: 60_000 }
            }
            return Promise.resolve(cache.get(key, request)).then(
              (token) => ({ key, text: token }),
              (error: Error) => ({ key, text: error.message }),
            )
          })
          for (const { key, text } of await Promise.all(results)) {
            expect([`token of ${key}`, `failure of ${key}`]).toContain(text)
          }
        },
      ),
      { numRuns: 50 },
    )
  })
})
