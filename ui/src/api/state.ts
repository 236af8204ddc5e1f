import { type UseQueryResult, useQuery } from '@tanstack/react-query'
import { api } from './client.ts'

/** A port of the gateway. */
export type Listener = {
  readonly name: string
  readonly gateway: string
  readonly address: string
  readonly port: number
  readonly protocol: string
  readonly tls: boolean
  /** Address for clients, without path. */
  readonly url: string
  readonly serves: readonly ('llm' | 'mcp' | 'routes' | 'ui')[]
  readonly connections: number
}

export type Problem = {
  readonly code: string
  readonly severity: 'error' | 'warning'
  readonly title: string
  readonly detail: string
  /** RFC 3339. */
  readonly since?: string
  readonly mistakes?: readonly {
    readonly message: string
    readonly line?: number
    readonly column?: number
    readonly path?: string
  }[]
  /** Page of the console, relative to `/ui`. */
  readonly link?: string
  readonly doc?: string
}

export type Replica = {
  readonly id: string
  readonly self: boolean
  /** RFC 3339. */
  readonly startedAt?: string
  readonly lastSeen?: string
}

/** Reply of `GET /api/state`. */
export type GatewayState = {
  readonly version: string
  readonly startedAt: string
  readonly replicas: readonly Replica[]
  readonly listeners: readonly Listener[]
  /** Number of records by kind. */
  readonly counts: Readonly<Record<string, number>>
  readonly problems: readonly Problem[]
}

/** Listeners, replicas, counts and problems of the gateway. */
export function useGatewayState(): UseQueryResult<GatewayState> {
  return useQuery({
    queryKey: ['state'],
    queryFn: ({ signal }) => api<GatewayState>('/api/state', { signal }),
    refetchInterval: 10_000,
  })
}
