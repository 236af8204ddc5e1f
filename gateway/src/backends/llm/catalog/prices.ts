import { messageOf } from '../../../lib/thrown.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { Usage } from '../../../pipeline/exchange.ts'
import { check } from '../../../schema/check.ts'
import { formatPath, type Path } from '../../../schema/path.ts'
import {
  type Catalog,
  type CatalogModel,
  catalogSchema,
  checkCatalog,
  type ModelCatalogConfig,
} from './config.ts'
import { costOf, type ModelPrices, type Rates } from './cost.ts'
import { type Picodollars, parsePrice } from './money.ts'

/**
 * Cost of a call. `missing`: the model is not in the catalog; `unpriced`: it has no price for the used
 * tokens.
 */
export type Cost =
  | { readonly kind: 'cost'; readonly amount: Picodollars }
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
  return context.cached(catalogs, 'prices', () => createPriceLookup(mergeCatalogs(catalogs, context)))
}

type Models = ReadonlyMap<string, ModelPrices>

function createPriceLookup(providers: ReadonlyMap<string, Models>): Prices {
  return (provider, names, usage) => {
    const models = providers.get(provider)
    if (models === undefined) return missing
    for (const name of names) {
      const prices = name === undefined ? undefined : models.get(name)
      if (prices === undefined) continue
      const amount = costOf(usage, prices)
      return amount === undefined ? unpriced : { kind: 'cost', amount }
    }
    return missing
  }
}

/** Merges catalogs; later ones take precedence by price, and tiers are replaced as a list. */
function mergeCatalogs(
  catalogs: ModelCatalogConfig,
  context: CompileContext,
): Map<string, Map<string, ModelPrices>> {
  const merged = new Map<string, Map<string, CatalogModel>>()
  for (const entry of catalogs) {
    const catalog = entry.inline ?? readCatalog(entry.file, context)
    for (const [provider, { models = {} }] of Object.entries(catalog.providers ?? {})) {
      const known = merged.get(provider) ?? new Map<string, CatalogModel>()
      merged.set(provider, known)
      for (const [name, model] of Object.entries(models)) known.set(name, mergeModels(known.get(name), model))
    }
  }
  return new Map(
    [...merged].map(([provider, models]) => [
      provider,
      new Map([...models].map(([name, model]) => [name, pricesOf(model)])),
    ]),
  )
}

function mergeModels(base: CatalogModel | undefined, model: CatalogModel): CatalogModel {
  if (base === undefined) return model
  return { rates: { ...base.rates, ...definedRates(model.rates) }, tiers: model.tiers ?? base.tiers }
}

/** Without undefined prices, which would hide earlier ones. */
function definedRates(rates: CatalogModel['rates']): CatalogModel['rates'] {
  return Object.fromEntries(Object.entries(rates ?? {}).filter(([, price]) => price !== undefined))
}

function pricesOf({ rates = {}, tiers = [] }: CatalogModel): ModelPrices {
  return {
    rates: ratesOf(rates),
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
  }
}

const maxReported = 5

function readCatalog(file: string, { readFile, parseYaml }: CompileContext): Catalog {
  const place = `config.modelCatalog: ${file}`
  const text = withContext(place, 'cannot be read', () => readFile(file))
  const read = check(
    catalogSchema,
    withContext(place, 'is neither JSON nor YAML', () => parseDocument(text, parseYaml)),
  )
  if (read.kind === 'mistakes') throw invalid(place, read.mistakes)
  const found: { path: Path; message: string }[] = []
  checkCatalog(read.value, (path, message) => found.push({ path, message }))
  if (found.length > 0) throw invalid(place, found)
  return read.value
}

/** JSON first: catalogs contain thousands of models, and JSON parses much faster than YAML. */
function parseDocument(text: string, parseYaml: CompileContext['parseYaml']): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // An empty file is an empty catalog, like an empty configuration.
    return parseYaml(text) ?? {}
  }
}

function withContext<T>(place: string, failure: string, read: () => T): T {
  try {
    return read()
  } catch (cause) {
    const reason = messageOf(cause)
    throw new Error(`${place} ${failure}: ${reason}`, { cause })
  }
}

function invalid(place: string, mistakes: readonly { path: Path; message: string }[]): Error {
  const shown = mistakes.slice(0, maxReported).map(({ path, message }) => `${formatPath(path)}: ${message}`)
  const more = mistakes.length - shown.length
  return new Error(`${place}: ${shown.join('; ')}${more > 0 ? `; and ${more} more mistakes` : ''}`)
}
