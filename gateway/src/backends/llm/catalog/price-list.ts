import { decodeCursor, encodeCursor } from '../../../lib/json/cursor.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { CatalogModel, ModelCatalogConfig } from './config.ts'
import { type MergedModel, mergeCatalogs } from './merge-catalogs.ts'

/** Effective prices of a model, as configured: decimal texts, dollars per million tokens. */
export type ListedPrice = CatalogModel & {
  readonly provider: string
  readonly model: string
  /** Index of the catalog of each price, and of `tiers`. */
  readonly sources: MergedModel['sources']
}

export type CostQuery = {
  /** Part of the provider or model, in any case. */
  readonly search: string | undefined
  readonly provider: string | undefined
  /** Only models with a price from the catalog of this index. */
  readonly catalog: number | undefined
  /** Only these models, as `provider/model`. */
  readonly models: readonly string[] | undefined
  readonly limit: number
  readonly cursor: string | undefined
}

export type CostPage = {
  readonly models: readonly ListedPrice[]
  /** Number of models that match. */
  readonly total: number
  /** Models per catalog with at least one effective price, by index. */
  readonly used: readonly number[]
  /** Providers with a price. */
  readonly providers: readonly string[]
  /** Undefined on the last page. */
  readonly nextCursor: string | undefined
}

const noPrices: CostPage = { models: [], total: 0, used: [], providers: [], nextCursor: undefined }

/** Selects a page of effective prices, by provider and model. */
export function listPrices(
  catalogs: ModelCatalogConfig | undefined,
  context: CompileContext,
  query: CostQuery,
): CostPage {
  if (catalogs === undefined || catalogs.length === 0) return noPrices
  const { prices, used, providers } = context.cached(catalogs, 'price list', () =>
    createList(catalogs, context),
  )
  const search = query.search?.toLowerCase()
  const names = query.models && new Set(query.models)
  const matching = prices.filter(
    ({ text, price }) =>
      (names === undefined || names.has(`${price.provider}/${price.model}`)) &&
      (search === undefined || text.includes(search)) &&
      (query.provider === undefined || price.provider === query.provider) &&
      (query.catalog === undefined || Object.values(price.sources).includes(query.catalog)),
  )
  const after = positionOf(query.cursor)
  const rest =
    after === undefined ? matching : matching.filter(({ price }) => comparePlaces(price, after) > 0)
  const models = rest.slice(0, query.limit).map(({ price }) => price)
  const last = models.at(-1)
  const hasNext = rest.length > models.length && last !== undefined
  return {
    models,
    total: matching.length,
    used,
    providers,
    nextCursor: hasNext ? encodeCursor([last.provider, last.model]) : undefined,
  }
}

type Place = { readonly provider: string; readonly model: string }
type PriceList = {
  readonly prices: readonly { readonly text: string; readonly price: ListedPrice }[]
  readonly used: readonly number[]
  readonly providers: readonly string[]
}

function createList(catalogs: ModelCatalogConfig, context: CompileContext): PriceList {
  const used = catalogs.map(() => 0)
  const prices = [...mergeCatalogs(catalogs, context)].flatMap(([provider, models]) =>
    [...models].map(([model, merged]) => {
      for (const index of new Set(Object.values(merged.sources))) used[index] = (used[index] ?? 0) + 1
      const price: ListedPrice = { provider, model, ...merged.model, sources: merged.sources }
      return { text: `${provider} ${model}`.toLowerCase(), price }
    }),
  )
  prices.sort((one, other) => comparePlaces(one.price, other.price))
  return { prices, used, providers: [...new Set(prices.map(({ price }) => price.provider))] }
}

/** Order by code units, which is fast and the same everywhere. */
function comparePlaces(one: Place, other: Place): number {
  if (one.provider !== other.provider) return one.provider < other.provider ? -1 : 1
  return one.model < other.model ? -1 : Number(one.model > other.model)
}

/** Position of a cursor; a text that is not a cursor is the start. */
function positionOf(cursor: string | undefined): Place | undefined {
  const [provider, model] = (cursor === undefined ? undefined : decodeCursor(cursor, 2)) ?? []
  return typeof provider === 'string' && typeof model === 'string' ? { provider, model } : undefined
}
