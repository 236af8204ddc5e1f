import { type UseQueryResult, useQuery } from '@tanstack/react-query'
import { api } from './client.ts'

export type LivePoint = {
  /** RFC 3339, or milliseconds since the epoch. */
  readonly time: string | number
  readonly requests: number
  readonly errors: number
  readonly p50Ms?: number | null
  readonly p99Ms?: number | null
  readonly inputTokens: number
  readonly outputTokens: number
  readonly costUsd: number
}

/** Reply of `GET /api/state/live`: the last 15 minutes of all data planes, in memory. */
export type LiveState = {
  readonly bucketSeconds: number
  readonly points: readonly LivePoint[]
  readonly now: {
    readonly requestsPerSecond: number
    readonly errorRate: number
    readonly p50Ms?: number | null
    readonly p99Ms?: number | null
    readonly tokensPerMinute: number
    readonly costUsdPerHour: number
    readonly activeRequests: number
  }
}

/** Traffic of the last 15 minutes, every five seconds. */
export function useLiveState(): UseQueryResult<LiveState> {
  return useQuery({
    queryKey: ['state', 'live'],
    queryFn: ({ signal }) => api<LiveState>('/api/state/live', { signal }),
    refetchInterval: 5_000,
  })
}
