import { countColumns } from './usage-columns.ts'

// Parts of statements that both databases execute.

/** Ends an insert into a table of sums, called `stored`: adds to the row with the same dimensions. */
export const addToUsage = `on conflict (start, id) do update set ${countColumns.map(additionOf).join(', ')}`

/** Ends an insert into `tollgate_keys_used`, called `stored`. */
export const raiseLastUse =
  'on conflict (key_id) do update set last_used_at = excluded.last_used_at where stored.last_used_at < excluded.last_used_at'

/** The sum of picodollars stays below a microdollar. */
function additionOf(column: string): string {
  const sum = `stored.${column} + excluded.${column}`
  if (column === 'cost_picodollars') return `${column} = (${sum}) % 1000000`
  if (column !== 'cost_microdollars') return `${column} = ${sum}`
  return `${column} = ${sum} + (stored.cost_picodollars + excluded.cost_picodollars) / 1000000`
}
