import { useMemo } from 'react'
import { type Summary, useSummary } from '../../../api/ledger/summary.ts'
import { apiFilters, type Filter } from '../filters/url-filters.ts'
import { previousRange, type Range, toTimeRange } from '../range/time-range.ts'
import type { Metric } from './metrics.ts'

type UsageInputs = {
  readonly range: Range
  readonly filters: readonly Filter[]
  readonly fields: readonly string[]
  readonly metric: Metric
  readonly isCompared: boolean
}

type Usage = {
  /** Without groups. */
  readonly totals: Summary | undefined
  /** Equal to `totals` without grouped fields. */
  readonly groups: Summary | undefined
  readonly previousTotals: Summary | undefined
  readonly previousGroups: Summary | undefined
  readonly error: unknown
  readonly isFetching: boolean
  retry(): void
}

const bucketCount = 60

/** Sums of a range, by group, and of the range before. */
export function useUsage({ range, filters, fields, metric, isCompared }: UsageInputs): Usage {
  const conditions = useMemo(() => apiFilters(filters, ''), [filters])
  const base = { filters: conditions, bucketCount }
  const isGrouped = fields.length > 0
  const grouped = { groupBy: fields, orderBy: metric.orderBy }
  const current = toTimeRange(range)
  const before = toTimeRange(previousRange(range))
  const totals = useSummary({ ...base, timeRange: current })
  const groups = useSummary({ ...base, timeRange: current, ...grouped }, { enabled: isGrouped })
  const previousTotals = useSummary({ ...base, timeRange: before }, { enabled: isCompared })
  const previousGroups = useSummary(
    { ...base, timeRange: before, ...grouped },
    { enabled: isCompared && isGrouped },
  )
  return {
    totals: totals.data,
    groups: isGrouped ? groups.data : totals.data,
    previousTotals: isCompared ? previousTotals.data : undefined,
    previousGroups: isCompared && isGrouped ? previousGroups.data : undefined,
    error: totals.error ?? groups.error ?? previousTotals.error ?? previousGroups.error,
    isFetching: totals.isFetching || groups.isFetching,
    retry() {
      void totals.refetch()
      if (isGrouped) void groups.refetch()
    },
  }
}
