import { type UseQueryResult, useQuery } from '@tanstack/react-query'
import { api } from './client.ts'

/** Reply of `GET /api/config/status`, as far as the console reads it. */
export type ConfigStatus = {
  /** Whether the active configuration equals its sources. */
  readonly synchronized: boolean
  /** Number of configurations applied since the start. */
  readonly revision: number
  /** RFC 3339. */
  readonly appliedAt?: string
  /** Reason why a newer configuration is not active. */
  readonly lastError?: string | null
}

/** The active configuration, and why a newer one was refused. */
export function useConfigStatus(): UseQueryResult<ConfigStatus> {
  return useQuery({
    queryKey: ['config-status'],
    queryFn: ({ signal }) => api<ConfigStatus>('/api/config/status', { signal }),
    refetchInterval: 10_000,
  })
}
