import { describe, expect, it } from 'vitest'
import { matchesName, priceNamesOf, providerKindOf } from './model.ts'

describe('matchesName', () => {
  it.each([
    ['gpt-4o', 'gpt-4o', true],
    ['gpt-4o', 'gpt-4', false],
    ['gpt-*', 'gpt-4o', true],
    ['gpt-*', 'claude', false],
    ['*-mini', 'gpt-5-mini', true],
    ['*-mini', 'mini-gpt', false],
    ['*', 'anything', true],
  ])('compares %s with %s', (pattern, name, expected) => {
    expect(matchesName(pattern, name)).toBe(expected)
  })
})

describe('the provider of a model', () => {
  const shared = new Map([['eu', { name: 'eu', provider: 'openAI' }]])

  it('is a kind, or that of the shared provider', () => {
    expect(providerKindOf({ provider: 'anthropic' }, shared)).toBe('anthropic')
    expect(providerKindOf({ provider: { reference: 'eu' } }, shared)).toBe('openai')
    expect(providerKindOf({ provider: { reference: 'gone' } }, shared)).toBeUndefined()
  })

  it('prefixes the names of prices', () => {
    const model = { name: 'fast', provider: 'openai', params: { model: 'gpt-4o' } }
    expect(priceNamesOf(model, 'openai')).toEqual(['openai/gpt-4o', 'openai/fast'])
    expect(priceNamesOf({ name: 'gpt-*', provider: 'openai' }, 'openai')).toEqual([])
    expect(priceNamesOf(model, undefined)).toEqual([])
  })
})
