import { type UseQueryResult, useQuery } from '@tanstack/react-query'
import { api } from './client.ts'

export type BucketStatus = { readonly remaining: number; readonly resetSeconds: number }

/** A limit that the gateway counts itself. */
export type LocalLimit = {
  readonly place: string
  readonly limit: string
  readonly counts: 'requests' | 'tokens'
  readonly capacity: number
  readonly refill: number
  readonly intervalSeconds: number
  readonly shared?: { readonly processes: number; readonly synchronized: boolean }
  readonly state: BucketStatus | KeyedStatus
}

/** State of a limit with a count for each value of `key`. */
export type KeyedStatus = {
  readonly key: string
  readonly values: number
  readonly exhausted: number
  readonly fullest: readonly ({ readonly value: string } & BucketStatus)[]
}

/** A limit of a rate limit service. */
export type GlobalLimit = {
  readonly place: string
  readonly limit: string
  readonly domain: string
  readonly service: string
  readonly failureMode: 'failClosed' | 'failOpen'
  readonly timeoutMs: number
  readonly descriptors: readonly { readonly type: string; readonly keys: readonly string[] }[]
  readonly checks: Readonly<Record<string, number>>
  readonly reports: Readonly<Record<string, number>>
  readonly lastFailure?: { readonly at: string; readonly reason: string }
}

export type KeyLimit = BucketStatus & {
  readonly keyId: string
  readonly counts: string
  readonly capacity: number
  readonly refill: number
  readonly intervalSeconds: number
}

/** Reply of `GET /api/limits`. */
export type LimitState = {
  readonly local: readonly LocalLimit[]
  readonly global: readonly GlobalLimit[]
  readonly keys: {
    readonly used: number
    readonly exhausted: number
    readonly fullest: readonly KeyLimit[]
  }
}

/** State of all limits, every five seconds. */
export function useLimits(): UseQueryResult<LimitState> {
  return useQuery({
    queryKey: ['limits'],
    queryFn: ({ signal }) => api<LimitState>('/api/limits', { signal }),
    refetchInterval: 5_000,
  })
}
