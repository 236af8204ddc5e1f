import { indexedColumns } from '../../store/columns.ts'
import type { Dialect, Select } from '../database/database.ts'
import { all, join, list, type Sql, sql, wrap } from '../database/sql.ts'
import { filterFields } from './fields.ts'
import type { Condition, LedgerFilter, Position } from './filter.ts'
import { columnsOf, conditionSql, rangeCondition, textSql } from './where.ts'

export type ScanOrder = 'newest' | 'oldest'

export type ScanOptions = {
  readonly filter: LedgerFilter
  readonly order: ScanOrder
  /** Continues after a position. */
  readonly after: Position | undefined
  /** Columns to read, beside those of the filter. */
  readonly columns: readonly string[]
  readonly dialect: Dialect
}

/** Reads requests in order through one index: that of the most selective condition, or of the times. */
export type Scan = {
  /** Rows of the index, in order, without a limit: `completed_at`, `id` and the columns. */
  readonly rows: Sql
  /** Conditions that the index does not answer. */
  readonly rest: readonly Sql[]
}

/** Most rows that a scan reads for one page of results. */
const maxScannedRows = 50_000
/** Most rows that are read of a scan for any purpose. */
export const maxReadRows = 200_000
/** Most values of a condition whose rows are merged from an index. */
const maxIndexedValues = 20
/** Rows that are counted to select the condition with the fewest. */
const maxCountedRows = 1_000

export async function planScan(select: Select, options: ScanOptions): Promise<Scan> {
  const { filter, order, after, dialect } = options
  const range = rangeCondition(filter, after, order)
  const source = await chooseSource(select, filter.conditions, range)
  const rest = filter.conditions
    .filter((condition) => condition !== source.condition)
    .map((condition) => conditionSql(condition, dialect))
  if (filter.text !== undefined) rest.push(textSql(filter.text, dialect))
  const columns = [...new Set(['completed_at', 'id', ...options.columns, ...columnsOf(filter)])].join(', ')
  const direction = order === 'newest' ? 'desc' : 'asc'
  const sorted = `order by completed_at ${direction}, id ${direction}`
  const parts = source.parts.map((part, index, { length }) => {
    const condition = all([sql(dialect.inTime), part, ...range])
    const selected = wrap(`select ${columns} from tollgate_requests where `, condition)
    if (length === 1 || !dialect.ordersParts) return selected
    return wrap('select * from (', selected, ` ${sorted} limit ${maxReadRows}) as part_${index}`)
  })
  const rows = wrap('', join(parts, ' union all '), ` ${sorted}`)
  return { rows, rest }
}

/** Reads a page of positions. Fewer than `limit` with a `next` if the scan reached its limit before. */
export async function readPage(
  select: Select,
  { rows, rest }: Scan,
  limit: number,
  maxRows: number = maxScannedRows,
): Promise<{ positions: Position[]; next: Position | undefined }> {
  const found = await select(
    rest.length === 0
      ? wrap('select completed_at, id from (', rows, ` limit ${limit}) as scanned`)
      : // The order of the inner statement is retained; ordering again would read all of its rows.
        join([scannedSql({ rows, rest }, 'completed_at, id', maxRows), sql(`limit ${limit}`)], ' '),
  )
  const positions = found.map(toPosition)
  if (positions.length === limit) return { positions, next: positions.at(-1) }
  if (rest.length === 0) return { positions, next: undefined }
  return { positions, next: await rowAt(select, rows, maxRows) }
}

/** Selects of the first `maxRows` rows of a scan those that meet all conditions. */
export function scannedSql({ rows, rest }: Scan, selected: string, maxRows: number): Sql {
  const scanned = wrap(`select ${selected} from (`, rows, ` limit ${maxRows}) as scanned where `)
  return join([scanned, all(rest)], '')
}

/** Position of the row with a number from 1; undefined if there are fewer. */
export async function rowAt(select: Select, rows: Sql, number: number): Promise<Position | undefined> {
  const [row] = await select(
    wrap('select completed_at, id from (', rows, ` limit 1 offset ${number - 1}) as last`),
  )
  return row && toPosition(row)
}

function toPosition([completedAt, id]: readonly unknown[]): Position {
  return { completedAt: Number(completedAt), id: String(id) }
}

/** Condition that an index answers, in parts to merge; without one, the index of completion times. */
type Source = { readonly condition: Condition | undefined; readonly parts: readonly Sql[] }

const indexed: ReadonlySet<string> = new Set(indexedColumns)

async function chooseSource(
  select: Select,
  conditions: readonly Condition[],
  range: readonly Sql[],
): Promise<Source> {
  const sources = conditions.flatMap(sourceOf)
  const [only] = sources
  if (only === undefined) return { condition: undefined, parts: [sql('1 = 1')] }
  if (sources.length === 1) return only
  const counts = sources.map(({ parts }) => {
    const rows = parts.map((part) =>
      wrap('select 1 from tollgate_requests where ', all([part, ...range]), ''),
    )
    return wrap(
      '(select count(*) from (select * from (',
      join(rows, ' union all '),
      `) as matching limit ${maxCountedRows}) as counted)`,
    )
  })
  const [row = []] = await select(wrap('select ', join(counts, ', '), ''))
  const fewest = Math.min(...row.map(Number))
  return sources[row.findIndex((count) => Number(count) === fewest)] ?? only
}

function sourceOf(condition: Condition): Source[] {
  if (condition.kind !== 'values') return []
  const { column } = filterFields[condition.field]
  const values = [...new Set(condition.values)].filter((value) => value !== null)
  if (values.length === 0 || condition.values.includes(null)) return []
  // Ids are unique.
  if (column === 'id') return [{ condition, parts: [wrap('id in (', list(values), ')')] }]
  if (!indexed.has(column) || values.length > maxIndexedValues) return []
  return [{ condition, parts: values.map((value) => sql(`${column} = ?`, value)) }]
}
