import { requestColumns } from '../columns.ts'
import { addToUsage, raiseLastUse } from '../upserts.ts'
import { dimensionColumns, realColumns, usageColumns } from '../usage-columns.ts'

// Rows are parameters of one array for each column. Rows of each statement are sorted by key, so that
// transactions lock common rows in one order.

const types = { text: 'text', integer: 'bigint', real: 'double precision' }

const requestNames = requestColumns.map(({ name }) => name)
const requestTypes = requestColumns.map(({ type }) => types[type])

export const insertRequests = `${insertOf('tollgate_requests', requestNames, requestTypes)}
  on conflict (id) do nothing`

const detailNames = ['id', 'completed_at', 'explanation', 'request', 'response']

export const insertDetails = `
  ${insertOf('tollgate_request_details', detailNames, ['text', 'bigint', 'text', 'text', 'text'])}
  on conflict (id) do nothing`

/** Returns the requests that were not settled before. Waits for other transactions that settle them. */
export const insertSettlements = `
  insert into tollgate_settlements (request_id, at)
  select given.id, given.at from unnest($1::text[], $2::bigint[]) as given (id, at)
  on conflict (request_id) do nothing returning request_id`

export const addToHours = addTo('tollgate_usage_hours')
export const addToDays = addTo('tollgate_usage_days')

export const writeKeysUsed = `
  ${insertOf('tollgate_keys_used as stored', ['key_id', 'last_used_at'], ['text', 'bigint'])} ${raiseLastUse}`

/**
 * `changed` is the number of the transaction: a snapshot contains every transaction below its `xmin`, while
 * numbers of a sequence become visible out of order.
 */
export const addToBudgets = `
  insert into tollgate_budgets as stored (id, budget, value, window_start, window_end, used, changed)
  select given.*, txid_current()
  from unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::numeric[])
    as given (id, budget, value, window_start, window_end, used)
  on conflict (id) do update set used = stored.used + excluded.used,
    window_end = greatest(stored.window_end, excluded.window_end), changed = excluded.changed
  returning budget, value, window_start, window_end, used::text`

/**
 * Returns nothing if the last committed number is not below $4, the first of the batch. Waits for the
 * transaction of an earlier attempt.
 */
export const writeNumber = `
  insert into tollgate_ledger_sources as stored (source, number, at) values ($1, $2, $3)
  on conflict (source) do update set number = excluded.number, at = excluded.at
  where stored.number < $4
  returning number`

export const readNumber = 'select number from tollgate_ledger_sources where source = $1'

function addTo(table: string): string {
  const typesOfUsage = usageColumns.map((name) => {
    if (realColumns.has(name)) return types.real
    const isText = name === 'id' || (name !== 'status' && dimensionColumns.some((column) => column === name))
    return isText ? types.text : types.integer
  })
  return `${insertOf(`${table} as stored`, usageColumns, typesOfUsage)} ${addToUsage}`
}

function insertOf(table: string, columns: readonly string[], columnTypes: readonly string[]): string {
  const arrays = columnTypes.map((type, index) => `$${index + 1}::${type}[]`).join(', ')
  return `insert into ${table} (${columns.join(', ')}) select * from unnest(${arrays})`
}
