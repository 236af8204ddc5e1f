import { dayMs, hourMs } from '../../../lib/duration.ts'
import type { Dialect, QueryDatabase, Select } from '../database/database.ts'
import { all, wrap } from '../database/sql.ts'
import { type FilterField, filterFields } from '../search/fields.ts'
import type { LedgerFilter } from '../search/filter.ts'
import { maxReadRows, planScan, rowAt, type Scan, scannedSql } from '../search/scan.ts'
import { bucketSql, bucketStart, chooseBucketMs } from './buckets.ts'
import { type Bucket, type Group, type GroupOrder, type GroupStatement, readGroups } from './groups.ts'
import { keyNames } from './key-names.ts'
import { measuredColumns, measuresOfRequests, measuresOfSums } from './measures.ts'
import { conditionsOnSums, dimensionColumn, sumsWithin } from './sums.ts'

export type SummaryQuery = {
  /** With `from` and `to`. */
  readonly filter: LedgerFilter & { readonly from: number; readonly to: number }
  /** At most two fields. */
  readonly groupBy: readonly FilterField[]
  readonly orderBy: GroupOrder
  /** Most buckets, for a length that the server selects. */
  readonly bucketCount: number
  readonly bucketMs: number | undefined
}

export type Summary = {
  /** Range that the sums cover, widened to whole hours or days where these are read. */
  readonly from: number
  readonly to: number
  readonly bucketMs: number
  readonly source: 'requests' | 'hours' | 'days'
  /** Time from which all requests are counted, if there are more than one query reads. */
  readonly coveredFrom: number | undefined
  /** By time. Buckets without requests are absent. */
  readonly buckets: readonly Bucket[]
  /** By `orderBy`, descending. */
  readonly groups: readonly Group[]
  /** Names of keys by id, if the groups have a key. */
  readonly keyNames: ReadonlyMap<string, string>
}

/** Most requests that are read instead of sums, if the server selects the buckets. */
const maxSelectedRows = 50_000

/** Sums up requests by time and by the values of fields. */
export async function summarize(database: QueryDatabase, query: SummaryQuery): Promise<Summary> {
  const { dialect, use } = database
  return await use(async (select) => {
    const plan = await planSummary(select, dialect, query)
    const rows = await readGroups(select, plan.statement)
    const isKeyed = query.groupBy.includes('keyId')
    const ids = rows.groups.map(({ values }) => String(values?.[query.groupBy.indexOf('keyId')] ?? ''))
    return {
      from: plan.from,
      to: plan.to,
      bucketMs: plan.bucketMs,
      source: plan.source,
      coveredFrom: plan.coveredFrom,
      ...rows,
      keyNames: isKeyed ? await keyNames(select, ids) : new Map(),
    }
  })
}

type Plan = Pick<Summary, 'from' | 'to' | 'bucketMs' | 'source' | 'coveredFrom'> & {
  readonly statement: GroupStatement
}

async function planSummary(select: Select, dialect: Dialect, query: SummaryQuery): Promise<Plan> {
  const { filter, groupBy, bucketCount } = query
  const bucketMs = query.bucketMs ?? chooseBucketMs(filter.to - filter.from, bucketCount)
  const sums = planSums(dialect, query, Math.max(bucketMs, hourMs))
  if (sums !== undefined && bucketMs % hourMs === 0) return sums
  const columns = [...measuredColumns, ...groupBy.map((field) => filterFields[field].column)]
  const scan = await planScan(select, { filter, order: 'newest', after: undefined, columns, dialect })
  // Sums of a query without the length of a bucket cover every request.
  if (sums !== undefined && query.bucketMs === undefined) {
    const isLarge = (await rowAt(select, scan.rows, maxSelectedRows + 1)) !== undefined
    if (isLarge) return sums
  }
  const last = await rowAt(select, scan.rows, maxReadRows)
  return planRequests(query, bucketMs, { scan, coveredFrom: last?.completedAt })
}

type RequestScan = { readonly scan: Scan; readonly coveredFrom: number | undefined }

function planRequests(
  { filter, groupBy, orderBy }: SummaryQuery,
  bucketMs: number,
  { scan, coveredFrom }: RequestScan,
): Plan {
  return {
    from: filter.from,
    to: filter.to,
    bucketMs,
    source: 'requests',
    coveredFrom,
    statement: {
      rows: (selected, conditions) =>
        scannedSql({ rows: scan.rows, rest: [...scan.rest, ...conditions] }, selected, maxReadRows),
      groups: groupBy.map((field) => {
        const { column, type } = filterFields[field]
        return type === 'text' ? `coalesce(${column}, '')` : column
      }),
      bucket: bucketSql('completed_at', bucketMs),
      measures: measuresOfRequests,
      orderBy,
    },
  }
}

/** Undefined if the sums do not distinguish the groups or a part of the filter. */
function planSums(
  dialect: Dialect,
  { filter, groupBy, orderBy }: SummaryQuery,
  bucketMs: number,
): Plan | undefined {
  const conditions = conditionsOnSums(filter, dialect)
  const groups = groupBy.map(dimensionColumn)
  if (conditions === undefined || groups.includes(undefined)) return undefined
  const source = bucketMs % dayMs === 0 ? 'days' : 'hours'
  const unit = source === 'days' ? dayMs : hourMs
  const from = bucketStart(filter.from, unit)
  const to = bucketStart(filter.to - 1, unit) + unit
  const within = sumsWithin(from, to)
  return {
    from,
    to,
    bucketMs,
    source,
    coveredFrom: undefined,
    statement: {
      rows: (selected, more) =>
        wrap(
          `select ${selected} from tollgate_usage_${source} where ${dialect.inTime} and `,
          all([within, ...conditions, ...more]),
        ),
      groups: groups.filter((group) => group !== undefined),
      // In the order of the primary key: half of the time, because no rows are sorted.
      bucket: bucketMs === unit ? 'start' : bucketSql('start', bucketMs),
      measures: measuresOfSums,
      orderBy,
    },
  }
}
