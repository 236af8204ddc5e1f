import { describe, expect, it } from 'vitest'
import { fixtureCallUsage } from '../../../../test/fixtures/llm-catalog.ts'
import { fixtureContext } from '../../../../test/fixtures/pipeline.ts'
import { dollarsOf } from '../../../lib/picodollars.ts'
import type { CatalogModel, ModelCatalogConfig } from './config.ts'
import { compilePrices } from './prices.ts'

function pricesOf(catalogs: ModelCatalogConfig, files: Record<string, string> = {}) {
  const prices = compilePrices(catalogs, {
    ...fixtureContext(),
    readFile(path) {
      const text = files[path]
      if (text === undefined) throw new Error(`no such file: ${path}`)
      return text
    },
    parseYaml: (text) => {
      if (text === 'providers: {}') return { providers: {} }
      throw new Error(`not YAML: ${text.slice(0, 10)}`)
    },
  })
  if (!prices) throw new Error('no prices')
  return prices
}

const catalogOf = (models: Record<string, CatalogModel>, provider = 'openai') => ({
  inline: { providers: { [provider]: { models } } },
})

const million = 1_000_000
const usage = fixtureCallUsage({ inputTokens: million, outputTokens: million })

function dollars(
  catalogs: ModelCatalogConfig,
  names: (string | undefined)[] = ['m'],
  used = usage,
): number | string {
  const cost = pricesOf(catalogs)('openai', names, used)
  return cost.kind === 'cost' ? dollarsOf(cost.amount) : cost.kind
}

describe('compilePrices', () => {
  it('returns undefined without a catalog', () => {
    expect(compilePrices(undefined, fixtureContext())).toBeUndefined()
    expect(compilePrices([], fixtureContext())).toBeUndefined()
  })

  it('looks models up by their first name at the provider', () => {
    const catalogs = [
      catalogOf({
        answered: { rates: { input: '1', output: '1' } },
        asked: { rates: { input: '2', output: '2' } },
      }),
      catalogOf({ answered: { rates: { input: '50', output: '50' } } }, 'anthropic'),
    ]
    expect(dollars(catalogs, ['answered', 'asked'])).toBe(2)
    expect(dollars(catalogs, ['answered-2026-01-01', 'asked'])).toBe(4)
    expect(dollars(catalogs, [undefined, 'asked'])).toBe(4)
    expect(dollars(catalogs, ['none', undefined])).toBe('missing')
  })

  it('reads the text of an inline catalog', () => {
    const { inline } = catalogOf({ m: { rates: { input: '1', output: '1' } } })
    expect(dollars([{ inline: JSON.stringify(inline) }])).toBe(2)
    expect(() => pricesOf([{ inline: '{"providers": []}' }])).toThrow(
      'config.modelCatalog[0].inline: providers',
    )
  })

  it('separates providers and ignores names of object prototypes', () => {
    const prices = pricesOf([catalogOf({ m: { rates: { input: '1', output: '1' } } })])
    expect(prices('anthropic', ['m'], usage)).toEqual({ kind: 'missing' })
    expect(prices('constructor', ['m'], usage)).toEqual({ kind: 'missing' })
    expect(prices('openai', ['toString', '__proto__'], usage)).toEqual({ kind: 'missing' })
  })

  it('returns no cost for used tokens without a price, and ignores unused kinds', () => {
    const catalogs = [
      catalogOf({ m: { rates: { input: '1' } }, known: {}, free: { rates: { input: '0', output: '0' } } }),
    ]
    expect(dollars(catalogs)).toBe('unpriced')
    expect(dollars(catalogs, ['m'], fixtureCallUsage({ inputTokens: million }))).toBe(1)
    expect(dollars(catalogs, ['known'])).toBe('unpriced')
    expect(dollars(catalogs, ['free'])).toBe(0)
  })

  it('stops at the first model in the catalog, with or without a price', () => {
    const catalogs = [catalogOf({ known: {}, m: { rates: { input: '1', output: '1' } } })]
    expect(dollars(catalogs, ['known', 'm'])).toBe('unpriced')
  })

  it('merges later catalogs by price and replaces tiers', () => {
    const base = catalogOf({
      m: {
        rates: { input: '1', output: '8' },
        tiers: [{ contextOver: 10, rates: { input: '2' } }],
        tags: ['a'],
      },
      other: { rates: { input: '5', output: '5' } },
    })
    expect(dollars([base])).toBe(10)
    expect(dollars([base, catalogOf({ m: { rates: { output: '4' } } })])).toBe(6)
    expect(dollars([base, catalogOf({ m: { tiers: [] } })])).toBe(9)
    expect(dollars([base, catalogOf({ m: { tiers: [{ contextOver: 10, rates: { input: '7' } }] } })])).toBe(
      15,
    )
    expect(dollars([base, catalogOf({ m: { rates: { output: '4' } } })], ['other'])).toBe(10)
  })

  it('merges prices of batches and other units by price', () => {
    const base = catalogOf({ m: { batch: { input: '1', output: '8' }, units: { perMinute: '1' } } })
    const catalogs = [base, catalogOf({ m: { batch: { output: '4' }, units: { perImage: '2' } } })]
    expect(dollars(catalogs, ['m'], { ...usage, batch: 'request' })).toBe(5)
    expect(dollars(catalogs, ['m'], { ...usage, units: { seconds: 90 } })).toBe(1.5)
    const images = { count: 2, size: undefined, quality: undefined }
    expect(dollars(catalogs, ['m'], { ...usage, units: { images } })).toBe(4)
  })

  it('reads catalogs in files, JSON or YAML', () => {
    const json = JSON.stringify(catalogOf({ m: { rates: { input: '3', output: '4' } } }).inline)
    const prices = pricesOf([{ file: 'a.json' }, { file: 'b.yaml' }, { file: 'empty' }], {
      'a.json': json,
      'b.yaml': 'providers: {}',
      empty: '{}',
    })
    expect(prices('openai', ['m'], usage)).toMatchObject({ kind: 'cost', amount: 7n * 10n ** 12n })
  })

  it.each([
    ['gone', {}, 'config.modelCatalog: x cannot be read: no such file: x'],
    [
      'broken',
      { x: '{"providers"' },
      'config.modelCatalog: x is neither JSON nor YAML: not YAML: {"provider',
    ],
    ['not a catalog', { x: '[]' }, 'config.modelCatalog: x: '],
    [
      'misspelt',
      { x: '{"providers":{"openai":{"models":{"m":{"rates":{"inputs":"1"}}}}}}' },
      'providers.openai.models.m.rates.inputs: ',
    ],
    [
      'with numbers for prices',
      { x: '{"providers":{"openai":{"models":{"m":{"rates":{"input":1}}}}}}' },
      'providers.openai.models.m.rates.input: ',
    ],
    [
      'with a price that is none',
      { x: '{"providers":{"openai":{"models":{"m":{"rates":{"input":"-1"}}}}}}' },
      'providers.openai.models.m.rates.input: must be a price such as 2.50: digits with at most six decimals',
    ],
    [
      'with tiers out of order',
      {
        x: '{"providers":{"p":{"models":{"m":{"tiers":[{"contextOver":2,"rates":{}},{"contextOver":2,"rates":{}}]}}}}}',
      },
      'providers.p.models.m.tiers[1].contextOver: must be greater than that of the previous tier',
    ],
  ])('rejects a file that is %s', (_title, files: Record<string, string>, message) => {
    expect(() => pricesOf([{ file: 'x' }], files)).toThrow(message)
  })

  it('reports at most five issues of a file', () => {
    const models = Object.fromEntries([1, 2, 3, 4, 5, 6, 7].map((n) => [`m${n}`, { rates: { input: 'x' } }]))
    const x = JSON.stringify({ providers: { p: { models } } })
    expect(() => pricesOf([{ file: 'x' }], { x })).toThrow('; and 2 more mistakes')
  })
})
