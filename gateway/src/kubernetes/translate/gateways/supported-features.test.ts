import { describe, expect, it } from 'vitest'
import { supportedFeatures } from './supported-features.ts'

describe('supportedFeatures', () => {
  it('are sorted without repetition, as the API requires', () => {
    const names = supportedFeatures.map(({ name }) => name)
    expect(names).toEqual([...new Set(names)].sort())
  })
})
