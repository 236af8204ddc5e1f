import { keepPreviousData, type UseQueryResult, useQuery } from '@tanstack/react-query'
import { api } from '../client.ts'

export type KeyState = 'active' | 'expired' | 'disabled'

export type KeyLimit = {
  readonly requests?: number
  readonly tokens?: number
  readonly unit: 'Seconds' | 'Minutes' | 'Hours'
  readonly burst?: number
}

export type KeyBudget = {
  readonly name: string
  readonly limit: { readonly unit: 'USD' | 'Tokens'; readonly amount: number | string }
  readonly window: {
    readonly rolling?: string
    readonly calendar?: 'day' | 'week' | 'month'
    readonly timeZone?: string
  }
  readonly onBudgetExceeded?: 'Block' | 'Audit'
  readonly warnAt?: number
}

/** Members of a key record that are not secret. */
export type KeyValue = {
  readonly metadata?: Readonly<Record<string, unknown>>
  /** RFC 3339. */
  readonly expiresAt?: string
  readonly disabled?: boolean
  /** Absent: all; empty: none. */
  readonly allowedModels?: readonly string[]
  readonly allowedTargets?: readonly string[]
  readonly limits?: readonly KeyLimit[]
  readonly budgets?: readonly KeyBudget[]
}

/** A virtual key, without the key itself. */
export type VirtualKey = KeyValue & {
  readonly id: string
  /** Scope with the key: `llm`, `gateway default`. */
  readonly scope: string
  readonly source: 'file' | 'database' | 'object'
  readonly state: KeyState
  readonly name?: string
  readonly user?: string
  readonly group?: string
  /** Earlier secrets that are still valid. */
  readonly previousKeys?: readonly { readonly expiresAt: string }[]
  readonly revision?: number
  readonly createdAt?: string
  readonly updatedAt?: string
  readonly lastUsedAt?: string
  readonly usage?: KeyUsage
}

/** Sums of the last 30 days. `cost` is a decimal text of US dollars. */
export type KeyUsage = UsageSums & {
  readonly from: string
  readonly to: string
  /** Days (UTC) with requests. */
  readonly days: readonly (UsageSums & { readonly start: string })[]
}

type UsageSums = {
  readonly requests: number
  readonly errors: number
  readonly totalTokens: number
  readonly cost: string
}

export type KeyPage = { readonly keys: readonly VirtualKey[]; readonly nextCursor?: string }

export type KeyQuery = {
  readonly search?: string | undefined
  readonly state?: string | undefined
  readonly sort?: string | undefined
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
}

/** One page of the virtual keys of all scopes. */
export function useKeys(query: KeyQuery): UseQueryResult<KeyPage> {
  return useQuery({
    queryKey: ['keys', query],
    queryFn: ({ signal }) => api<KeyPage>('/api/keys', { query, signal }),
    placeholderData: keepPreviousData,
  })
}

/** A virtual key with its usage. */
export function useKey(id: string): UseQueryResult<VirtualKey> {
  return useQuery({
    queryKey: ['key', id],
    queryFn: ({ signal }) => api<VirtualKey>(`/api/keys/${encodeURIComponent(id)}`, { signal }),
  })
}

/** A key in clear: only the response to its rotation contains it. */
export type NewKey = {
  readonly id: string
  readonly key: string
  readonly previousKeysExpireAt?: string
}

/** Replaces the secret of a key. `overlap` is a duration in which the earlier secrets are valid. */
export function rotateKey(id: string, overlap: string): Promise<NewKey> {
  const path = `/api/keys/${encodeURIComponent(id)}/rotate`
  return api<NewKey>(path, { method: 'POST', body: { overlap } })
}
