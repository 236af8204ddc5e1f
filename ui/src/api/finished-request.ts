import { type UseQueryResult, useQuery } from '@tanstack/react-query'
import { ApiError, api } from './client.ts'

/** Record of a request in the ledger, as far as the playground displays it. */
export type FinishedRequest = {
  readonly request: {
    /** US dollars. */
    readonly cost: number | null
    readonly costStatus: 'exact' | 'estimated' | 'unpriced' | 'missing' | null
    readonly refusedBy: string | null
    readonly keyName: string | null
    readonly genAi: { readonly providerName: string | null; readonly responseModel: string | null }
    readonly guards:
      | readonly { readonly guard: string; readonly phase: string; readonly outcome: string }[]
      | null
  }
  readonly explanation: { readonly cause?: string } | null
}

const pollMs = 400
const maxPolls = 8

/** The record of a request that has ended. The ledger stores it within about a second: until then it is polled. */
export function useFinishedRequest(id: string | undefined): UseQueryResult<FinishedRequest> {
  return useQuery({
    queryKey: ['finished-request', id],
    queryFn: ({ signal }) => fetchFinished(id ?? '', signal),
    enabled: id !== undefined,
    staleTime: Number.POSITIVE_INFINITY,
    retry: (count, error) => count < maxPolls && error instanceof ApiError && error.status === 404,
    retryDelay: pollMs,
  })
}

async function fetchFinished(id: string, signal: AbortSignal): Promise<FinishedRequest> {
  // A search without a result is no error, which browsers would report in their console.
  const { logs } = await api<{ logs: readonly unknown[] }>('/api/logs/search', {
    method: 'POST',
    body: { filters: { id: [id] }, limit: 1 },
    signal,
  })
  if (logs.length === 0) throw new ApiError('The request is not in the ledger yet.', 404)
  return api<FinishedRequest>(`/api/requests/${encodeURIComponent(id)}`, { signal })
}
