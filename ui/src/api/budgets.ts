import { keepPreviousData, type UseQueryResult, useQuery } from '@tanstack/react-query'
import { api } from './client.ts'

/** State of one value of a budget. Amounts are decimal texts. */
export type BudgetState = {
  readonly place: string
  readonly budget: string
  /** Expression with a budget for each value. */
  readonly key?: string
  readonly value: string
  readonly apiKeyId?: string
  readonly apiKeyName?: string
  readonly limit: { readonly unit: 'USD' | 'Tokens'; readonly amount: string }
  readonly usage: {
    readonly used: string
    readonly reserved: string
    readonly remaining: string
    readonly share: number
    readonly exceeded: boolean
  }
  /** Milliseconds since the epoch. */
  readonly window: { readonly start: number; readonly end: number }
  readonly action: 'block' | 'audit'
}

export type BudgetPage = {
  /** Milliseconds since the epoch. */
  readonly observedAt: number
  readonly budgets: readonly BudgetState[]
  readonly nextCursor?: string | null
}

export type BudgetQuery = {
  readonly budget?: string | undefined
  readonly value?: string | undefined
  /** Id of the virtual key with the budget. */
  readonly apiKeyId?: string | undefined
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
}

/** Budgets by value, those closest to their limit first. */
export function useBudgets(query: BudgetQuery): UseQueryResult<BudgetPage> {
  return useQuery({
    queryKey: ['budgets', query],
    queryFn: ({ signal }) => api<BudgetPage>('/api/budgets', { query, signal }),
    placeholderData: keepPreviousData,
    refetchInterval: 10_000,
  })
}
