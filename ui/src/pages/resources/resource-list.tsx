import { FileText, type LucideIcon, Plus } from 'lucide-react'
import type { ReactNode } from 'react'
import { Link, useLocation } from 'wouter'
import { type ConfigRecord, type RecordQuery, useRecords } from '../../api/resources.ts'
import { useMayChange, useWhoami } from '../../api/whoami.ts'
import { Button, ButtonLink } from '../../components/action/button.tsx'
import { Pager } from '../../components/data/pager.tsx'
import { type Column, Table } from '../../components/data/table.tsx'
import { Badge } from '../../components/feedback/badge.tsx'
import { EmptyState } from '../../components/feedback/empty-state.tsx'
import { ErrorState } from '../../components/feedback/error-state.tsx'
import { SkeletonLines } from '../../components/feedback/skeleton.tsx'
import { Tooltip } from '../../components/feedback/tooltip.tsx'
import { SearchInput } from '../../components/form/search-input.tsx'
import { Card } from '../../components/layout/card.tsx'
import { Page } from '../../components/layout/page.tsx'
import { readOnlyReason } from '../../save/ownership.ts'
import { titleOf } from '../../save/requests.ts'
import { useListAddress } from './list-address.ts'

export type ResourceListProps<Value> = {
  readonly kind: string
  readonly title: string
  /** One sentence: the purpose of the page. */
  readonly about: ReactNode
  /** Name of one record, in lower case: `model`. */
  readonly noun: string
  /** Address of the list; `${path}/${id}` edits and `${path}/new` creates. */
  readonly path: string
  readonly icon?: LucideIcon
  /** Columns after the name, which links to the editor. */
  readonly columns: readonly Column<ConfigRecord<Value>>[]
  /** Displayed as the name; the name of the record if absent. */
  renderName?(record: ConfigRecord<Value>): ReactNode
  /** Sort key of the name column; `name` if absent. */
  readonly nameSort?: string
  readonly defaultSort?: string
  /** Further filters of the request. */
  readonly query?: RecordQuery
  /** Content without records: title, text and next step. */
  readonly empty?: { readonly title?: string; readonly text?: ReactNode; readonly action?: ReactNode }
  /** Actions beside the button that creates a record. */
  readonly actions?: ReactNode
  /** Replaces the button that creates a record; null omits it. */
  readonly create?: ReactNode
  /** Content between heading and table. */
  readonly children?: ReactNode
}

/** A list of the records of a kind: search, order and pages are the server's, and the address has them. */
export function ResourceList<Value = Readonly<Record<string, unknown>>>(props: ResourceListProps<Value>) {
  const { kind, title, about, noun, path, icon = FileText, actions, empty, children } = props
  const mayChange = useMayChange()
  const address = useListAddress(props.defaultSort)
  const { search, sort, cursor } = address
  const records = useRecords<Value>(kind, { ...props.query, search, sort, cursor })
  const create =
    props.create === undefined ? (
      <ButtonLink tone="primary" icon={Plus} href={`${path}/new`}>
        New {noun}
      </ButtonLink>
    ) : (
      props.create
    )
  const { data } = records
  return (
    <Page
      title={title}
      about={about}
      actions={
        <>
          {actions}
          {mayChange && create}
        </>
      }
    >
      {children}
      {records.error && !data ? (
        <ErrorState error={records.error} onRetry={() => void records.refetch()} />
      ) : (
        <Card flush>
          <div className="flex flex-wrap items-center gap-3 px-4 py-3 sm:px-5">
            <SearchInput
              label={`Search ${title}`}
              placeholder="Search by name or content"
              value={search}
              onChange={address.setSearch}
            />
          </div>
          {data === undefined ? (
            <div className="px-5 pb-5">
              <SkeletonLines count={6} />
            </div>
          ) : data.resources.length === 0 ? (
            <NoRecords
              icon={icon}
              title={search === '' ? (empty?.title ?? `No ${noun} yet`) : `No ${noun} matches “${search}”`}
              text={search === '' ? empty?.text : 'The search compares ids, names and contents.'}
              action={
                search === '' ? (
                  (empty?.action ?? (mayChange && create))
                ) : (
                  <Button onClick={() => address.setSearch('')}>Clear the search</Button>
                )
              }
            />
          ) : (
            <Rows
              {...props}
              records={data.resources}
              sort={sort}
              onSort={address.setSort}
              busy={records.isPlaceholderData}
            />
          )}
          {data && (
            <Pager
              shown={data.resources.length}
              total={data.total}
              onPrevious={address.previous}
              onNext={data.nextCursor === undefined ? undefined : () => address.next(data.nextCursor ?? '')}
            />
          )}
        </Card>
      )}
    </Page>
  )
}

function NoRecords({
  icon,
  title,
  text,
  action,
}: {
  icon: LucideIcon
  title: string
  text: ReactNode
  action: ReactNode
}) {
  return (
    <EmptyState icon={icon} title={title} action={action}>
      {text}
    </EmptyState>
  )
}

function Rows<Value>({
  kind,
  title,
  path,
  columns,
  renderName,
  nameSort = 'name',
  records,
  sort,
  onSort,
  busy,
}: ResourceListProps<Value> & {
  readonly records: readonly ConfigRecord<Value>[]
  readonly sort: string
  readonly busy: boolean
  onSort(sort: string): void
}) {
  const [, navigate] = useLocation()
  const open = (record: ConfigRecord<Value>) => `${path}/${encodeURIComponent(addressOf(record))}`
  const all: readonly Column<ConfigRecord<Value>>[] = [
    {
      id: 'name',
      title: 'Name',
      sort: nameSort,
      className: 'max-w-96',
      render: (record) => (
        <span className="flex min-w-0 items-center gap-2">
          <Link href={open(record)} className="truncate font-medium hover:underline">
            {renderName?.(record) ?? titleOf(record)}
          </Link>
          <OriginBadge record={record} />
        </span>
      ),
    },
    ...columns,
  ]
  return (
    <Table
      key={kind}
      label={title}
      columns={all}
      rows={records}
      keyOf={(record) => `${record.origin?.kind} ${record.id}`}
      sort={sort}
      onSort={onSort}
      onOpen={(record) => navigate(open(record))}
      busy={busy}
    />
  )
}

/** Part of the address that identifies a record: the name of a policy, the id of others. */
function addressOf({ id, name }: ConfigRecord<unknown>): string {
  return name ?? id
}

/** Marks a record that cannot be changed here, with the reason. */
export function OriginBadge({ record }: { record: ConfigRecord<unknown> }) {
  const { data: whoami } = useWhoami()
  const { origin, shadowed } = record
  if (shadowed) {
    return (
      <Tooltip text="The configuration file has a record of the same name, which is active instead.">
        <span tabIndex={-1}>
          <Badge tone="warn">inactive</Badge>
        </span>
      </Tooltip>
    )
  }
  if (whoami === undefined || origin?.kind === 'database' || origin === undefined) return null
  if (whoami.storage.mode === 'file' && !whoami.storage.readOnly && origin.kind === 'file') return null
  const line = origin.kind === 'file' && origin.line !== undefined ? ` line ${origin.line}` : ''
  return (
    <Tooltip text={readOnlyReason(record, whoami) ?? 'Owned by the file'}>
      <span tabIndex={-1}>
        <Badge>{origin.kind === 'object' ? 'cluster' : `file${line}`}</Badge>
      </span>
    </Tooltip>
  )
}
