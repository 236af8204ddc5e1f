import type { HistoryRow, HistoryRows } from './row-driver.ts'
import type { HistoryQuery } from './store.ts'

/** Statement of a page of the history. `parameter` returns the placeholder of the n-th value, from 1. */
export function historySql(
  query: HistoryQuery,
  parameter: (position: number) => string,
): { readonly text: string; readonly values: (string | number)[] } {
  const values: (string | number)[] = []
  const conditions = Object.entries(conditionsOf(query)).flatMap(([condition, value]) => {
    if (value === undefined) return []
    values.push(value)
    return [condition.replaceAll('?', parameter(values.length))]
  })
  values.push(query.limit)
  const where = conditions.length === 0 ? '' : ` where ${conditions.join(' and ')}`
  const newest = `select ${columns} from tollgate_history${where} order by number desc limit ${parameter(values.length)}`
  const sized = `select ${columns}, count(*) over () as found, sum(${size}) over (order by number desc) - ${size} as preceding
    from (${newest}) newest`
  const text = `select ${columns}, found from (${sized}) sized where preceding < ${maxPageCharacters} order by number desc`
  return { text, values }
}

/** Characters of values after which a page ends. */
const maxPageCharacters = 1024 * 1024
const size = "(length(coalesce(before, '')) + length(coalesce(after, '')))"

const columns =
  'number, at, revision, kind, id, op, origin, reverts, principal, address, request_id, before, after'

function conditionsOf({ below, id, kind, resourceId, who, from, to }: HistoryQuery) {
  return {
    'number < ?': below,
    'number = ?': id,
    'kind = ?': kind,
    'id = ?': resourceId,
    '(principal = ? or address = ?)': who,
    'at >= ?': from,
    'at < ?': to,
  }
}

/** The rows of a page. */
export function historyRows(found: readonly (readonly unknown[])[], { limit }: HistoryQuery): HistoryRows {
  const rows = found.map(toHistoryRow)
  const selected = Number(found[0]?.at(-1) ?? 0)
  return { rows, isLast: selected < limit && rows.length === selected }
}

function toHistoryRow(row: readonly unknown[]): HistoryRow {
  const [number, at, revision, kind, id, op, origin, reverts, principal, address, requestId, before, after] =
    row
  return [
    Number(number),
    String(at),
    Number(revision),
    String(kind),
    String(id),
    String(op),
    String(origin),
    reverts === null ? null : Number(reverts),
    textOrNull(principal),
    String(address),
    String(requestId),
    textOrNull(before),
    textOrNull(after),
  ]
}

function textOrNull(value: unknown): string | null {
  return value === null || value === undefined ? null : String(value)
}
