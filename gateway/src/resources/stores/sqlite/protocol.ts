import type {
  CommittedRows,
  HistoryRows,
  RewrittenRow,
  RowChanges,
  RowKey,
  StoredRow,
} from '../row-driver.ts'
import type { HistoryQuery } from '../store.ts'

/** `workerData` of the thread. */
export type SqliteThreadSettings = { readonly path: string; readonly pollMs: number }

/** Transactions with rows to read: a snapshot for readers, or the write transaction. */
export type SqliteTransaction = 'read' | 'write'

export type SqliteRequest =
  | { op: 'read'; since: number | undefined }
  | { op: 'begin'; since: number | undefined; waitMs: number }
  /** The next page of the rows that `read` or `begin` selected. */
  | { op: 'page'; transaction: SqliteTransaction }
  | { op: 'commit'; changes: RowChanges }
  | { op: 'rollback' }
  | { op: 'history'; query: HistoryQuery }
  | { op: 'rewrite'; rows: readonly RewrittenRow[]; waitMs: number }
  | { op: 'watch' }
  | { op: 'close' }

export type SqliteHead = { generation: number; complete: boolean; removed: RowKey[] }
export type SqlitePage = { rows: StoredRow[]; isLast: boolean }
export type SqliteValue = SqliteHead | SqlitePage | CommittedRows | HistoryRows | undefined

/** Responses, by the id of their request, and events of the thread. */
export type SqliteMessage =
  | { kind: 'done'; id: number; value: SqliteValue }
  | { kind: 'failed'; id: number; message: string }
  | { kind: 'generation'; generation: number }
  | { kind: 'unavailable'; message: string }
  | { kind: 'replaced' }
