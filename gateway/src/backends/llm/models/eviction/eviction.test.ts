import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fixtureContext, fixtureExchange } from '../../../../../test/fixtures/pipeline.ts'
import { compileHealth } from '../../../../upstream/health.ts'
import { announcedWaitMs } from './announced-wait.ts'
import { compileEviction, evictionMs } from './eviction.ts'

const { facts } = fixtureExchange()

function evictionOf(health?: Parameters<typeof compileHealth>[0]) {
  const context = fixtureContext()
  const compiled = health && compileHealth(health, 'm', context)
  const eviction = compileEviction({ name: 'm', place: 'm', health: compiled }, context)
  const respond = (status: number, headers = {}) => eviction.responded({ status, headers }, facts)
  return { eviction, respond, clock: context.clock }
}

describe('the eviction of a target', () => {
  it('doubles with each failure without a success, up to five minutes', () => {
    expect([1, 2, 3, 8, 30].map((evictions) => evictionMs(evictions, undefined))).toEqual([
      3_000, 6_000, 12_000, 300_000, 300_000,
    ])
    expect(evictionMs(1, 86_400_000)).toBe(300_000)
  })

  it('counts failures at the same time as one', () => {
    const { eviction, clock } = evictionOf()
    for (let request = 0; request < 5; request += 1) eviction.failed()
    clock.advance(3_001)
    expect(eviction.admits()).toBe(true)
  })

  it('permits another trial after one without a result', () => {
    const { eviction, clock } = evictionOf()
    eviction.failed()
    clock.advance(3_001)
    expect([eviction.admits(), eviction.admits()]).toEqual([true, false])
    eviction.undecided()
    expect([eviction.admits(), eviction.admits()]).toEqual([true, false])
    clock.advance(60_001)
    expect(eviction.admits()).toBe(true)
  })

  it('ends with a success', () => {
    const { eviction, respond, clock } = evictionOf()
    for (const wait of [3_001, 6_001]) {
      eviction.failed()
      clock.advance(wait)
    }
    respond(400)
    expect([eviction.admits(), eviction.admits()]).toEqual([true, true])
    eviction.failed()
    clock.advance(3_001)
    expect(eviction.admits()).toBe(true)
  })

  it('follows the configured health, with one trial at a time', () => {
    const { eviction, respond, clock } = evictionOf({ eviction: { duration: '10s', consecutiveFailures: 2 } })
    expect([respond(503), respond(429), respond(503), eviction.admits()]).toEqual([true, false, true, true])
    respond(503)
    expect(eviction.admits()).toBe(false)
    clock.advance(10_001)
    expect([eviction.admits(), eviction.admits()]).toEqual([true, false])
    respond(200)
    expect([eviction.admits(), eviction.admits()]).toEqual([true, true])
  })

  it('admits at most one request between an eviction and a result, for any sequence', () => {
    const step = fc.oneof(
      fc.constant('admits' as const),
      fc.constant('fails' as const),
      fc.constant('succeeds' as const),
      fc.integer({ min: 1, max: 20_000 }),
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const { eviction, respond, clock } = evictionOf()
        // The model: the end of the eviction, evictions so far, and the time of the pending trial.
        let until = 0
        let evictions = 0
        let trialUntil = 0
        for (const one of steps) {
          const now = clock.monotonic()
          if (one === 'admits') {
            const expected = until === 0 || (until <= now && trialUntil <= now)
            expect(eviction.admits()).toBe(expected)
            if (expected && until !== 0) trialUntil = now + 60_000
          } else if (one === 'fails') {
            respond(500)
            trialUntil = 0
            if (until > now) continue
            evictions += 1
            until = now + evictionMs(evictions, undefined)
          } else if (one === 'succeeds') {
            respond(200)
            until = 0
            evictions = 0
            trialUntil = 0
          } else clock.advance(one)
        }
      }),
    )
  })
})

it('reads the announced time of a response', () => {
  expect(announcedWaitMs({ 'retry-after-ms': '250', 'retry-after': '9' }, 0)).toBe(250)
  expect(announcedWaitMs({ 'retry-after-ms': 'soon', 'retry-after': '9' }, 0)).toBe(9_000)
  expect(announcedWaitMs({}, 0)).toBeUndefined()
})

it.each([
  [{ 'x-ratelimit-remaining-tokens': '0', 'x-ratelimit-reset-tokens': '6m0.5s' }, 360_500],
  [{ 'x-ratelimit-remaining-tokens-minute': '0', 'x-ratelimit-reset-tokens-minute': '6.4' }, 6_400],
  [{ 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': '120ms' }, 120],
  [{ 'x-ratelimit-remaining-requests': '3', 'x-ratelimit-reset-requests': '9s' }, undefined],
  [{ 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': 'soon' }, undefined],
  [{ 'x-ratelimit-remaining-requests': '0' }, undefined],
  [
    {
      'anthropic-ratelimit-requests-remaining': '0',
      'anthropic-ratelimit-requests-reset': '1970-01-01T00:00:09Z',
      'anthropic-ratelimit-tokens-remaining': '0',
      'anthropic-ratelimit-tokens-reset': '1970-01-01T00:00:05Z',
    },
    9_000,
  ],
])('the wait is that of the exhausted limit: %j', (headers, expected) => {
  expect(announcedWaitMs(headers, 0)).toBe(expected)
})
