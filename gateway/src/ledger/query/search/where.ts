import { type Dialect, lowerAscii } from '../database/database.ts'
import { any, list, type Sql, sql, wrap } from '../database/sql.ts'
import { filterFields, searchedColumns } from './fields.ts'
import type { Condition, LedgerFilter, Position } from './filter.ts'

/** The time range of a filter. */
export function timeCondition({ from, to }: Pick<LedgerFilter, 'from' | 'to'>): Sql[] {
  return [
    ...(from === undefined ? [] : [sql('completed_at >= ?', from)]),
    ...(to === undefined ? [] : [sql('completed_at < ?', to)]),
  ]
}

/**
 * Requests of a time range after a position in an order. The range has one bound in each direction: with two,
 * SQLite may read the index from the wider one.
 */
export function rangeCondition(
  { from = 0, to }: Pick<LedgerFilter, 'from' | 'to'>,
  after: Position | undefined,
  order: 'newest' | 'oldest',
): Sql[] {
  if (after === undefined) return timeCondition({ from, to })
  const { completedAt, id } = after
  if (order === 'newest') {
    const end = Math.min(to ?? Number.MAX_SAFE_INTEGER, completedAt + 1)
    return [...timeCondition({ from, to: end }), sql('(completed_at <> ? or id < ?)', completedAt, id)]
  }
  const range = timeCondition({ from: Math.max(from, completedAt), to })
  return [...range, sql('(completed_at <> ? or id > ?)', completedAt, id)]
}

/** Condition on a column: by default, on that of the field in `tollgate_requests`. */
export function conditionSql(
  condition: Condition,
  dialect: Dialect,
  column: string = filterFields[condition.field].column,
): Sql {
  switch (condition.kind) {
    case 'values':
      return valuesSql(column, condition.values)
    case 'range':
      return any([
        {
          text: [
            `${column} is not null`,
            ...(condition.min === undefined ? [] : [`${column} >= ?`]),
            ...(condition.max === undefined ? [] : [`${column} <= ?`]),
          ].join(' and '),
          values: [condition.min, condition.max].filter((bound) => bound !== undefined),
        },
      ])
    case 'contains':
      return sql(dialect.contains(column), lowerAscii(condition.text))
  }
}

export function textSql(text: string, dialect: Dialect): Sql {
  return any(searchedColumns.map((column) => sql(dialect.contains(column), lowerAscii(text))))
}

function valuesSql(column: string, values: readonly (string | number | null)[]): Sql {
  const present = values.filter((value) => value !== null)
  const parts: Sql[] = []
  if (present.length > 0) parts.push(wrap(`${column} in (`, list(present), ')'))
  if (present.length < values.length) parts.push(sql(`${column} is null`))
  return any(parts)
}

/** Columns that a condition reads. */
export function columnsOf(filter: LedgerFilter): string[] {
  const columns = filter.conditions.map(({ field }) => filterFields[field].column)
  return [...new Set([...columns, ...(filter.text === undefined ? [] : searchedColumns)])]
}
