import { countColumns } from '../../store/usage-columns.ts'
import type { Select } from '../database/database.ts'
import { all, any, type Sql, sql, wrap } from '../database/sql.ts'
import { addMeasures, type Measures, noMeasures, readMeasures } from './measures.ts'

/** Values of the fields of a group, in their order; an empty text for requests without one. */
export type GroupValues = readonly (string | number)[]

/** A group; without values, the sum of the groups beyond the limit. */
export type Group = { readonly values: GroupValues | undefined; readonly measures: Measures }

export type Bucket = Group & { readonly start: number }

/** Parts of a statement that sums up rows by bucket and group. */
export type GroupStatement = {
  /** Selects expressions of the rows that meet further conditions. */
  rows(selected: string, conditions: readonly Sql[]): Sql
  /** Expressions of the groups. */
  readonly groups: readonly string[]
  /** Expression of the start of the bucket. */
  readonly bucket: string
  /** Expressions of the measures; the first is the number of requests. */
  readonly measures: string
  /** Order of the groups, descending. */
  readonly orderBy: GroupOrder
}

/** Measures that order groups. */
export const groupOrders = ['requests', 'errors', 'totalTokens', 'cost'] as const

export type GroupOrder = (typeof groupOrders)[number]

/** Most groups; the rest is summed up. */
const maxGroups = 100
/** Most rows, a bucket of a group each, that are read to find the groups with the most requests. */
const maxGroupRows = 20_000

/** Reads the groups with the most requests, by bucket and in total, and the sums of all others. */
export async function readGroups(
  select: Select,
  statement: GroupStatement,
  maxRows: number = maxGroupRows,
): Promise<{ buckets: Bucket[]; groups: Group[] }> {
  const rows = await readRows(select, statement, [], ` order by 1 limit ${maxRows + 1}`)
  if (rows.length <= maxRows) {
    const groups = sumBy(rows, keyOf).sort(byOrder(statement.orderBy)).slice(0, maxGroups)
    const keys = new Set(groups.map(keyOf))
    const totals = sumBy(rows, ({ start }) => start)
    return combine(
      groups,
      rows.filter((row) => keys.has(keyOf(row))),
      totals,
    )
  }
  const first = statement.groups.length + 2
  const most = ` order by ${first + orderColumns[statement.orderBy]} desc, ${first} desc, 2 limit ${maxGroups}`
  const groups = await readRows(select, { ...statement, bucket: '0' }, [], most)
  const condition = any(
    groups.map(({ values }) =>
      wrap('(', all(values.map((value, index) => sql(`${statement.groups[index]} = ?`, value))), ')'),
    ),
  )
  return combine(
    groups,
    await readRows(select, statement, [condition], ' order by 1'),
    await readRows(select, { ...statement, groups: [] }, [], ' order by 1'),
  )
}

type Row = { readonly start: number; readonly values: GroupValues; readonly measures: Measures }

async function readRows(
  select: Select,
  statement: GroupStatement,
  conditions: readonly Sql[],
  end: string,
): Promise<Row[]> {
  const { bucket, groups, measures } = statement
  const selected = [bucket, ...groups, measures].join(', ')
  const numbers = Array.from({ length: groups.length + 1 }, (_, index) => index + 1).join(', ')
  const found = await select(wrap('', statement.rows(selected, conditions), ` group by ${numbers}${end}`), {
    exact: true,
  })
  return found.map((row) => ({
    start: Number(row[0]),
    values: row
      .slice(1, groups.length + 1)
      .map((value) => (typeof value === 'string' ? value : Number(value))),
    measures: readMeasures(row.slice(groups.length + 1)),
  }))
}

/** `rows` are those of the groups, `totals` those of all groups by bucket. */
function combine(
  groups: readonly Row[],
  rows: readonly Row[],
  totals: readonly Row[],
): { buckets: Bucket[]; groups: Group[] } {
  const byStart = Map.groupBy(rows, ({ start }) => start)
  const buckets = totals.flatMap((total): Bucket[] => {
    const known = byStart.get(total.start) ?? []
    return [...known, ...restOf(total, known).map((rest) => ({ start: total.start, ...rest }))]
  })
  const [total] = sumBy(totals, () => 0)
  return { buckets, groups: [...groups, ...(total === undefined ? [] : restOf(total, groups))] }
}

function restOf({ measures }: Row, known: readonly Row[]): Group[] {
  const rest = known.reduce((left, row) => addMeasures(left, row.measures, -1), measures)
  return rest.requests > 0 ? [{ values: undefined, measures: rest }] : []
}

function sumBy(rows: readonly Row[], key: (row: Row) => unknown): Row[] {
  return [...Map.groupBy(rows, key).values()].flatMap((same) => {
    const [first] = same
    if (first === undefined) return []
    return [{ ...first, measures: same.reduce((sum, row) => addMeasures(sum, row.measures), noMeasures) }]
  })
}

function keyOf({ values }: Row): string {
  return JSON.stringify(values)
}

/** Columns of orders among those of the measures. */
const orderColumns: Readonly<Record<GroupOrder, number>> = {
  requests: countColumns.indexOf('requests'),
  totalTokens: countColumns.indexOf('total_tokens'),
  cost: countColumns.indexOf('cost_microdollars'),
  errors: countColumns.length,
}

function byOrder(order: GroupOrder): (one: Row, other: Row) => number {
  return (one, other) =>
    Number(amountOf(other, order)) - Number(amountOf(one, order)) ||
    other.measures.requests - one.measures.requests
}

function amountOf({ measures }: Row, order: GroupOrder): number | bigint {
  switch (order) {
    case 'requests':
      return measures.requests
    case 'errors':
      return measures.errors
    case 'totalTokens':
      return measures.tokens.total
    case 'cost':
      return measures.costPicodollars
  }
}
