import { Link } from 'wouter'
import type { Summary, SummaryGroup } from '../../../api/ledger/summary.ts'
import { type Column, Table } from '../../../components/data/table.tsx'
import { formatMoney } from '../../../format/money.ts'
import { formatCompact, formatPercent } from '../../../format/number.ts'
import { formatDuration } from '../../../format/time.ts'
import { Delta } from './delta.tsx'
import { type Dimension, groupKey, valueLabel } from './dimensions.ts'
import type { Metric } from './metrics.ts'

type GroupTableProps = {
  readonly summary: Summary
  readonly previous: Summary | undefined
  readonly metric: Metric
  readonly dimensions: readonly Dimension[]
  /** Address of the requests of a group. */
  addressOf(group: SummaryGroup): string | undefined
  readonly busy: boolean
}

/** Figures of each group, the largest of the selected metric first. */
export function GroupTable({ summary, previous, metric, dimensions, addressOf, busy }: GroupTableProps) {
  const fields = dimensions.map(({ field }) => field)
  const before = new Map(previous?.groups.map((group) => [groupKey(group, fields), group]))
  const total = summary.groups.reduce((sum, group) => sum + (metric.valueOf(group) ?? 0), 0)
  const rank = (group: SummaryGroup) =>
    group.other ? Number.NEGATIVE_INFINITY : (metric.valueOf(group) ?? -1)
  const rows = summary.groups.toSorted((one, other) => rank(other) - rank(one))
  const columns: Column<SummaryGroup>[] = [
    ...dimensions.map(
      ({ field, label }, index): Column<SummaryGroup> => ({
        id: field,
        title: label,
        className: 'max-w-72',
        render: (group) => {
          if (group.other) return index === 0 ? <span className="text-ink-soft">All others</span> : ''
          const name = valueLabel(field, group.group[field], group.keyName)
          const address = index === 0 ? addressOf(group) : undefined
          return (
            <span className="block truncate">
              {address === undefined ? (
                name
              ) : (
                <Link href={address} className="font-medium hover:underline">
                  {name}
                </Link>
              )}
            </span>
          )
        },
      }),
    ),
    ...(metric.isSum
      ? [
          {
            id: 'share',
            title: 'Share',
            from: 'md',
            className: 'w-40',
            render: (group) => <Share share={total === 0 ? 0 : (metric.valueOf(group) ?? 0) / total} />,
          } satisfies Column<SummaryGroup>,
        ]
      : []),
    ...(previous
      ? [
          {
            id: 'change',
            title: `${metric.label}, change`,
            numeric: true,
            render: (group) => (
              <Delta
                current={metric.valueOf(group)}
                previous={valueOrNone(before.get(groupKey(group, fields)), metric)}
                better={metric.better}
              />
            ),
          } satisfies Column<SummaryGroup>,
        ]
      : []),
    ...figures,
  ]
  return (
    <Table
      label="Usage by group"
      rows={rows}
      columns={columns}
      keyOf={(group) => groupKey(group, fields)}
      busy={busy}
    />
  )
}

function valueOrNone(group: SummaryGroup | undefined, metric: Metric): number | null {
  if (group === undefined) return metric.isSum ? 0 : null
  return metric.valueOf(group)
}

const figures: readonly Column<SummaryGroup>[] = [
  { id: 'requests', title: 'Requests', numeric: true, render: ({ requests }) => formatCompact(requests) },
  {
    id: 'errors',
    title: 'Errors',
    numeric: true,
    from: 'sm',
    render: ({ errors, requests }) => (
      <span className={errors > 0 ? '' : 'text-ink-faint'}>
        {formatPercent(requests === 0 ? 0 : errors / requests)}
      </span>
    ),
  },
  {
    id: 'input',
    title: 'Input',
    numeric: true,
    from: 'lg',
    render: ({ inputTokens }) => formatCompact(inputTokens),
  },
  {
    id: 'output',
    title: 'Output',
    numeric: true,
    from: 'lg',
    render: ({ outputTokens }) => formatCompact(outputTokens),
  },
  { id: 'cost', title: 'Cost', numeric: true, render: ({ cost }) => formatMoney(cost) },
  {
    id: 'p50',
    title: 'p50',
    numeric: true,
    from: 'xl',
    render: ({ durationMs }) => (durationMs.p50 === null ? '–' : formatDuration(durationMs.p50)),
  },
  {
    id: 'p99',
    title: 'p99',
    numeric: true,
    from: 'md',
    render: ({ durationMs }) => (durationMs.p99 === null ? '–' : formatDuration(durationMs.p99)),
  },
]

function Share({ share }: { share: number }) {
  return (
    <span className="flex items-center gap-2">
      <span aria-hidden className="h-1.5 flex-1 overflow-hidden rounded-full bg-sunken">
        <span className="block h-full rounded-full bg-accent" style={{ width: `${share * 100}%` }} />
      </span>
      <span className="w-10 text-right text-xs tabular">{formatPercent(share)}</span>
    </span>
  )
}
