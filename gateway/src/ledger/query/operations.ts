import type { StoredRequest } from '../store/columns.ts'
import type { QueryDatabase } from './database/database.ts'
import type { ExportPage, ExportPosition, ExportQuery } from './export/contents.ts'
import { exportPage } from './export/export.ts'
import { readKeysUsed } from './keys-used.ts'
import type { Position } from './search/filter.ts'
import {
  findPositions,
  type PositionPage,
  type RequestDetails,
  readRequest,
  readRequests,
  type SearchPage,
  type SearchQuery,
  search,
} from './search/search.ts'
import { type OptionField, readOptions } from './summary/options.ts'
import { type Summary, type SummaryQuery, summarize } from './summary/summary.ts'

/** Queries of the ledger. Plain data, for a thread. */
export type LedgerOperations = {
  /** Finds requests, newest first. */
  search(query: SearchQuery): Promise<SearchPage>
  /** Finds the positions of requests, newest first: cheaper than `search`. */
  findPositions(query: SearchQuery): Promise<PositionPage>
  /** Reads requests by position, in this order. Those that were deleted meanwhile are missing. */
  readRequests(positions: readonly Position[]): Promise<readonly StoredRequest[]>
  /** Reads one request by id; undefined if it does not exist, or not any more. */
  readRequest(id: string): Promise<RequestDetails | undefined>
  /** Sums up requests by time and by the values of at most two fields. */
  summarize(query: SummaryQuery): Promise<Summary>
  /** Recent values of fields, for filters. */
  readOptions(range: {
    readonly from: number
    readonly to: number
  }): Promise<Readonly<Record<OptionField, readonly string[]>>>
  /** Reads the next lines of a CSV file. */
  exportPage(page: {
    readonly query: ExportQuery
    readonly position: ExportPosition | undefined
  }): Promise<ExportPage>
  /** Times of the last request of keys by id, in milliseconds since the epoch. Unused keys are absent. */
  readKeysUsed(ids: readonly string[]): Promise<ReadonlyMap<string, number>>
}

/** The queries on a database. */
export function createOperations(database: QueryDatabase): LedgerOperations {
  return {
    search: (query) => search(database, query),
    findPositions: (query) => findPositions(database, query),
    readRequests: (positions) => database.use((select) => readRequests(select, positions)),
    readRequest: (id) => readRequest(database, id),
    summarize: (query) => summarize(database, query),
    readOptions: ({ from, to }) => readOptions(database, from, to),
    exportPage: ({ query, position }) => exportPage(database, query, position),
    readKeysUsed: (ids) => readKeysUsed(database, ids),
  }
}
