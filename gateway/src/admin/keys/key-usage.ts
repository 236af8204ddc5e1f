import { QueryRefused } from '../../ledger/query/query.ts'
import type { Group } from '../../ledger/query/summary/groups.ts'
import { dayMs } from '../../lib/duration.ts'
import { decimalDollars } from '../../lib/picodollars.ts'
import type { KeysOptions } from './keys-options.ts'

const days = 30

/** Usage of a key in the last 30 days: sums, and sums by day (UTC). Undefined without a responsive ledger. */
export async function readKeyUsage(id: string, { ledger, clock }: KeysOptions): Promise<object | undefined> {
  if (ledger === undefined) return undefined
  const to = clock.now()
  const from = to - days * dayMs
  try {
    const summary = await ledger.summarize({
      filter: { from, to, conditions: [{ kind: 'values', field: 'keyId', values: [id] }], text: undefined },
      groupBy: [],
      orderBy: 'requests',
      bucketCount: days + 1,
      bucketMs: dayMs,
    })
    return {
      from: new Date(summary.from).toISOString(),
      to: new Date(summary.to).toISOString(),
      ...sumsOf(summary.groups[0]),
      days: summary.buckets.map((bucket) => ({
        start: new Date(bucket.start).toISOString(),
        ...sumsOf(bucket),
      })),
    }
  } catch (error) {
    if (error instanceof QueryRefused) return undefined
    throw error
  }
}

function sumsOf(group: Pick<Group, 'measures'> | undefined): object {
  if (group === undefined) return { requests: 0, errors: 0, totalTokens: 0, cost: '0' }
  const { requests, errors, tokens, costPicodollars } = group.measures
  return { requests, errors, totalTokens: tokens.total, cost: decimalDollars(costPicodollars) }
}
