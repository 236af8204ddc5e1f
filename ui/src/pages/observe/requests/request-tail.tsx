import { Eraser, Pause, Play, Radio } from 'lucide-react'
import { useMemo, useState } from 'react'
import type { TailState } from '../../../api/ledger/tail.ts'
import { Button } from '../../../components/action/button.tsx'
import { Badge, type Tone } from '../../../components/feedback/badge.tsx'
import { EmptyState } from '../../../components/feedback/empty-state.tsx'
import { ErrorState } from '../../../components/feedback/error-state.tsx'
import { Notice } from '../../../components/feedback/notice.tsx'
import { Card } from '../../../components/layout/card.tsx'
import { formatNumber } from '../../../format/number.ts'
import { FilterBar } from '../filters/filter-bar.tsx'
import { apiFilters, type Filter } from '../filters/url-filters.ts'
import { isLedgerMissing, LedgerMissing } from '../ledger-missing.tsx'
import { RequestTable } from './request-table.tsx'
import { StatusFilter } from './status-filter.tsx'
import { maxShown, useTail } from './use-tail.ts'

/** Requests as they end. */
export function RequestTail({ filters, text }: { filters: readonly Filter[]; text: string }) {
  const [paused, setPaused] = useState(false)
  const conditions = useMemo(() => apiFilters(filters, text), [filters, text])
  const { entries, received, skipped, state, clear } = useTail(conditions, paused)
  if (state.kind === 'refused' && isLedgerMissing(state.error)) return <LedgerMissing />
  return (
    <>
      <FilterBar filters={filters} text={text} options={{}}>
        <StatusFilter filters={filters} />
        <Button icon={paused ? Play : Pause} onClick={() => setPaused(!paused)}>
          {paused ? 'Continue' : 'Pause'}
        </Button>
        <Button icon={Eraser} onClick={clear} disabled={entries.length === 0}>
          Clear
        </Button>
      </FilterBar>
      {state.kind === 'refused' && <ErrorState error={state.error} />}
      {skipped && (
        <Notice tone="warn" title="More requests arrive than the stream sends">
          Add a filter to see all that match it. The search finds every request.
        </Notice>
      )}
      <Card
        flush
        title="Live"
        about={
          received > maxShown
            ? `The newest ${maxShown} of ${formatNumber(received)} received`
            : `${formatNumber(received)} received`
        }
        actions={<TailBadge state={state} paused={paused} />}
      >
        {entries.length === 0 ? (
          <EmptyState icon={Radio} title={paused ? 'Paused' : 'Waiting for requests'}>
            Requests appear here within a second of their end.
          </EmptyState>
        ) : (
          <RequestTable requests={entries} label="Live requests" />
        )}
      </Card>
    </>
  )
}

function TailBadge({ state, paused }: { state: TailState; paused: boolean }) {
  const [tone, text] = lookOf(state, paused)
  return (
    <span role="status">
      <Badge tone={tone} dot>
        {text}
      </Badge>
    </span>
  )
}

function lookOf(state: TailState, paused: boolean): [Tone, string] {
  if (paused) return ['neutral', 'Paused']
  switch (state.kind) {
    case 'open':
      return ['good', 'Following']
    case 'connecting':
      return ['info', 'Connecting']
    case 'waiting':
      return ['warn', 'Connection lost, trying again']
    case 'refused':
      return ['bad', 'Refused']
  }
}
