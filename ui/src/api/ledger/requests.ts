import { keepPreviousData, type UseQueryResult, useQuery } from '@tanstack/react-query'
import { api } from '../client.ts'
import type { ExplainedRequest } from './explanation.ts'
import type { LogFilters, TimeRange } from './filters.ts'
import type { LogEntry, Payload } from './log-entry.ts'

export type RequestSearch = {
  readonly filters: LogFilters
  readonly timeRange: TimeRange
  readonly limit: number
  /** `nextCursor` of the previous page. */
  readonly cursor?: string | undefined
}

export type RequestPage = { readonly logs: readonly LogEntry[]; readonly nextCursor: string | null }

/** A page of requests, newest first. A page may be empty and have a next one. */
export function useRequests(search: RequestSearch, enabled = true): UseQueryResult<RequestPage> {
  return useQuery({
    queryKey: ['requests', search],
    queryFn: ({ signal }) => api<RequestPage>('/api/logs/search', { method: 'POST', body: search, signal }),
    placeholderData: keepPreviousData,
    enabled,
  })
}

/** One request with its explanation. */
export function useRequest(id: string): UseQueryResult<ExplainedRequest> {
  return useQuery({
    queryKey: ['request', id],
    queryFn: ({ signal }) => api<ExplainedRequest>(`/api/requests/${encodeURIComponent(id)}`, { signal }),
    // A finished request does not change.
    staleTime: Number.POSITIVE_INFINITY,
  })
}

/** Prompt and response of a request; null if they are not stored. */
export function usePayload(id: string, enabled: boolean): UseQueryResult<Payload | null> {
  return useQuery({
    queryKey: ['payload', id],
    queryFn: async ({ signal }) => {
      const body = { id, includePayload: true }
      const { log } = await api<{ log: { payload?: Payload } | null }>('/api/logs/get', {
        method: 'POST',
        body,
        signal,
      })
      return log?.payload ?? null
    },
    staleTime: Number.POSITIVE_INFINITY,
    enabled,
  })
}
