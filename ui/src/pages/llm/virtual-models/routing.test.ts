import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { modelsOf, sharesOf, stagesOf, strategyOf } from './routing.ts'

describe('sharesOf', () => {
  it('divides the requests by weight, with 1 as the default', () => {
    expect(sharesOf([{ model: 'a', weight: 3 }, { model: 'b' }])).toEqual([
      { model: 'a', weight: 3, share: 0.75 },
      { model: 'b', weight: 1, share: 0.25 },
    ])
  })

  it('adds up to 1 unless all weights are 0', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(1_000), { minLength: 1, maxLength: 10 }), (weights) => {
        const shares = sharesOf(weights.map((weight, index) => ({ model: `m${index}`, weight })))
        const sum = shares.reduce((total, { share }) => total + share, 0)
        expect(sum).toBeCloseTo(weights.some((weight) => weight > 0) ? 1 : 0)
      }),
    )
  })
})

describe('stagesOf', () => {
  it('groups targets by priority, lower numbers first', () => {
    const targets = [
      { model: 'c', priority: 2 },
      { model: 'a', priority: 1 },
      { model: 'b', priority: 1 },
    ]
    expect(stagesOf(targets)).toEqual([
      { priority: 1, models: ['a', 'b'] },
      { priority: 2, models: ['c'] },
    ])
  })
})

describe('strategyOf', () => {
  it('is the only strategy that is set', () => {
    expect(strategyOf({ failover: { targets: [{ model: 'a' }] } })).toBe('failover')
    expect(strategyOf({ failover: {}, weighted: {} })).toBeUndefined()
    expect(strategyOf(undefined)).toBeUndefined()
    expect(modelsOf({ conditional: { targets: [{ model: 'a', when: 'true' }] } })).toEqual(['a'])
  })
})
