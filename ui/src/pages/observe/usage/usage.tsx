import { ChartNoAxesColumn, Download } from 'lucide-react'
import { useMemo } from 'react'
import { useSearchParams } from 'wouter'
import type { Summary, SummaryGroup } from '../../../api/ledger/summary.ts'
import { useWhoami } from '../../../api/whoami.ts'
import { TimeChart } from '../../../charts/time-chart.tsx'
import { Button, ButtonLink } from '../../../components/action/button.tsx'
import { EmptyState } from '../../../components/feedback/empty-state.tsx'
import { ErrorState } from '../../../components/feedback/error-state.tsx'
import { Notice } from '../../../components/feedback/notice.tsx'
import { Skeleton, SkeletonLines } from '../../../components/feedback/skeleton.tsx'
import { Tooltip } from '../../../components/feedback/tooltip.tsx'
import { Segmented } from '../../../components/form/segmented.tsx'
import { Card } from '../../../components/layout/card.tsx'
import { Page } from '../../../components/layout/page.tsx'
import { formatDateTime } from '../../../format/time.ts'
import { FilterBar } from '../filters/filter-bar.tsx'
import { readFilters } from '../filters/url-filters.ts'
import { isLedgerMissing, LedgerMissing } from '../ledger-missing.tsx'
import { RangePicker } from '../range/range-picker.tsx'
import { useRange } from '../range/use-range.ts'
import { csvAddress } from './csv-address.ts'
import { type Dimension, dimensionOf } from './dimensions.ts'
import { GroupChoice, MetricChoice } from './group-choice.tsx'
import { GroupTable } from './group-table.tsx'
import { MetricCards } from './metric-cards.tsx'
import { type Metric, metricOf } from './metrics.ts'
import { plotOf } from './plot-series.ts'
import { useUsage } from './use-usage.ts'

/** Usage of the gateway over time: figures by any two fields, compared with the range before. */
export default function Usage() {
  const [parameters, setParameters] = useSearchParams()
  const { choice, range, setChoice, refresh } = useRange('24h')
  const filters = useMemo(() => readFilters(parameters), [parameters])
  const metric = metricOf(parameters.get('metric'))
  const [by, and] = ['by', 'and'].map((name) => parameters.get(name))
  const grouped = useMemo(() => groupedBy(by ?? null, and ?? null), [by, and])
  const isCompared = parameters.get('compare') === 'previous'
  const { data: whoami } = useWhoami()
  const fields = useMemo(() => grouped.map(({ field }) => field), [grouped])
  const usage = useUsage({ range, filters, fields, metric, isCompared })
  const { totals, previousTotals, error, isFetching } = usage
  const set = (name: string, value: string | undefined) =>
    setParameters((current) => {
      const next = new URLSearchParams(current)
      if (value === undefined) next.delete(name)
      else next.set(name, value)
      return next
    })
  const frame = { title: 'Usage', about: 'Tokens, cost, requests, errors and latency by any two fields.' }
  if (whoami?.ledger === false || isLedgerMissing(error))
    return (
      <Page {...frame}>
        <LedgerMissing />
      </Page>
    )
  const bucketMs = (totals?.bucketSeconds ?? 3_600) * 1_000
  return (
    <Page {...frame} actions={<ExportButton {...{ range, bucketMs, filters, dimensions: grouped }} />}>
      <FilterBar filters={filters} options={totals?.filterOptions ?? {}} plain>
        <RangePicker
          choice={choice}
          range={range}
          onChoose={setChoice}
          onRefresh={refresh}
          busy={isFetching}
        />
        <Segmented
          label="Comparison"
          value={isCompared ? 'previous' : 'none'}
          onChange={(value) => set('compare', value === 'none' ? undefined : value)}
          options={[
            { value: 'none', label: 'This range' },
            { value: 'previous', label: 'With the previous' },
          ]}
        />
      </FilterBar>
      {error !== null && error !== undefined && <ErrorState error={error} onRetry={usage.retry} />}
      <MetricCards
        selected={metric}
        totals={sumOf(totals)}
        previous={sumOf(previousTotals)}
        isCompared={isCompared}
        onSelect={(id) => set('metric', id)}
      />
      <UsageContent
        {...{ usage, metric, grouped, isCompared }}
        controls={
          <>
            <MetricChoice metric={metric} onChoose={(id) => set('metric', id)} />
            <GroupChoice label="By" value={grouped[0]} onChoose={(field) => set('by', field)} />
            <GroupChoice
              label="and"
              value={grouped[1]}
              without={grouped[0]}
              onChoose={(field) => set('and', field)}
            />
          </>
        }
        onZoom={(from, to) => setChoice({ kind: 'custom', from, to })}
        addressOf={(group) => requestsOf(group, parameters)}
      />
    </Page>
  )
}

function groupedBy(by: string | null, and: string | null): readonly Dimension[] {
  const first = by === 'nothing' ? undefined : (dimensionOf(by) ?? dimensionOf('servedModel'))
  const second = dimensionOf(and)
  return [first, second === first ? undefined : second].filter((one) => one !== undefined)
}

/** The only group of a summary without grouped fields. */
function sumOf(summary: Summary | undefined): SummaryGroup | undefined {
  return summary?.groups[0]
}

/** The requests of a group: with the range and the filters of the page. */
function requestsOf({ group, other }: SummaryGroup, parameters: URLSearchParams): string | undefined {
  if (other) return undefined
  const next = new URLSearchParams(parameters)
  for (const name of ['metric', 'by', 'and', 'compare']) next.delete(name)
  for (const [field, value] of Object.entries(group)) next.set(field, value === null ? '' : String(value))
  return `/requests?${next}`
}

function ExportButton(selection: Parameters<typeof csvAddress>[0]) {
  const csv = csvAddress(selection)
  if (csv.kind === 'file')
    return (
      <a
        href={csv.address}
        download
        className="inline-flex h-8.5 items-center gap-2 rounded-md border border-line bg-surface px-3 text-sm font-medium shadow-card hover:bg-hover"
      >
        <Download className="size-4" aria-hidden />
        Export CSV
      </a>
    )
  return (
    <Tooltip text={csv.reason}>
      <Button icon={Download} aria-disabled onClick={(event) => event.preventDefault()}>
        Export CSV
      </Button>
    </Tooltip>
  )
}

type ContentProps = {
  readonly usage: ReturnType<typeof useUsage>
  readonly metric: Metric
  readonly grouped: readonly Dimension[]
  readonly isCompared: boolean
  readonly controls: React.ReactNode
  onZoom(from: number, to: number): void
  addressOf(group: SummaryGroup): string | undefined
}

function UsageContent({ usage, metric, grouped, isCompared, controls, onZoom, addressOf }: ContentProps) {
  const { totals, groups, previousTotals, previousGroups, isFetching } = usage
  const plot = useMemo(
    () =>
      groups &&
      plotOf({
        summary: groups,
        metric,
        fields: grouped.map(({ field }) => field),
        previous: previousTotals,
      }),
    [groups, metric, grouped, previousTotals],
  )
  const isEmpty = totals !== undefined && totals.groups.length === 0
  return (
    <>
      {totals?.complete === false && (
        <Notice
          tone="warn"
          title={`Counted since ${formatDateTime(totals.coveredFrom ?? totals.timeRange.from)}`}
        >
          This selection reads single requests, of which the newest 200,000 are counted. Group and filter by
          fields of the hourly sums to cover the whole range.
        </Notice>
      )}
      <Card
        title={metric.label}
        about={totals && noteOf(totals, metric)}
        actions={<div className="flex flex-wrap items-center gap-2">{controls}</div>}
      >
        {plot === undefined ? (
          <Skeleton className="h-72 w-full rounded-lg" />
        ) : (
          <TimeChart
            label={metric.label}
            {...plot}
            kind={metric.isSum ? 'bars' : 'lines'}
            height={280}
            format={metric.format}
            {...(metric.isSum
              ? {
                  totalOf: ({ values }) =>
                    metric.format(values.reduce<number>((sum, one) => sum + (one ?? 0), 0)),
                }
              : {})}
            onZoom={onZoom}
          />
        )}
      </Card>
      {isEmpty ? (
        <Card>
          <EmptyState
            icon={ChartNoAxesColumn}
            title="No requests in this range"
            action={<ButtonLink href="/clients">Connect a client</ButtonLink>}
          >
            Usage appears within a second of a request. Choose a longer range, or remove filters.
          </EmptyState>
        </Card>
      ) : (
        grouped.length > 0 && (
          <Card flush title={`By ${grouped.map(({ label }) => label.toLowerCase()).join(' and ')}`}>
            {groups === undefined ? (
              <div className="p-5">
                <SkeletonLines count={6} />
              </div>
            ) : (
              <GroupTable
                summary={groups}
                previous={isCompared ? previousGroups : undefined}
                metric={metric}
                dimensions={grouped}
                addressOf={addressOf}
                busy={isFetching}
              />
            )}
          </Card>
        )
      )}
    </>
  )
}

function noteOf({ source }: Summary, metric: Metric): string {
  const notes = [
    source === 'requests'
      ? 'From single requests'
      : `From sums by ${source === 'hours' ? 'hour' : 'day'} in UTC`,
    metric.id.startsWith('p') && 'percentiles estimated from a histogram',
  ]
  return notes.filter(Boolean).join('; ')
}
