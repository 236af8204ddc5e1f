import type { Query } from '../../../database/postgres/client.ts'
import type { BudgetTotal } from '../store.ts'

/**
 * Reads windows that end after `now` and changed in or after the transaction `since`: all of them if it is
 * undefined, or of another server. A snapshot contains every transaction below its `xmin`, so that this is
 * the next `since`; numbers of a sequence would become visible out of order. One round trip.
 */
export async function readTotals(
  query: Query,
  since: number | undefined,
  now: number,
): Promise<{ totals: BudgetTotal[]; since: number }> {
  const answers = await query.all(`begin isolation level read committed read only;
    set local statement_timeout = '10s';
    with snapshot as materialized (select txid_snapshot_xmin(txid_current_snapshot()) as xmin)
    select budget, value, window_start, window_end, used::text, snapshot.xmin
    from snapshot left join tollgate_budgets on window_end > ${Math.trunc(now)}
      and changed >= case when ${Math.trunc(since ?? 0)} <= snapshot.xmin then ${Math.trunc(since ?? 0)} else 0 end;
    commit`)
  const rows = answers.at(-2) ?? []
  return {
    totals: rows.filter(([budget]) => budget !== null).map(decodeTotal),
    since: Number(rows[0]?.[5]),
  }
}

export function decodeTotal(row: readonly unknown[]): BudgetTotal {
  const [budget, value, windowStart, windowEnd, used] = row
  return {
    budget: String(budget),
    value: String(value),
    windowStart: Number(windowStart),
    windowEnd: Number(windowEnd),
    used: BigInt(String(used)),
  }
}
