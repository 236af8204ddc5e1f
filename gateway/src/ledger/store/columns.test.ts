import { DatabaseSync } from 'node:sqlite'
import { expect, it } from 'vitest'
import { indexedColumns, requestColumnList, requestColumns } from './columns.ts'
import { postgresLedgerMigrations } from './postgres/migrations.ts'
import { sqliteLedgerMigrations } from './sqlite/migrations.ts'
import { usageColumns } from './usage-columns.ts'

const database = new DatabaseSync(':memory:')
for (const step of sqliteLedgerMigrations.steps) database.exec(step)

it.each([
  ['tollgate_requests', requestColumns.map(({ name }) => name)],
  ['tollgate_usage_hours', usageColumns],
  ['tollgate_usage_days', usageColumns],
])('the columns of %s are those of the migrations', (table, columns) => {
  const rows = database.prepare('select name from pragma_table_info(?)').all(table)
  expect(rows.map(({ name }) => String(name)).sort()).toEqual(columns.toSorted())
})

it('both databases have the same columns', () => {
  const namesOf = (steps: readonly string[]) =>
    steps.join('\n').match(/^ {4}\w+ (?=text|integer|real|bigint|smallint|double|numeric)/gm)
  const own = namesOf(sqliteLedgerMigrations.steps)?.filter((name) => !/^ +(one|budget_changes) $/.test(name))
  expect(namesOf(postgresLedgerMigrations.steps)).toEqual(own)
})

it.each(indexedColumns)('a filter on %s reads the newest rows from its index', (column) => {
  const plan = database
    .prepare(
      `explain query plan select ${requestColumnList} from tollgate_requests
       where ${column} = ? and completed_at between ? and ? order by completed_at desc, id desc limit 100`,
    )
    .all()
  expect(plan.map(({ detail }) => detail).join('\n')).toContain(
    `USING INDEX tollgate_requests_${column} (${column}=? AND completed_at>? AND completed_at<?)`,
  )
})
