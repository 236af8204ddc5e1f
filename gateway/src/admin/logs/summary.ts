import type { Group } from '../../ledger/query/summary/groups.ts'
import { type Measures, percentileOf } from '../../ledger/query/summary/measures.ts'
import type { OptionField } from '../../ledger/query/summary/options.ts'
import type { Summary } from '../../ledger/query/summary/summary.ts'
import { decimalDollars, dollarsOf } from '../../lib/picodollars.ts'
import type { SummaryRequest } from './summary-request.ts'

/** A summary as the log API returns it: members of the reference product, and further ones. */
export function summaryReply(
  { query, names }: SummaryRequest,
  summary: Summary,
  options: Readonly<Record<OptionField, readonly string[]>>,
) {
  const { from, to, bucketMs, source, coveredFrom, keyNames } = summary
  const keyIndex = query.groupBy.indexOf('keyId')
  const fieldsOf = ({ values }: Group) => {
    if (values === undefined) return { group: {}, other: true }
    const group = Object.fromEntries(
      names.map((name, index) => [name, values[index] === '' ? null : values[index]]),
    )
    const keyName = keyIndex < 0 ? undefined : keyNames.get(String(values[keyIndex]))
    return { group, ...(keyName === undefined ? {} : { keyName }) }
  }
  return {
    timeRange: { from: timeOf(from), to: timeOf(to) },
    bucketSeconds: bucketMs / 1_000,
    source,
    complete: coveredFrom === undefined,
    ...(coveredFrom === undefined ? {} : { coveredFrom: timeOf(coveredFrom) }),
    buckets: summary.buckets.map((bucket) => ({
      start: timeOf(bucket.start),
      ...fieldsOf(bucket),
      ...measuresOf(bucket.measures),
    })),
    groups: summary.groups.map((group) => ({ ...fieldsOf(group), ...measuresOf(group.measures) })),
    filterOptions: {
      ...options,
      responseModel: options.servedModel,
      httpStatus: options.status.map(Number),
      status: options.status.map(Number),
    },
  }
}

function measuresOf(measures: Measures) {
  const { requests, tokens, costPicodollars, durations, firstBytes } = measures
  return {
    requests,
    errors: measures.errors,
    totalTokens: tokens.total,
    inputTokens: tokens.input,
    outputTokens: tokens.output,
    cachedInputTokens: tokens.cachedInput,
    cacheCreationInputTokens: tokens.cacheCreationInput,
    reasoningTokens: tokens.reasoning,
    estimatedRequests: measures.estimatedRequests,
    unpricedRequests: measures.unpricedRequests,
    cost: dollarsOf(costPicodollars),
    costUsd: decimalDollars(costPicodollars),
    durationMs: {
      average: requests === 0 ? null : measures.durationMs / requests,
      p50: percentileOf(durations, 0.5) ?? null,
      p95: percentileOf(durations, 0.95) ?? null,
      p99: percentileOf(durations, 0.99) ?? null,
    },
    firstByteMs: { average: firstBytes === 0 ? null : measures.firstByteMs / firstBytes },
  }
}

function timeOf(time: number): string {
  return new Date(time).toISOString()
}
