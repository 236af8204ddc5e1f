import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fixtureContext, fixtureExchange } from '../../../../../test/fixtures/pipeline.ts'
import { digestOf } from '../../../../upstream/affinity/affinity.ts'
import type { Candidate } from '../candidate.ts'
import { compileCostOrder, compileLatencyOrder, compileStickyOrder, type Equal, shuffle } from './equals.ts'
import { retainLatency } from './latency.ts'

const { facts } = fixtureExchange()
const names = (equals: readonly Equal[]) => equals.map(({ candidate }) => candidate.model)

function equalOf(model: string, target: object = {}): Equal {
  return { candidate: { target, model } as unknown as Candidate, digest: digestOf(model) }
}

const models = fc.uniqueArray(fc.string({ minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 6 })
const sessions = fc.integer({ min: 0, max: 2 ** 32 - 1 })

describe('the order of a session', () => {
  it('is a permutation that a removed target leaves unchanged for the others', () => {
    fc.assert(
      fc.property(models, sessions, fc.nat(5), (given, session, removed) => {
        const order = compileStickyOrder(() => session, Math.random)
        const all = names(
          order(
            given.map((model) => equalOf(model)),
            facts,
          ),
        )
        expect(all.toSorted()).toEqual(given.toSorted())
        const without = given.filter((_, index) => index !== removed % given.length)
        const rest = names(
          order(
            without.map((model) => equalOf(model)),
            facts,
          ),
        )
        expect(rest).toEqual(all.filter((model) => without.includes(model)))
      }),
    )
  })

  it('distributes sessions evenly', () => {
    const counts = new Map<string, number>()
    for (let session = 0; session < 3_000; session += 1) {
      const order = compileStickyOrder(() => digestOf(`session ${session}`), Math.random)
      const [first = ''] = names(
        order(
          ['a', 'b', 'c'].map((model) => equalOf(model)),
          facts,
        ),
      )
      counts.set(first, (counts.get(first) ?? 0) + 1)
    }
    for (const count of counts.values()) expect(Math.abs(count - 1_000)).toBeLessThan(120)
  })

  it('is random without a session', () => {
    const order = compileStickyOrder(() => undefined, randomOf(0.9, 0.1))
    expect(names(order([equalOf('a'), equalOf('b')], facts))).toEqual(['b', 'a'])
  })
})

function randomOf(...numbers: number[]): () => number {
  return () => numbers.shift() ?? 0
}

describe('the order by latency', () => {
  function measured(times: Record<string, number>) {
    const context = fixtureContext()
    const equals = Object.entries(times).map(([model, ms]) => {
      const latency = retainLatency(model, context)
      if (ms > 0) latency.record('whole', ms)
      return equalOf(model, { latency })
    })
    return { equals, clock: context.clock }
  }

  it('never has the slower of its first two targets first', () => {
    const times = fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd'), fc.integer({ min: 1, max: 60_000 }), {
      minKeys: 2,
    })
    fc.assert(
      fc.property(times, (given) => {
        const [first = '', second = ''] = names(
          compileLatencyOrder(Math.random)(measured(given).equals, facts),
        )
        expect(given[first]).toBeLessThanOrEqual(given[second] ?? 0)
      }),
    )
  })

  it('tries a target that was slow again after a time', () => {
    const { equals, clock } = measured({ slow: 2_000, fast: 0 })
    const fast = equals[1]?.candidate.target.latency
    const order = compileLatencyOrder(() => 0)
    fast?.record('whole', 1_500)
    expect(names(order(equals, facts))).toEqual(['fast', 'slow'])
    clock.advance(20_000)
    fast?.record('whole', 1_500)
    expect(names(order(equals, facts))).toEqual(['slow', 'fast'])
  })

  it('averages streamed and whole responses separately', () => {
    const latency = retainLatency('a', fixtureContext())
    for (const ms of [100, 200]) latency.record('streamed', ms)
    latency.record('whole', 9_000)
    expect(latency.estimate('streamed')).toBeCloseTo(130)
    expect(latency.estimate('whole')).toBe(9_000)
  })
})

describe('the order by cost', () => {
  it('is by price, unknown ones last', () => {
    const price = fc.option(fc.integer({ min: 0, max: 9 }), { nil: undefined })
    fc.assert(
      fc.property(fc.array(price, { minLength: 1, maxLength: 6 }), (prices) => {
        const equals = prices.map((_, index) => equalOf(String(index)))
        const order = compileCostOrder(({ model }) => prices[Number(model)], Math.random)
        const sorted = names(order(equals, facts)).map((model) => prices[Number(model)] ?? 10)
        expect(sorted).toEqual(prices.map((one) => one ?? 10).sort((a, b) => a - b))
      }),
    )
  })
})

it('shuffles a list to each of its orders', () => {
  const equals = ['a', 'b', 'c'].map((model) => equalOf(model))
  const orders = new Set<string>()
  for (let round = 0; round < 500; round += 1) orders.add(names(shuffle(equals, Math.random)).join(''))
  expect(orders.size).toBe(6)
})
