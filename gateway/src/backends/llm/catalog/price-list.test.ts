import { describe, expect, it } from 'vitest'
import { fixtureContext } from '../../../../test/fixtures/pipeline.ts'
import type { CatalogModel, ModelCatalogConfig } from './config.ts'
import { type CostQuery, listPrices } from './price-list.ts'

const all: CostQuery = {
  search: undefined,
  provider: undefined,
  catalog: undefined,
  models: undefined,
  limit: 100,
  cursor: undefined,
}

const catalogOf = (provider: string, models: Record<string, CatalogModel>) => ({
  inline: { providers: { [provider]: { models } } },
})

const listed = (catalogs: ModelCatalogConfig, query: Partial<CostQuery> = {}) =>
  listPrices(catalogs, fixtureContext(), { ...all, ...query })

describe('listPrices', () => {
  it('lists each price with the catalog that it comes from', () => {
    const catalogs = [
      catalogOf('openai', {
        m: { rates: { input: '2.50', output: '10' }, limits: { contextWindow: 1_000 }, tags: ['fast'] },
      }),
      catalogOf('openai', { m: { rates: { output: '8' }, limits: { maxOutputTokens: 10 } } }),
    ]
    expect(listed(catalogs)).toMatchObject({
      total: 1,
      used: [1, 1],
      providers: ['openai'],
      models: [
        {
          provider: 'openai',
          model: 'm',
          rates: { input: '2.50', output: '8' },
          limits: { contextWindow: 1_000, maxOutputTokens: 10 },
          tags: ['fast'],
          sources: { input: 0, output: 1 },
        },
      ],
    })
  })

  it('does not list a catalog as the source of prices that a later one replaces', () => {
    const catalogs = [
      catalogOf('a', { m: { rates: { input: '1' } } }),
      catalogOf('a', { m: { rates: { input: '2' }, tiers: [] } }),
    ]
    expect(listed(catalogs)).toMatchObject({ used: [0, 1], models: [{ sources: { input: 1, tiers: 1 } }] })
    expect(listed(catalogs, { catalog: 0 }).models).toEqual([])
    expect(listed(catalogs, { catalog: 1 }).total).toBe(1)
  })

  it('searches provider and model in any case', () => {
    const catalogs = [catalogOf('openai', { 'GPT-4o': {}, o3: {} }), catalogOf('groq', { llama: {} })]
    const names = (query: Partial<CostQuery>) => listed(catalogs, query).models.map(({ model }) => model)
    expect(names({ search: 'gpt' })).toEqual(['GPT-4o'])
    expect(names({ search: 'OPEN' })).toEqual(['GPT-4o', 'o3'])
    expect(names({ provider: 'groq' })).toEqual(['llama'])
    expect(names({ search: 'none' })).toEqual([])
    expect(names({ models: ['openai/o3', 'groq/o3', 'openai/none'] })).toEqual(['o3'])
  })

  it('pages without gaps and repetitions', () => {
    const models = Object.fromEntries(Array.from({ length: 95 }, (_, index) => [`m${index}`, {}]))
    const catalogs = [catalogOf('b', models), catalogOf('a', models)]
    const names: string[] = []
    let cursor: string | undefined
    do {
      const page = listed(catalogs, { limit: 10, cursor })
      expect(page.total).toBe(190)
      names.push(...page.models.map(({ provider, model }) => `${provider} ${model}`))
      cursor = page.nextCursor
    } while (cursor !== undefined)
    expect(names).toHaveLength(190)
    expect(names).toEqual([...new Set(names)].sort())
  })

  it('is empty without catalogs', () => {
    expect(listed([])).toMatchObject({ models: [], total: 0 })
    expect(listPrices(undefined, fixtureContext(), all).models).toEqual([])
  })
})
