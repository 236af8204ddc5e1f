import { type UseQueryResult, useQuery } from '@tanstack/react-query'
import { api } from './client.ts'

/** Reply of `GET /api/whoami`. */
export type Whoami = {
  readonly version: string
  readonly login: 'none' | 'oidc' | 'jwt' | 'apiKey' | 'basic'
  readonly name?: string
  readonly email?: string
  readonly claims?: Readonly<Record<string, unknown>>
  readonly mayChange: boolean
  readonly mayReveal: boolean
  readonly logoutPath?: string
  /** RFC 3339. */
  readonly sessionEndsAt?: string
  readonly storage: {
    readonly mode: 'file' | 'hybrid'
    readonly readOnly: boolean
    readonly reason?: string
    readonly database?: 'sqlite' | 'postgres'
  }
  readonly ledger: boolean
  readonly payloads: boolean
}

/** The user of the console and their rights. */
export function useWhoami(): UseQueryResult<Whoami> {
  return useQuery({
    queryKey: ['whoami'],
    queryFn: ({ signal }) => api<Whoami>('/api/whoami', { signal }),
    staleTime: 60_000,
  })
}

/** Whether changes are offered; false until known. */
export function useMayChange(): boolean {
  const { data } = useWhoami()
  return data?.mayChange === true && !data.storage.readOnly
}
