import type { Dialect } from '../database/database.ts'
import { type Sql, sql } from '../database/sql.ts'
import { type FilterField, filterFields } from '../search/fields.ts'
import type { Condition, LedgerFilter } from '../search/filter.ts'
import { conditionSql } from '../search/where.ts'

/** Fields with a dimension in the hourly and daily sums, and its column. */
const dimensionOf: { readonly [field in FilterField]?: string } = {
  kind: 'kind',
  keyId: 'key_id',
  user: 'user_name',
  group: 'group_name',
  route: 'route',
  provider: 'provider',
  servedModel: 'model',
  mcpTarget: 'mcp_target',
  status: 'status',
}

/** Column of the sums with the values of a field; undefined if the sums do not distinguish them. */
export function dimensionColumn(field: FilterField): string | undefined {
  return dimensionOf[field]
}

/** Conditions of a filter on the sums; undefined if the sums do not distinguish a part of it. */
export function conditionsOnSums({ conditions, text }: LedgerFilter, dialect: Dialect): Sql[] | undefined {
  if (text !== undefined) return undefined
  const parts: Sql[] = []
  for (const condition of conditions) {
    const column = dimensionOf[condition.field]
    if (column === undefined) return undefined
    parts.push(conditionSql(withEmptyTexts(condition), dialect, column))
  }
  return parts
}

/** Sums have an empty text in place of an absent value. */
function withEmptyTexts(condition: Condition): Condition {
  if (condition.kind !== 'values') return condition
  const isText = filterFields[condition.field].type === 'text'
  const values = condition.values.flatMap((value) => (value === null ? (isText ? [''] : []) : [value]))
  return { ...condition, values }
}

/** Sums that start in a time range. */
export function sumsWithin(from: number, to: number): Sql {
  return sql('start >= ? and start < ?', from, to)
}
