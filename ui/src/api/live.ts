import { type UseQueryResult, useQuery } from '@tanstack/react-query'
import { api } from './client.ts'

export type LivePoint = {
  /** End of the step: milliseconds since the epoch. */
  readonly time: number
  readonly requests: number
  /** Responses with status 5xx. */
  readonly errors: number
  /** Responses with status 4xx. */
  readonly refused: number
  readonly p50Ms?: number
  readonly p99Ms?: number
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
    readonly p50Ms?: number
    readonly p99Ms?: number
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
