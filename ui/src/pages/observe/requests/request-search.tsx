import { SearchX } from 'lucide-react'
import { useMemo } from 'react'
import { useSearchParams } from 'wouter'
import { useRequests } from '../../../api/ledger/requests.ts'
import { useSummary } from '../../../api/ledger/summary.ts'
import { Button, ButtonLink } from '../../../components/action/button.tsx'
import { Pager } from '../../../components/data/pager.tsx'
import { EmptyState } from '../../../components/feedback/empty-state.tsx'
import { ErrorState } from '../../../components/feedback/error-state.tsx'
import { Notice } from '../../../components/feedback/notice.tsx'
import { SkeletonLines } from '../../../components/feedback/skeleton.tsx'
import { Card } from '../../../components/layout/card.tsx'
import { FilterBar } from '../filters/filter-bar.tsx'
import { apiFilters, type Filter } from '../filters/url-filters.ts'
import { isLedgerMissing, LedgerMissing } from '../ledger-missing.tsx'
import { RangePicker } from '../range/range-picker.tsx'
import { toTimeRange } from '../range/time-range.ts'
import { useRange } from '../range/use-range.ts'
import { RequestTable } from './request-table.tsx'
import { RequestVolume } from './request-volume.tsx'
import { StatusFilter } from './status-filter.tsx'

const pageSize = 50
const volumeBuckets = 72
const uuid = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i

/** Search over the ledger: filters, volume over time, and pages of requests. */
export function RequestSearch({ filters, text }: { filters: readonly Filter[]; text: string }) {
  const [parameters, setParameters] = useSearchParams()
  const { choice, range, setChoice, refresh } = useRange('24h')
  const cursor = parameters.get('cursor') ?? undefined
  const timeRange = useMemo(() => toTimeRange(range), [range])
  const conditions = useMemo(() => apiFilters(filters, text), [filters, text])
  const page = useRequests({ filters: conditions, timeRange, limit: pageSize, cursor })
  const volume = useSummary({
    filters: conditions,
    timeRange,
    groupBy: ['status'],
    bucketCount: volumeBuckets,
  })
  if (isLedgerMissing(page.error)) return <LedgerMissing />
  const setCursor = (next: string) =>
    setParameters((current) => {
      const changed = new URLSearchParams(current)
      changed.set('cursor', next)
      return changed
    })
  const { logs = [], nextCursor = null } = page.data ?? {}
  return (
    <>
      <FilterBar filters={filters} text={text} options={volume.data?.filterOptions ?? {}}>
        <StatusFilter filters={filters} />
        <RangePicker
          choice={choice}
          range={range}
          onChoose={setChoice}
          onRefresh={refresh}
          busy={page.isFetching}
        />
      </FilterBar>
      {uuid.test(text) && (
        <Notice
          title="This is the id of a request"
          action={
            <ButtonLink size="small" href={`/requests/${text}`}>
              Open the request
            </ButtonLink>
          }
        >
          It is in the header x-request-id of the response, and in the access log.
        </Notice>
      )}
      <RequestVolume
        summary={volume.data}
        error={volume.error}
        range={range}
        onZoom={(from, to) => setChoice({ kind: 'custom', from, to })}
      />
      <Card flush>
        {page.isError ? (
          <div className="p-5">
            <ErrorState error={page.error} onRetry={() => page.refetch()} />
          </div>
        ) : page.isPending ? (
          <div className="p-5">
            <SkeletonLines count={9} />
          </div>
        ) : logs.length === 0 && nextCursor === null ? (
          <EmptyState
            icon={SearchX}
            title={cursor === undefined ? 'No request matches' : 'No further requests'}
            action={
              filters.length > 0 || text !== '' ? (
                <Button onClick={() => setParameters(new URLSearchParams())}>Clear filters</Button>
              ) : (
                <Button
                  onClick={() =>
                    setChoice({
                      kind: 'preset',
                      preset: { id: '30d', label: 'Last 30 days', lengthMs: 30 * 86_400_000 },
                    })
                  }
                >
                  Search the last 30 days
                </Button>
              )
            }
          >
            Rows appear within a second of the end of a request. Widen the time range or remove filters.
          </EmptyState>
        ) : (
          <>
            <RequestTable requests={logs} label="Requests" busy={page.isPlaceholderData} />
            {logs.length < pageSize && nextCursor !== null && (
              <p className="border-t border-line px-5 py-3 text-xs text-ink-soft">
                The search has read its share of rows and continues on the next page.
              </p>
            )}
            <Pager
              shown={logs.length}
              onPrevious={cursor === undefined ? undefined : () => history.back()}
              onNext={nextCursor === null ? undefined : () => setCursor(nextCursor)}
            />
          </>
        )}
      </Card>
    </>
  )
}
