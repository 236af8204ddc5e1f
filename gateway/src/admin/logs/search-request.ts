import type { SearchQuery } from '../../ledger/query/search/search.ts'
import type { JsonObject } from '../../lib/json/json.ts'
import { readCursor } from './cursor.ts'
import { readFilters } from './filters.ts'
import { checkMembers, invalid, readBoolean, readInteger, readObject, readTime } from './read-value.ts'

const defaultLimit = 100
const maxLimit = 500

export type SearchRequest = { readonly query: SearchQuery; readonly includeAttributes: boolean }

/** Reads the body of `/api/logs/search` and `/api/logs/tail`. Throws `InvalidRequest`. */
export function readSearchRequest(body: JsonObject): SearchRequest {
  checkMembers(body, '', ['limit', 'cursor', 'timeRange', 'filters', 'includeAttributes'])
  const filter = { ...readTimeRange(body), ...readFilters(body['filters']) }
  return {
    query: {
      filter,
      after: readCursor(body['cursor']),
      limit: readInteger(body['limit'], 'limit', { min: 1, max: maxLimit }) ?? defaultLimit,
    },
    includeAttributes: readBoolean(body['includeAttributes'], 'includeAttributes'),
  }
}

export function readTimeRange(body: JsonObject): { from: number | undefined; to: number | undefined } {
  const range = readObject(body['timeRange'], 'timeRange', ['from', 'to'])
  const from = readTime(range['from'], 'timeRange.from')
  const to = readTime(range['to'], 'timeRange.to')
  if (from !== undefined && to !== undefined && from >= to)
    throw invalid('timeRange.from', 'must be before timeRange.to')
  return { from, to }
}
