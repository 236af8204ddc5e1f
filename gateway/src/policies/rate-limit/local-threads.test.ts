import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { type Played, planeContext, policiesOf, type Scenario } from '../../../test/fixtures/limit-tasks.ts'
import { fixtureExchange, throughPolicies } from '../../../test/fixtures/pipeline.ts'
import { createPlaneThreads, type PlaneThreads } from '../../../test/support/plane-threads.ts'
import { systemClock } from '../../lib/clock.ts'
import { releaseLocksOf } from '../../lib/planes/lock.ts'
import { regionOf } from '../../lib/planes/memory.ts'
import { takeLimitSnapshot } from './limit-snapshot.ts'
import type { LocalRateLimitConfig } from './local-config.ts'

const module = new URL('../../../test/fixtures/limit-tasks.ts', import.meta.url)
const planes = 4

let threads: PlaneThreads
afterEach(() => threads.close())

async function playedBy(scenarios: Scenario[]): Promise<Played[][]> {
  threads = createPlaneThreads(planes)
  const results = (await threads.runAll({ module, task: 'playScenarios' }, scenarios)) as Played[][]
  return scenarios.map((_, index) => results.map((played) => played[index] ?? { admitted: [], refused: [] }))
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

const simple: Scenario = { name: 'simple', gateway: [], route: [], requests: 125, keys: 1, tokens: 0 }
const perKey = { key: 'apiKey.id' } as const

describe('limits of several threads', () => {
  it('pass exactly 50 of 500 parallel requests', async () => {
    const scenarios = Array.from({ length: 20 }, (_, index) => ({
      ...simple,
      name: `burst ${index}`,
      route: [{ requests: 50, unit: 'Hours' as const, ...(index % 2 === 0 ? {} : perKey) }],
    }))
    for (const played of await playedBy(scenarios)) {
      expect(sum(played.flatMap(({ admitted }) => admitted))).toBe(50)
      expect(sum(played.flatMap(({ refused }) => refused))).toBe(450)
    }
  })

  it('admit one allowance per interval while the time passes', async () => {
    threads = createPlaneThreads(planes)
    const entries: LocalRateLimitConfig = [
      { requests: 10, unit: 'Seconds', burst: 5 },
      { requests: 10, unit: 'Seconds', burst: 5, ...perKey },
    ]
    const scenario = { ...simple, route: entries }
    const request = { scenario, intervals: 200, intervalMs: 1000 }
    const admitted = (await threads.runAll({ module, task: 'useIntervals' }, request)) as number[]
    expect(sum(admitted)).toBe(15 + 200 * 10)
  })

  it('never forget a used bucket, however many values all threads invent', async () => {
    const maxKeys = 40
    const scenario: Scenario = {
      ...simple,
      route: [{ requests: 5, unit: 'Hours', ...perKey }],
      ...{ requests: 4_000, keys: 1_000, maxKeys },
    }
    const [played = []] = await playedBy([scenario])
    // One bucket for each of the first values, and one for the rest.
    expect(sum(played.flatMap(({ admitted }) => admitted))).toBe((maxKeys + 1) * 5)
  })

  it('count each admitted request exactly once in each limit, in any scenario', async () => {
    const scenarios = fc
      .sample(scenarioArbitrary, 60)
      .map((scenario, index) => ({ ...scenario, name: `scenario ${index}` }))
    const results = await playedBy(scenarios)
    for (const [index, scenario] of scenarios.entries()) {
      const played = results[index] ?? []
      const problems = await problemsOf(scenario, played)
      expect({ scenario, problems }).toEqual({ scenario, problems: [] })
    }
  })
})

const limitArbitrary = fc
  .record({
    counts: fc.constantFrom<'requests' | 'tokens'>('requests', 'requests', 'tokens'),
    base: fc.integer({ min: 1, max: 400 }),
    keyed: fc.boolean(),
  })
  .map(({ counts, base, keyed }) => {
    const rest = { unit: 'Hours' as const, ...(keyed ? perKey : {}) }
    return counts === 'requests' ? { requests: base, ...rest } : { tokens: base, ...rest }
  })
const limitsArbitrary = fc
  .array(limitArbitrary, { maxLength: 3 })
  .map((limits) => limits.map((limit, index) => ({ ...limit, name: `limit ${index}` })))
const scenarioArbitrary: fc.Arbitrary<Omit<Scenario, 'name'>> = fc.record({
  gateway: limitsArbitrary,
  route: limitsArbitrary,
  requests: fc.integer({ min: 1, max: 300 }),
  keys: fc.integer({ min: 1, max: 8 }),
  tokens: fc.integer({ min: 0, max: 3 }),
})

/** Compares the buckets with the outcomes of the requests: without a refill they are equal. */
async function problemsOf(scenario: Scenario, played: readonly Played[]): Promise<string[]> {
  const context = planeContext(threads.memory)
  const admitted = Array.from({ length: scenario.keys }, (_, key) =>
    sum(played.map((p) => p.admitted[key] ?? 0)),
  )
  const refused = Array.from({ length: scenario.keys }, (_, key) =>
    sum(played.map((p) => p.refused[key] ?? 0)),
  )
  const { name, gateway, route, tokens } = scenario
  const { local } = await takeLimitSnapshot(
    [
      { place: `${name} gateway`, local: gateway, global: undefined },
      { place: `${name} route`, local: route, global: undefined },
    ],
    context,
  )
  const exhausted = Array.from({ length: scenario.keys }, () => false)
  const problems: string[] = []
  for (const { limit, capacity, counts, state } of local) {
    for (let key = 0; key < scenario.keys; key++) {
      const isKeyed = 'fullest' in state
      const own = isKeyed ? state.fullest.find(({ value }) => value === `key ${key}`) : state
      const used = own === undefined ? 0 : capacity - own.remaining
      const requests = isKeyed ? (admitted[key] ?? 0) : sum(admitted)
      const expected = counts === 'requests' ? requests : Math.min(capacity, requests * tokens)
      if (used !== expected) problems.push(`${limit}, key ${key}: ${used} used, ${expected} admitted`)
      if (used === capacity) exhausted[key] = true
    }
  }
  for (const [key, count] of refused.entries()) {
    if (count > 0 && !exhausted[key]) problems.push(`key ${key}: refused without an exhausted limit`)
  }
  return problems
}

describe('a thread that ends in the middle', () => {
  it('leaves no lock behind, and its usage charged', async () => {
    threads = createPlaneThreads(2)
    const scenario: Scenario = {
      ...simple,
      ...{ gateway: [{ requests: 1_000_000_000, unit: 'Hours' }], requests: 1e9, keys: 50 },
      route: [{ requests: 1_000_000_000, unit: 'Hours', ...perKey }],
    }
    const first = threads.run(0, { module, task: 'playScenarios' }, [scenario])
    const second = threads.run(1, { module, task: 'playScenarios' }, [scenario])
    const ended = [first, second].map((work) => expect(work).rejects.toThrow('has ended'))
    const name = 'rate-limit/simple gateway/["requests",null,3600000,1]'
    const used = () => (threads.has(name) ? (new Float64Array(threads.buffer(name))[2] ?? 0) : 0)
    await reached(used, 2_000)
    await threads.kill(1)
    const buffers = threads.names().map((region) => regionOf(threads.buffer(region)))
    for (const region of buffers) releaseLocksOf(region, 1)
    await reached(used, used() + 2_000)
    await threads.kill(0)
    await Promise.all(ended)
    for (const region of buffers) releaseLocksOf(region, 0)
    const policies = policiesOf(scenario, planeContext(threads.memory))
    const before = used()
    for (let key = 0; key < 50; key++) {
      const exchange = fixtureExchange({}, { apiKey: { id: `key ${key}` } })
      expect(throughPolicies(policies, exchange).status).toBe(200)
    }
    expect(used()).toBe(before + 50)
  })
})

async function reached(count: () => number, target: number): Promise<void> {
  while (count() < target) await new Promise(setImmediate)
}

describe('the monotonic clock', () => {
  it('has the same origin in all threads', async () => {
    threads = createPlaneThreads(2)
    const before = systemClock.monotonic()
    const inThread = (await threads.run(0, { module, task: 'readClock' }, undefined)) as number
    const after = systemClock.monotonic()
    expect(inThread).toBeGreaterThan(before)
    expect(inThread).toBeLessThan(after)
  })
})
