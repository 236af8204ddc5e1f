import { dayMs, hourMs } from '../../../lib/duration.ts'
import { decimalDollars } from '../../../lib/picodollars.ts'
import type { QueryDatabase, Select } from '../database/database.ts'
import { all, join, list, type Sql, sql, wrap } from '../database/sql.ts'
import type { GroupValues } from '../summary/groups.ts'
import { keyNames } from '../summary/key-names.ts'
import { type Measures, measuresOfSums, readMeasures } from '../summary/measures.ts'
import { conditionsOnSums, dimensionColumn, sumsWithin } from '../summary/sums.ts'
import type { ExportPage, ExportQuery, Granularity, UsagePosition } from './contents.ts'
import { csvLine } from './csv.ts'

type UsageQuery = ExportQuery & { kind: 'usage' }
type Line = { readonly period: number; readonly group: GroupValues; readonly measures: Measures }

const pageRows = 2_000
/** Most periods of a page. */
const pagePeriods = 100

/** Reads the next lines of an export of sums. Rejects fields that the sums do not distinguish. */
export async function exportUsage(
  { dialect, use }: QueryDatabase,
  query: UsageQuery,
  at: UsagePosition | undefined,
): Promise<ExportPage> {
  const { filter, groupBy, granularity } = query
  const groups = groupBy.flatMap((field) => dimensionColumn(field) ?? [])
  const conditions = conditionsOnSums(filter, dialect)
  if (conditions === undefined || groups.length < groupBy.length)
    throw new Error('the sums do not distinguish a field of the export')
  const table = `tollgate_usage_${granularity === 'hour' ? 'hours' : 'days'}`
  const statement: PeriodStatement = { table, groups, conditions: [sql(dialect.inTime), ...conditions] }
  return await use(async (select) => {
    const lines: Line[] = []
    let position = at ?? { period: filter.from, group: undefined }
    for (let periods = 0; periods < pagePeriods && lines.length < pageRows; periods += 1) {
      const period = await nextPeriod(select, table, position, filter.to)
      if (period === undefined) return await pageOf(select, query, { lines, at, next: undefined })
      const start = periodStart(period, granularity)
      const end = Math.min(periodEnd(start, granularity), filter.to)
      const range = sumsWithin(Math.max(start, filter.from), end)
      const rest = pageRows - lines.length
      const after = start === position.period ? position.group : undefined
      const found = await readPeriod(select, statement, { range, after, most: rest })
      lines.push(...found.map((row) => ({ period: start, ...row })))
      position =
        found.length === rest
          ? { period: start, group: found.at(-1)?.group }
          : { period: end, group: undefined }
    }
    return await pageOf(select, query, { lines, at, next: position })
  })
}

/** Start of the next sum of any group; the period of the position itself if a part of it was written. */
async function nextPeriod(
  select: Select,
  table: string,
  { period, group }: UsagePosition,
  to: number,
): Promise<number | undefined> {
  if (group !== undefined) return period
  const [[start] = []] = await select(
    sql(`select min(start) from ${table} where start >= ? and start < ?`, period, to),
  )
  return start === null || start === undefined ? undefined : Number(start)
}

type PeriodStatement = {
  readonly table: string
  readonly groups: readonly string[]
  readonly conditions: readonly Sql[]
}

type PeriodRange = { readonly range: Sql; readonly after: GroupValues | undefined; readonly most: number }

async function readPeriod(
  select: Select,
  { table, groups, conditions }: PeriodStatement,
  { range, after, most }: PeriodRange,
): Promise<Omit<Line, 'period'>[]> {
  const columns = groups.join(', ')
  const selected = [...groups, measuresOfSums].join(', ')
  const isAfter =
    after === undefined || after.length === 0
      ? []
      : [join([sql(`(${columns}) > (`), list(after), sql(')')], '')]
  const rows = wrap(`select ${selected} from ${table} where `, all([range, ...conditions, ...isAfter]))
  // Without groups, the one line of a period was the last of it.
  if (groups.length === 0 && after !== undefined) return []
  const order = groups.length === 0 ? ' having count(*) > 0' : ` group by ${columns} order by ${columns}`
  const found = await select(wrap('', rows, `${order} limit ${most}`), { exact: true })
  return found.map((row) => ({
    group: row.slice(0, groups.length).map((value) => (typeof value === 'string' ? value : Number(value))),
    measures: readMeasures(row.slice(groups.length)),
  }))
}

type PageParts = {
  readonly lines: readonly Line[]
  readonly at: UsagePosition | undefined
  readonly next: UsagePosition | undefined
}

async function pageOf(
  select: Select,
  { groupBy, granularity }: UsageQuery,
  { lines, at, next }: PageParts,
): Promise<ExportPage> {
  const keyIndex = groupBy.indexOf('keyId')
  const isKeyed = keyIndex >= 0
  const ids = isKeyed ? lines.map(({ group }) => String(group[keyIndex])) : []
  const names = await keyNames(select, ids)
  const head = [
    'period',
    ...groupBy,
    ...(isKeyed ? ['keyName'] : []),
    ...measureColumns.map(([name]) => name),
  ]
  const texts = lines.map(({ period, group, measures }) =>
    csvLine([
      periodText(period, granularity),
      ...group,
      ...(isKeyed ? [names.get(String(group[keyIndex]))] : []),
      ...measureColumns.map(([, read]) => read(measures)),
    ]),
  )
  const csv = (at === undefined ? csvLine(head) : '') + texts.join('')
  return { csv, next: next && { kind: 'usage', at: next } }
}

const measureColumns: readonly [name: string, read: (measures: Measures) => string | number][] = [
  ['requests', ({ requests }) => requests],
  ['errors', ({ errors }) => errors],
  ['inputTokens', ({ tokens }) => tokens.input],
  ['cachedInputTokens', ({ tokens }) => tokens.cachedInput],
  ['cacheCreationInputTokens', ({ tokens }) => tokens.cacheCreationInput],
  ['outputTokens', ({ tokens }) => tokens.output],
  ['reasoningTokens', ({ tokens }) => tokens.reasoning],
  ['totalTokens', ({ tokens }) => tokens.total],
  ['estimatedRequests', ({ estimatedRequests }) => estimatedRequests],
  ['unpricedRequests', ({ unpricedRequests }) => unpricedRequests],
  ['costUsd', ({ costPicodollars }) => decimalDollars(costPicodollars)],
]

function periodStart(time: number, granularity: Granularity): number {
  const unit = granularity === 'hour' ? hourMs : dayMs
  if (granularity !== 'month') return Math.floor(time / unit) * unit
  const date = new Date(time)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth())
}

function periodEnd(start: number, granularity: Granularity): number {
  if (granularity !== 'month') return start + (granularity === 'hour' ? hourMs : dayMs)
  const date = new Date(start)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1)
}

function periodText(start: number, granularity: Granularity): string {
  const text = new Date(start).toISOString()
  switch (granularity) {
    case 'hour':
      return text
    case 'day':
      return text.slice(0, 10)
    case 'month':
      return text.slice(0, 7)
  }
}
