import { Link, useLocation, useSearch } from 'wouter'
import type { LogEntry } from '../../../api/ledger/log-entry.ts'
import { type Column, Table } from '../../../components/data/table.tsx'
import { Badge } from '../../../components/feedback/badge.tsx'
import { formatMoney } from '../../../format/money.ts'
import { formatCompact } from '../../../format/number.ts'
import { formatDate, formatDuration, formatTime } from '../../../format/time.ts'
import { callerOf, reasonOf, StatusBadge, subjectOf } from './request-cells.tsx'

/** Requests of the ledger. A row opens the request. */
export function RequestTable({
  requests,
  label,
  busy = false,
}: {
  requests: readonly LogEntry[]
  label: string
  busy?: boolean
}) {
  const [, navigate] = useLocation()
  const search = useSearch()
  const open = ({ id }: LogEntry) => navigate(addressOf(id), { state: { search } })
  return (
    <Table
      label={label}
      rows={requests}
      keyOf={({ id }) => id}
      columns={columnsWith(search)}
      onOpen={open}
      busy={busy}
    />
  )
}

function addressOf(id: string): string {
  return `/requests/${encodeURIComponent(id)}`
}

function columnsWith(search: string): readonly Column<LogEntry>[] {
  return [
    {
      id: 'time',
      title: 'Time',
      className: 'whitespace-nowrap w-px',
      render: (entry) => (
        <Link href={addressOf(entry.id)} state={{ search }} className="group block">
          <span className="tabular group-hover:underline">{formatTime(entry.completedAt)}</span>
          <span className="ml-2 text-xs text-ink-faint max-md:hidden">{formatDate(entry.completedAt)}</span>
        </Link>
      ),
    },
    {
      id: 'status',
      title: 'Status',
      className: 'w-px',
      render: ({ httpStatus }) => <StatusBadge status={httpStatus} />,
    },
    {
      id: 'subject',
      title: 'Model or tool',
      className: 'min-w-40 max-w-80',
      render: (entry) => {
        const reason = reasonOf(entry)
        return (
          <div className="min-w-0">
            <div className="flex items-center gap-2">
              <span className="truncate font-medium">{subjectOf(entry)}</span>
              {entry.kind === 'mcp' && <Badge tone="info">MCP</Badge>}
              {entry.attempts > 1 && <Badge>{entry.attempts} attempts</Badge>}
            </div>
            {reason !== undefined && <div className="truncate text-xs text-ink-soft">{reason}</div>}
          </div>
        )
      },
    },
    {
      id: 'caller',
      title: 'Key or user',
      from: 'sm',
      className: 'max-w-48',
      render: (entry) => (
        <div className="min-w-0">
          <div className="truncate">{callerOf(entry)}</div>
          {entry.group && <div className="truncate text-xs text-ink-faint">{entry.group}</div>}
        </div>
      ),
    },
    {
      id: 'route',
      title: 'Route',
      from: 'xl',
      className: 'max-w-40 truncate',
      render: ({ route }) => route,
    },
    {
      id: 'tokens',
      title: 'Tokens',
      numeric: true,
      from: 'md',
      render: ({ usage }) => (usage.totalTokens === null ? '–' : formatCompact(usage.totalTokens)),
    },
    {
      id: 'cost',
      title: 'Cost',
      numeric: true,
      from: 'md',
      render: ({ cost }) => (cost === null ? '–' : formatMoney(cost)),
    },
    {
      id: 'duration',
      title: 'Duration',
      numeric: true,
      className: 'whitespace-nowrap',
      render: ({ durationMs }) => formatDuration(durationMs),
    },
  ]
}
