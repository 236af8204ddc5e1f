import { useMemo } from 'react'
import { Link } from 'wouter'
import { type SummaryGroup, useSummary } from '../../api/ledger/summary.ts'
import { type Bar, BarList } from '../../charts/bar-list.tsx'
import { Skeleton } from '../../components/feedback/skeleton.tsx'
import { Card } from '../../components/layout/card.tsx'
import { formatMoney } from '../../format/money.ts'
import { formatCompact } from '../../format/number.ts'
import { valueLabel } from '../observe/usage/dimensions.ts'

type LeadersProps = {
  readonly title: string
  readonly field: string
  readonly timeRange: { readonly from: string; readonly to: string }
}

const shown = 5

/** The values of a field with the highest cost of a day; with the most requests if nothing has a price. */
export function Leaders({ title, field, timeRange }: LeadersProps) {
  const groupBy = useMemo(() => [field], [field])
  const { data, isPending, isError } = useSummary({ timeRange, groupBy, orderBy: 'cost', bucketCount: 1 })
  const groups = (data?.groups ?? []).filter(({ other, group }) => !other && group[field] !== null)
  const isPriced = groups.some(({ cost }) => cost > 0)
  return (
    <Card
      title={title}
      about={isPriced ? 'by cost, 24 hours' : 'by requests, 24 hours'}
      actions={
        <Link
          href={`/usage?by=${field}${isPriced ? '&metric=cost' : ''}`}
          className="text-xs text-accent hover:underline"
        >
          All
        </Link>
      }
    >
      {isPending ? (
        <Skeleton className="h-40 w-full" />
      ) : isError ? (
        <p className="text-sm text-ink-soft">The figures could not be read.</p>
      ) : groups.length === 0 ? (
        <p className="py-8 text-center text-sm text-ink-faint">No requests in this range</p>
      ) : (
        <BarList label={title} bars={groups.slice(0, shown).map((group) => barOf(group, field, isPriced))} />
      )}
    </Card>
  )
}

function barOf(group: SummaryGroup, field: string, isPriced: boolean): Bar {
  const value = group.group[field]
  return {
    key: String(value),
    label: valueLabel(field, value, group.keyName),
    value: isPriced ? group.cost : group.requests,
    shown: isPriced ? formatMoney(group.cost) : formatCompact(group.requests),
    note: isPriced ? `${formatCompact(group.requests)} req` : '',
    href: `/requests?${new URLSearchParams({ [field]: String(value), range: '24h' })}`,
  }
}
