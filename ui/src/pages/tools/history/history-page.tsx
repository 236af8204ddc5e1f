import { History } from 'lucide-react'
import { useSearchParams } from 'wouter'
import { type HistoryRecord, useHistory } from '../../../api/tools/history.ts'
import { useWhoami } from '../../../api/whoami.ts'
import { Button, ButtonLink } from '../../../components/action/button.tsx'
import { Pager } from '../../../components/data/pager.tsx'
import { type Column, Table } from '../../../components/data/table.tsx'
import { Badge, type Tone } from '../../../components/feedback/badge.tsx'
import { EmptyState } from '../../../components/feedback/empty-state.tsx'
import { ErrorState } from '../../../components/feedback/error-state.tsx'
import { SkeletonLines } from '../../../components/feedback/skeleton.tsx'
import { Card } from '../../../components/layout/card.tsx'
import { Page } from '../../../components/layout/page.tsx'
import { formatAgo, formatDateTime } from '../../../format/time.ts'
import { ChangeDialog } from './change-dialog.tsx'
import { HistoryFilters } from './history-filters.tsx'
import { useHistoryAddress } from './use-history-address.ts'

const tones: Record<HistoryRecord['operation'], Tone> = { create: 'good', update: 'info', delete: 'bad' }
const words: Record<HistoryRecord['operation'], string> = {
  create: 'created',
  update: 'changed',
  delete: 'deleted',
}

const columns: readonly Column<HistoryRecord>[] = [
  {
    id: 'at',
    title: 'Time',
    className: 'whitespace-nowrap text-ink-soft',
    render: ({ at }) => (
      <time dateTime={at} title={formatDateTime(at)}>
        {formatAgo(at)}
      </time>
    ),
  },
  {
    id: 'record',
    title: 'Record',
    className: 'max-w-80',
    render: ({ kind, name, resourceId }) => (
      <span className="block min-w-0">
        <span className="block truncate font-medium">{name ?? resourceId}</span>
        <span className="block truncate text-xs text-ink-faint">{kind}</span>
      </span>
    ),
  },
  {
    id: 'operation',
    title: 'Change',
    render: ({ operation, origin }) => (
      <span className="flex flex-wrap gap-1">
        <Badge tone={tones[operation]}>{words[operation]}</Badge>
        {origin !== 'write' && <Badge>{origin}</Badge>}
      </span>
    ),
  },
  {
    id: 'fields',
    title: 'Fields',
    from: 'lg',
    className: 'max-w-72 truncate text-ink-soft',
    render: ({ fields }) => fields.join(', '),
  },
  {
    id: 'who',
    title: 'Who',
    from: 'md',
    className: 'max-w-56 truncate',
    render: ({ who }) => who.principal ?? <span className="text-ink-soft">{who.address}</span>,
  },
]

/** Recorded changes of the configuration, with their differences and revert. */
export default function HistoryPage() {
  const { data: whoami } = useWhoami()
  const [parameters] = useSearchParams()
  const address = useHistoryAddress()
  const isHybrid = whoami?.storage.mode === 'hybrid'
  const history = useHistory(address.query, isHybrid)
  const about =
    'Each change of a stored record, with its author and its differences. Any of them can be reverted.'
  if (whoami !== undefined && !isHybrid) {
    return (
      <Page title="History" about={about}>
        <Card>
          <EmptyState
            icon={History}
            title="The file has no history here"
            action={<ButtonLink href="/tools/configuration">Open the file</ButtonLink>}
          >
            The configuration is a file: version control of the file is its history. With config.storage.mode:
            hybrid and a database, the gateway records each change.
          </EmptyState>
        </Card>
      </Page>
    )
  }
  const change = parameters.get('change') ?? undefined
  return (
    <Page title="History" about={about}>
      {history.error && !history.data ? (
        <ErrorState error={history.error} onRetry={() => void history.refetch()} />
      ) : (
        <Card flush>
          <HistoryFilters address={address} />
          {history.data === undefined ? (
            <div className="px-5 pb-5">
              <SkeletonLines count={6} />
            </div>
          ) : history.data.records.length === 0 ? (
            <EmptyState
              icon={History}
              title={address.isFiltered ? 'No change matches the filters' : 'Nothing has been changed yet'}
              action={address.isFiltered && <Button onClick={address.clear}>Clear the filters</Button>}
            >
              {!address.isFiltered && 'Changes made in this console or through the API appear here.'}
            </EmptyState>
          ) : (
            <Table
              label="Changes"
              columns={columns}
              rows={history.data.records}
              keyOf={({ id }) => String(id)}
              onOpen={({ id }) => address.open(String(id))}
              busy={history.isPlaceholderData}
            />
          )}
          {history.data && (
            <Pager
              shown={history.data.records.length}
              onPrevious={address.previous}
              onNext={
                history.data.nextCursor === undefined
                  ? undefined
                  : () => address.next(history.data?.nextCursor ?? '')
              }
            />
          )}
        </Card>
      )}
      {change !== undefined && <ChangeDialog id={change} onClose={() => address.open(undefined)} />}
    </Page>
  )
}
