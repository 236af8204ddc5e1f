import { KeyRound, Plus } from 'lucide-react'
import { useCallback } from 'react'
import { Link, useLocation, useSearchParams } from 'wouter'
import { useKeys, type VirtualKey } from '../../../api/llm/keys.ts'
import { useMayChange } from '../../../api/whoami.ts'
import { Button, ButtonLink } from '../../../components/action/button.tsx'
import { Pager } from '../../../components/data/pager.tsx'
import { Sparkline } from '../../../components/data/sparkline.tsx'
import { type Column, Table } from '../../../components/data/table.tsx'
import { EmptyState } from '../../../components/feedback/empty-state.tsx'
import { ErrorState } from '../../../components/feedback/error-state.tsx'
import { Skeleton, SkeletonLines } from '../../../components/feedback/skeleton.tsx'
import { SearchInput } from '../../../components/form/search-input.tsx'
import { Segmented } from '../../../components/form/segmented.tsx'
import { Card } from '../../../components/layout/card.tsx'
import { Page } from '../../../components/layout/page.tsx'
import { formatMoney } from '../../../format/money.ts'
import { formatAgo, formatDateTime } from '../../../format/time.ts'
import { useListAddress } from '../../resources/list-address.ts'
import { KeyBadge } from './key-badge.tsx'
import { type KeySpend, useKeySpend } from './key-spend.ts'

const pageSize = 50

const states = [
  { value: 'all', label: 'All' },
  { value: 'active', label: 'Active' },
  { value: 'expired', label: 'Expired' },
  { value: 'disabled', label: 'Disabled' },
] as const

/** The virtual keys of all scopes. Search, order and pages are the server's. */
export default function KeysPage() {
  const mayChange = useMayChange()
  const [, navigate] = useLocation()
  const address = useListAddress('name')
  const { state, setState, clear } = useStateFilter()
  const { search, sort, cursor } = address
  const keys = useKeys({ search, sort, cursor, state, limit: pageSize })
  const { data } = keys
  const spend = useKeySpend(data?.keys ?? [])
  const create = (
    <ButtonLink tone="primary" icon={Plus} href="/llm/keys/new">
      New key
    </ButtonLink>
  )
  return (
    <Page
      title="Keys"
      about="Virtual keys authenticate clients to the gateway, so that no client receives the credential of a provider."
      actions={mayChange && create}
    >
      {keys.error && !data ? (
        <ErrorState error={keys.error} onRetry={() => void keys.refetch()} />
      ) : (
        <Card flush>
          <div className="flex flex-wrap items-center gap-3 px-4 py-3 sm:px-5">
            <SearchInput
              label="Search keys"
              placeholder="Name, user, group or id"
              value={search}
              onChange={address.setSearch}
            />
            <Segmented label="State" value={state ?? 'all'} options={states} onChange={setState} />
          </div>
          {data === undefined ? (
            <div className="px-5 pb-5">
              <SkeletonLines count={8} />
            </div>
          ) : data.keys.length === 0 ? (
            <NoKeys
              filtered={search !== '' || state !== undefined}
              onClear={clear}
              create={mayChange && create}
            />
          ) : (
            <Table
              label="Keys"
              columns={columnsOf(spend)}
              rows={data.keys}
              keyOf={({ scope, id }) => `${scope} ${id}`}
              sort={sort}
              onSort={address.setSort}
              onOpen={({ id }) => navigate(`/llm/keys/${encodeURIComponent(id)}`)}
              busy={keys.isPlaceholderData}
            />
          )}
          {data && data.keys.length > 0 && (
            <Pager
              shown={data.keys.length}
              onPrevious={address.previous}
              onNext={data.nextCursor === undefined ? undefined : () => address.next(data.nextCursor ?? '')}
            />
          )}
        </Card>
      )}
    </Page>
  )
}

/** State filter in the address. A change continues at the first page. */
function useStateFilter() {
  const [parameters, setParameters] = useSearchParams()
  const change = useCallback(
    (removed: readonly string[], state?: string) =>
      setParameters(
        (current) => {
          const next = new URLSearchParams(current)
          for (const name of ['cursor', 'state', ...removed]) next.delete(name)
          if (state !== undefined) next.set('state', state)
          return next
        },
        { replace: true },
      ),
    [setParameters],
  )
  return {
    state: parameters.get('state') ?? undefined,
    setState: (state: string) => change([], state === 'all' ? undefined : state),
    clear: () => change(['search']),
  }
}

function NoKeys({
  filtered,
  onClear,
  create,
}: {
  filtered: boolean
  onClear(): void
  create: React.ReactNode
}) {
  return filtered ? (
    <EmptyState
      icon={KeyRound}
      title="No key matches"
      action={<Button onClick={onClear}>Clear search and filter</Button>}
    >
      The search compares ids, names, users and groups.
    </EmptyState>
  ) : (
    <EmptyState icon={KeyRound} title="No keys yet" action={create}>
      Create a key for each client: it can be limited, budgeted, rotated and revoked on its own.
    </EmptyState>
  )
}

function columnsOf(spend: KeySpend): readonly Column<VirtualKey>[] {
  return [
    {
      id: 'name',
      title: 'Name',
      sort: 'name',
      className: 'max-w-52 sm:max-w-80',
      render: ({ id, name, scope }) => (
        <span className="block min-w-0">
          <Link
            href={`/llm/keys/${encodeURIComponent(id)}`}
            className="block truncate font-medium hover:underline"
            dir="auto"
          >
            {name ?? 'unnamed'}
          </Link>
          <span className="block truncate font-mono text-2xs text-ink-faint">
            {scope === 'llm' ? id : `${scope} · ${id}`}
          </span>
        </span>
      ),
    },
    { id: 'state', title: 'State', render: (key) => <KeyBadge virtualKey={key} /> },
    {
      id: 'user',
      title: 'User',
      sort: 'user',
      from: 'md',
      className: 'max-w-40 truncate',
      render: ({ user }) => user,
    },
    {
      id: 'group',
      title: 'Group',
      sort: 'group',
      from: 'md',
      className: 'max-w-40 truncate',
      render: ({ group }) => group,
    },
    {
      id: 'last used',
      title: 'Last used',
      from: 'lg',
      className: 'whitespace-nowrap',
      render: ({ lastUsedAt }) =>
        lastUsedAt === undefined ? (
          <span className="text-ink-faint">never</span>
        ) : (
          <time dateTime={lastUsedAt} title={formatDateTime(lastUsedAt)}>
            {formatAgo(lastUsedAt)}
          </time>
        ),
    },
    {
      id: 'expires',
      title: 'Expires',
      sort: 'expiresAt',
      from: 'lg',
      className: 'whitespace-nowrap',
      render: ({ expiresAt }) =>
        expiresAt === undefined ? (
          <span className="text-ink-faint">never</span>
        ) : (
          <time dateTime={expiresAt} title={formatDateTime(expiresAt)}>
            {formatAgo(expiresAt)}
          </time>
        ),
    },
    ...(spend.kind === 'absent' ? [] : spendColumns(spend)),
  ]
}

function spendColumns(spend: KeySpend & { kind: 'loading' | 'loaded' }): readonly Column<VirtualKey>[] {
  return [
    {
      id: 'trend',
      title: '30 days',
      from: 'xl',
      className: 'w-36',
      render: ({ id }) =>
        spend.kind === 'loading' ? (
          <Skeleton className="h-4 w-24" />
        ) : (
          <Sparkline values={spend.of(id).requestsByDay} />
        ),
    },
    {
      id: 'spend',
      title: 'Spend',
      numeric: true,
      from: 'sm',
      render: ({ id }) => (spend.kind === 'loading' ? '' : formatMoney(spend.of(id).cost)),
    },
  ]
}
