import { decodeRequest, requestColumnList, type StoredRequest } from '../../store/columns.ts'
import type { QueryDatabase, Select } from '../database/database.ts'
import { list, sql, wrap } from '../database/sql.ts'
import type { LedgerFilter, Position } from './filter.ts'
import { planScan, readPage } from './scan.ts'

export type SearchQuery = {
  readonly filter: LedgerFilter
  /** Continues after a position. */
  readonly after: Position | undefined
  readonly limit: number
}

/**
 * Requests, newest first. `next` continues the search, also if the page has fewer requests than its limit;
 * undefined at the end.
 */
export type SearchPage = {
  readonly requests: readonly StoredRequest[]
  readonly next: Position | undefined
}

export type PositionPage = {
  readonly positions: readonly Position[]
  readonly next: Position | undefined
}

/** A request with its explanation and its payload. */
export type RequestDetails = StoredRequest & {
  readonly explanation: string | undefined
  readonly payload:
    | { readonly request: string | undefined; readonly response: string | undefined }
    | undefined
}

/** Finds requests, newest first. Reads a bounded number of rows. */
export async function search({ dialect, use }: QueryDatabase, query: SearchQuery): Promise<SearchPage> {
  const { filter, after, limit } = query
  return await use(async (select) => {
    const scan = await planScan(select, { filter, after, order: 'newest', columns: [], dialect })
    const { positions, next } = await readPage(select, scan, limit)
    return { requests: await readRequests(select, positions), next }
  })
}

/** Finds the positions of requests, newest first. Cheaper than `search`. */
export async function findPositions(
  { dialect, use }: QueryDatabase,
  { filter, after, limit }: SearchQuery,
): Promise<PositionPage> {
  return await use(async (select) => {
    const scan = await planScan(select, { filter, after, order: 'newest', columns: [], dialect })
    return await readPage(select, scan, limit)
  })
}

/** Reads one request; undefined if it does not exist, or not any more. */
export async function readRequest({ use }: QueryDatabase, id: string): Promise<RequestDetails | undefined> {
  return await use(async (select) => {
    const [request] = await readRequests(select, [{ completedAt: 0, id }])
    if (request === undefined) return undefined
    const details = sql(
      'select explanation, request, response from tollgate_request_details where id = ?',
      id,
    )
    const [[explanation, prompt, response] = []] = await select(details)
    const payload = { request: textOf(prompt), response: textOf(response) }
    return {
      ...request,
      explanation: textOf(explanation),
      payload: payload.request === undefined && payload.response === undefined ? undefined : payload,
    }
  })
}

/** Reads requests by position, in this order. Requests that were deleted meanwhile are missing. */
export async function readRequests(select: Select, positions: readonly Position[]): Promise<StoredRequest[]> {
  if (positions.length === 0) return []
  const ids = list(positions.map(({ id }) => id))
  const rows = await select(
    wrap(`select ${requestColumnList} from tollgate_requests where id in (`, ids, ')'),
  )
  const byId = new Map(rows.map((row) => decodeRequest(row)).map((request) => [request.entry.id, request]))
  return positions.flatMap(({ id }) => byId.get(id) ?? [])
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}
