import { type UseQueryResult, useQuery } from '@tanstack/react-query'
import { api } from '../client.ts'
import type { LogFilters, TimeRange } from './filters.ts'

/** Sums over requests. */
export type Measures = {
  readonly requests: number
  /** Requests with a status of 400 or above. */
  readonly errors: number
  readonly totalTokens: number
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cachedInputTokens: number
  readonly reasoningTokens: number
  readonly estimatedRequests: number
  readonly unpricedRequests: number
  /** US dollars. */
  readonly cost: number
  readonly durationMs: {
    readonly average: number | null
    readonly p50: number | null
    readonly p95: number | null
    readonly p99: number | null
  }
  readonly firstByteMs: { readonly average: number | null }
}

export type SummaryGroup = Measures & {
  /** Values by field; null for requests without one. */
  readonly group: Readonly<Record<string, string | number | null>>
  readonly keyName?: string
  /** Sum of the groups beyond the first hundred. */
  readonly other?: true
}

export type SummaryBucket = SummaryGroup & { readonly start: string }

export type Summary = {
  readonly timeRange: { readonly from: string; readonly to: string }
  readonly bucketSeconds: number
  readonly source: 'requests' | 'hours' | 'days'
  readonly complete: boolean
  readonly coveredFrom?: string
  /** By time; buckets without requests are absent. */
  readonly buckets: readonly SummaryBucket[]
  readonly groups: readonly SummaryGroup[]
  readonly filterOptions: Readonly<Record<string, readonly (string | number)[]>>
}

export type SummaryRequest = {
  readonly timeRange: TimeRange
  readonly filters?: LogFilters
  readonly groupBy?: readonly string[]
  /** Order of groups, of which the first hundred are returned. */
  readonly orderBy?: 'requests' | 'errors' | 'totalTokens' | 'cost'
  readonly bucketCount?: number
  readonly bucketSeconds?: number
}

type Options = { readonly enabled?: boolean; readonly refetchInterval?: number | false }

/** Usage and cost by time and by the values of at most two fields. */
export function useSummary(request: SummaryRequest, options: Options = {}): UseQueryResult<Summary> {
  return useQuery({
    queryKey: ['summary', request],
    queryFn: ({ signal }) => readSummary(request, signal),
    // Of the same groups only: those of others have no values of these fields.
    placeholderData: (previous: Summary | undefined, query) =>
      hasGroups(query?.queryKey[1], request) ? previous : undefined,
    staleTime: 15_000,
    ...options,
  })
}

function hasGroups(other: SummaryRequest | string | undefined, { groupBy = [] }: SummaryRequest): boolean {
  if (typeof other !== 'object') return false
  return JSON.stringify(other.groupBy ?? []) === JSON.stringify(groupBy)
}

function readSummary(request: SummaryRequest, signal: AbortSignal): Promise<Summary> {
  const { groupBy = [], ...rest } = request
  const body = { ...rest, groupBy: groupBy.map((field) => ({ field })) }
  return api<Summary>('/api/logs/analytics/summary', { method: 'POST', body, signal })
}
