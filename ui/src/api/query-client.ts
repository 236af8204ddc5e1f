import { QueryClient } from '@tanstack/react-query'
import { ApiError } from './client.ts'

/** Creates the cache of replies. Refusals are final; only a missing reply is retried. */
export function createQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: 5_000,
        gcTime: 5 * 60_000,
        refetchOnWindowFocus: true,
        retry: (count, error) => count < 2 && error instanceof ApiError && retryable(error),
      },
    },
  })
}

function retryable({ status }: ApiError): boolean {
  return status === 0 || status === 502 || status === 503 || status === 504
}
