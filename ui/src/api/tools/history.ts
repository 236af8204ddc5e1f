import { keepPreviousData, type UseQueryResult, useQuery } from '@tanstack/react-query'
import { api } from '../client.ts'

/** A recorded change of the configuration. */
export type HistoryRecord = {
  readonly id: number
  /** RFC 3339. */
  readonly at: string
  readonly operation: 'create' | 'update' | 'delete'
  readonly origin: 'write' | 'import' | 'revert'
  /** Id of the reverted change. */
  readonly reverts?: number
  readonly kind: string
  readonly resourceId: string
  readonly name?: string
  readonly revision: number
  readonly who: { readonly principal?: string; readonly address: string }
  readonly requestId: string
  /** Changed members. */
  readonly fields: readonly string[]
}

export type HistoryDetail = HistoryRecord & {
  readonly before?: unknown
  readonly after?: unknown
  /** Why a value is not displayed. */
  readonly unreadable?: string
  readonly currentRevision?: number
}

export type HistoryQuery = {
  readonly kind?: string | undefined
  readonly id?: string | undefined
  readonly who?: string | undefined
  readonly text?: string | undefined
  /** Dates, the second exclusive. */
  readonly from?: string | undefined
  readonly to?: string | undefined
  readonly cursor?: string | undefined
}

export type HistoryPage = { readonly records: readonly HistoryRecord[]; readonly nextCursor?: string }

const path = '/api/config/history'
const pageSize = 50

export function useHistory(query: HistoryQuery, enabled: boolean): UseQueryResult<HistoryPage> {
  return useQuery({
    queryKey: ['history', query],
    queryFn: ({ signal }) => api<HistoryPage>(path, { query: { limit: pageSize, ...query }, signal }),
    placeholderData: keepPreviousData,
    enabled,
  })
}

export function useHistoryDetail(id: string | undefined): UseQueryResult<HistoryDetail> {
  return useQuery({
    queryKey: ['history-detail', id],
    queryFn: ({ signal }) => api<HistoryDetail>(`${path}/${encodeURIComponent(id ?? '')}`, { signal }),
    enabled: id !== undefined,
  })
}

/** Restores the value before a change. `revision` is that of the record now; undefined if it does not exist. */
export function revertChange(
  id: number,
  { revision, dryRun }: { readonly revision: number | undefined; readonly dryRun: boolean },
): Promise<unknown> {
  return api(`${path}/${id}/revert`, {
    method: 'POST',
    query: { ...(dryRun && { dryRun }) },
    body: {},
    ...(revision !== undefined && { revision: String(revision) }),
  })
}
