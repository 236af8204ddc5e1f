import { useMemo } from 'react'
import { type Summary, useSummary } from '../../api/ledger/summary.ts'
import { TimeChart } from '../../charts/time-chart.tsx'
import { ButtonLink } from '../../components/action/button.tsx'
import { ErrorState } from '../../components/feedback/error-state.tsx'
import { Skeleton } from '../../components/feedback/skeleton.tsx'
import { Card } from '../../components/layout/card.tsx'
import { formatMoney } from '../../format/money.ts'
import { formatCompact, formatPercent } from '../../format/number.ts'
import { metricOf } from '../observe/usage/metrics.ts'
import { plotOf } from '../observe/usage/plot-series.ts'

type DayProps = { readonly timeRange: { readonly from: string; readonly to: string } }

const buckets = 48

/** Requests, and cost or tokens, over the last day. */
export function Day({ timeRange }: DayProps) {
  const { data, error, isPending, refetch } = useSummary({ timeRange, bucketCount: buckets })
  if (error) return <ErrorState error={error} onRetry={() => refetch()} />
  const total = data?.groups[0]
  const hasCost = (total?.cost ?? 0) > 0
  return (
    <div className="grid grid-cols-1 gap-6 xl:grid-cols-2">
      <DayChart
        title="Requests"
        about={
          total
            ? `${formatCompact(total.requests)} in 24 hours, ${formatPercent(total.errors / Math.max(1, total.requests))} failed or refused`
            : 'Last 24 hours'
        }
        metric="requests"
        summary={data}
        isPending={isPending}
      />
      <DayChart
        title={hasCost ? 'Cost' : 'Tokens'}
        about={
          total
            ? `${formatMoney(total.cost)} and ${formatCompact(total.totalTokens)} tokens in 24 hours`
            : 'Last 24 hours'
        }
        metric={hasCost ? 'cost' : 'tokens'}
        summary={data}
        isPending={isPending}
      />
    </div>
  )
}

type DayChartProps = {
  readonly title: string
  readonly about: string
  readonly metric: string
  readonly summary: Summary | undefined
  readonly isPending: boolean
}

function DayChart({ title, about, metric: id, summary, isPending }: DayChartProps) {
  const metric = metricOf(id)
  const plot = useMemo(
    () => summary && plotOf({ summary, metric, fields: [], previous: undefined }),
    [summary, metric],
  )
  return (
    <Card
      title={title}
      about={about}
      actions={
        <ButtonLink size="small" tone="quiet" href={`/usage?metric=${id}`}>
          Explore
        </ButtonLink>
      }
    >
      {plot === undefined || isPending ? (
        <Skeleton className="h-52 w-full rounded-lg" />
      ) : (
        <TimeChart
          label={`${title} of the last 24 hours`}
          {...plot}
          kind="bars"
          height={190}
          format={metric.format}
        />
      )}
    </Card>
  )
}
