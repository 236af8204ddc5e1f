import { dayMs } from '../../../lib/duration.ts'
import type { QueryDatabase } from '../database/database.ts'
import { all, join, type Sql, sql, wrap } from '../database/sql.ts'
import { filterFields } from '../search/fields.ts'
import { timeCondition } from '../search/where.ts'
import { bucketStart } from './buckets.ts'
import { dimensionColumn, sumsWithin } from './sums.ts'

/** Fields whose recent values are offered for filters. */
export const optionFields = [
  'provider',
  'requestModel',
  'servedModel',
  'status',
  'kind',
  'route',
  'keyId',
  'user',
  'group',
  'mcpTarget',
  'errorCode',
] as const

export type OptionField = (typeof optionFields)[number]

/** Most recent daily sums and requests whose values are read. */
const maxSums = 5_000
const maxRequests = 1_000
const maxOptions = 200

/** Values of fields in a time range, sorted: of the most recent daily sums, or else of the last requests. */
export async function readOptions(
  { use }: QueryDatabase,
  from: number,
  to: number,
): Promise<Record<OptionField, string[]>> {
  const statements = optionFields.map((field, index): Sql => {
    const table = dimensionColumn(field) === undefined ? 'recent_requests' : 'recent_sums'
    return sql(
      `select * from (select distinct ${index} as field, cast(${columnOf(field)} as text) as value from ${table} limit ${maxOptions}) as options_${index}`,
    )
  })
  const recent = join(
    [
      wrap(
        `with recent_sums as materialized (select ${columnsIn(true)} from tollgate_usage_days where `,
        sumsWithin(bucketStart(from, dayMs), to),
        ` order by start desc limit ${maxSums}), `,
      ),
      wrap(
        `recent_requests as materialized (select ${columnsIn(false)} from tollgate_requests where `,
        all(timeCondition({ from, to })),
        ` order by completed_at desc limit ${maxRequests}) `,
      ),
    ],
    '',
  )
  const rows = await use((select) => select(join([recent, join(statements, ' union all ')], '')))
  const options = Object.fromEntries(optionFields.map((field) => [field, [] as string[]]))
  for (const [index, value] of rows) {
    const field = optionFields[Number(index)]
    if (field !== undefined && value !== '' && value !== null) options[field]?.push(String(value))
  }
  for (const values of Object.values(options)) values.sort()
  return options as Record<OptionField, string[]>
}

function columnOf(field: OptionField): string {
  return dimensionColumn(field) ?? filterFields[field].column
}

function columnsIn(sums: boolean): string {
  const fields = optionFields.filter((field) => (dimensionColumn(field) !== undefined) === sums)
  return fields.map(columnOf).join(', ')
}
