import { useMemo } from 'react'
import { type Summary, useSummary } from '../../../api/ledger/summary.ts'
import { type ListedPrice, useCosts } from '../../../api/llm/costs.ts'
import { type ConfigRecord, useRecords } from '../../../api/resources.ts'
import { useWhoami } from '../../../api/whoami.ts'
import { type ModelValue, matchesName, type ProviderValue, priceNamesOf, providerKindOf } from './model.ts'

/** Shared providers by name: the first hundred. */
export function useSharedProviders(): ReadonlyMap<string, ProviderValue> {
  const { data } = useRecords<ProviderValue>('llm.provider', { limit: 100 })
  return useMemo(() => new Map((data?.resources ?? []).map(({ value }) => [value.name, value])), [data])
}

/** Returns the price of a model of this page; undefined without one. */
export function usePrices(
  records: readonly ConfigRecord<ModelValue>[],
  shared: ReadonlyMap<string, ProviderValue>,
): (value: ModelValue) => ListedPrice | undefined {
  const names = records.flatMap(({ value }) => priceNamesOf(value, providerKindOf(value, shared)))
  const { data } = useCosts({ models: names.join(','), limit: 200 }, names.length > 0)
  return useMemo(() => {
    const prices = new Map((data?.models ?? []).map((price) => [`${price.provider}/${price.model}`, price]))
    return (value) =>
      priceNamesOf(value, providerKindOf(value, shared))
        .map((name) => prices.get(name))
        .find((price) => price !== undefined)
  }, [data, shared])
}

/** Use of a model in the last 24 hours. */
export type ModelUse = { readonly requests: number; readonly errors: number; readonly cost: number }

/** Returns the use of a model or pattern; undefined without a ledger or before its reply. */
export function useModelUse(): ((name: string) => ModelUse) | undefined {
  const { data: whoami } = useWhoami()
  const from = Math.floor(Date.now() / hourMs - 24) * hourMs
  const { data } = useSummary(
    { timeRange: { from: new Date(from).toISOString() }, groupBy: ['requestModel'], bucketCount: 1 },
    { enabled: whoami?.ledger === true },
  )
  return useMemo(() => data && ((name) => usageOf(data, name)), [data])
}

const hourMs = 3_600_000

function usageOf({ groups }: Summary, name: string): ModelUse {
  const own = groups.filter(({ group }) => {
    const requested = group['requestModel']
    return typeof requested === 'string' && matchesName(name, requested)
  })
  return own.reduce<ModelUse>(
    (sum, { requests, errors, cost }) => ({
      requests: sum.requests + requests,
      errors: sum.errors + errors,
      cost: sum.cost + cost,
    }),
    { requests: 0, errors: 0, cost: 0 },
  )
}
