import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { Usage } from '../../../pipeline/facts/llm-facts.ts'
import type { CatalogModel, ModelCatalogConfig } from './config.ts'
import { type CostBasis, costOf, type ModelPrices, type Rates } from './cost.ts'
import { definedRates, type MergedCatalog, mergeCatalogs } from './merge-catalogs.ts'
import { type Picodollars, parsePrice } from './money.ts'
import type { UnitPrices } from './unit-cost.ts'

/**
 * Cost of a call. `missing`: the model is not in the catalog; `unpriced`: it has no price for the used
 * tokens. The default `basis` is `tokens`.
 */
export type Cost =
  | { readonly kind: 'cost'; readonly amount: Picodollars; readonly basis?: CostBasis }
  | { readonly kind: 'unpriced' }
  | { readonly kind: 'missing' }

/** Looks up the cost of a call. `models` are the candidate names of the model at the provider, in order. */
export type Prices = (provider: string, models: readonly (string | undefined)[], usage: Usage) => Cost

const unpriced: Cost = { kind: 'unpriced' }
const missing: Cost = { kind: 'missing' }

/**
 * Compiles `config.modelCatalog`; undefined without one. Throws with the path of a file that cannot be read
 * or is not a catalog.
 */
export function compilePrices(
  catalogs: ModelCatalogConfig | undefined,
  context: CompileContext,
): Prices | undefined {
  if (catalogs === undefined || catalogs.length === 0) return undefined
  return context.cached(catalogs, 'prices', () =>
    createPriceLookup(compileModels(mergeCatalogs(catalogs, context))),
  )
}

type Models = ReadonlyMap<string, ModelPrices>

function createPriceLookup(providers: ReadonlyMap<string, Models>): Prices {
  return (provider, names, usage) => {
    const models = providers.get(provider)
    if (models === undefined) return missing
    for (const name of names) {
      const prices = name === undefined ? undefined : models.get(name)
      if (prices === undefined) continue
      const cost = costOf(usage, prices)
      return cost === undefined ? unpriced : { kind: 'cost', ...cost }
    }
    return missing
  }
}

function compileModels(merged: MergedCatalog): Map<string, Map<string, ModelPrices>> {
  return new Map(
    [...merged].map(([provider, models]) => [
      provider,
      new Map([...models].map(([name, { model }]) => [name, pricesOf(model)])),
    ]),
  )
}

function pricesOf({ rates = {}, batch, units, tiers = [] }: CatalogModel): ModelPrices {
  return {
    rates: ratesOf(rates),
    batch: batch && ratesOf(batch),
    units: units && unitPricesOf(units),
    tiers: tiers
      .map((tier) => ({
        contextOver: tier.contextOver,
        rates: ratesOf({ ...rates, ...definedRates(tier.rates) }),
      }))
      .toSorted((one, other) => other.contextOver - one.contextOver),
  }
}

function ratesOf(rates: NonNullable<CatalogModel['rates']>): Rates {
  const rate = (price: string | undefined) => (price === undefined ? undefined : parsePrice(price))
  return {
    input: rate(rates.input),
    output: rate(rates.output),
    cacheRead: rate(rates.cacheRead),
    cacheWrite: rate(rates.cacheWrite),
    reasoning: rate(rates.reasoning),
    inputAudio: rate(rates.inputAudio),
    outputAudio: rate(rates.outputAudio),
    inputImage: rate(rates.inputImage),
    outputImage: rate(rates.outputImage),
  }
}

function unitPricesOf({
  perImage,
  images = [],
  perMinute,
  perMillionCharacters,
  perThousandSearches,
}: NonNullable<CatalogModel['units']>): UnitPrices {
  const price = (text: string | undefined) => (text === undefined ? undefined : parsePrice(text))
  return {
    perImage: price(perImage),
    images: images.map((image) => ({ ...image, price: price(image.price) ?? 0n })),
    perMinute: price(perMinute),
    perMillionCharacters: price(perMillionCharacters),
    perThousandSearches: price(perThousandSearches),
  }
}
