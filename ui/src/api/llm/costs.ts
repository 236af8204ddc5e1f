import { keepPreviousData, type UseQueryResult, useQuery } from '@tanstack/react-query'
import { api } from '../client.ts'

export type PriceName =
  | 'input'
  | 'output'
  | 'cacheRead'
  | 'cacheWrite'
  | 'reasoning'
  | 'inputAudio'
  | 'outputAudio'
  | 'inputImage'
  | 'outputImage'

/** US dollars per million tokens, as decimal text. */
export type Rates = { readonly [name in PriceName]?: string }

/** Prices by other units than tokens, as decimal text. */
export type Units = {
  readonly perImage?: string
  readonly images?: readonly { readonly size?: string; readonly quality?: string; readonly price: string }[]
  readonly perMinute?: string
  readonly perMillionCharacters?: string
  readonly perThousandSearches?: string
}

export type CatalogModel = {
  readonly rates?: Rates
  /** Prices of requests in batches. */
  readonly batch?: Rates
  readonly units?: Units
  readonly tiers?: readonly { readonly contextOver: number; readonly rates: Rates }[]
  readonly limits?: { readonly contextWindow?: number; readonly maxOutputTokens?: number }
  readonly tags?: readonly string[]
}

/** A catalog as it is configured. */
export type Catalog = {
  readonly providers?: Readonly<Record<string, { readonly models?: Readonly<Record<string, CatalogModel>> }>>
}

/** Effective prices of a model. */
export type ListedPrice = CatalogModel & {
  readonly provider: string
  readonly model: string
  /** Index in `catalogs` of each price, and of `tiers`, `batch` and `units`. */
  readonly sources: { readonly [field in PriceName | 'tiers' | 'batch' | 'units']?: number }
}

export type CatalogSource = {
  readonly source: 'base' | 'custom' | 'file' | 'inline'
  readonly file?: string
  /** Models with at least one effective price from this catalog. */
  readonly models: number
}

export type CostPage = {
  /** In the order of precedence, lowest first. */
  readonly catalogs: readonly CatalogSource[]
  readonly providers: readonly string[]
  readonly models: readonly ListedPrice[]
  readonly total: number
  readonly nextCursor?: string
}

export type CostQuery = {
  readonly search?: string | undefined
  readonly provider?: string | undefined
  readonly source?: string | undefined
  /** `provider/model`, separated by commas. */
  readonly models?: string | undefined
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
}

/** One page of the effective prices. */
export function useCosts(query: CostQuery, enabled = true): UseQueryResult<CostPage> {
  return useQuery({
    queryKey: ['costs', query],
    queryFn: ({ signal }) => api<CostPage>('/api/costs', { query, signal }),
    placeholderData: keepPreviousData,
    enabled,
  })
}
