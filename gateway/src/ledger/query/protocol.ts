import type { LedgerOperations } from './operations.ts'

/** `workerData` of the thread. */
export type QuerySettings = {
  /** Contains a password; not for logs. */
  readonly url: string
  readonly kind: 'sqlite' | 'postgres'
  /** Connections to Postgres, and queries at the same time. */
  readonly connections: number
}

export type QueryOperation = keyof LedgerOperations

export type QueryRequest = {
  readonly id: number
  readonly operation: QueryOperation
  readonly input: unknown
}

/** Responses, by the id of their request. */
export type QueryMessage =
  | { readonly kind: 'done'; readonly id: number; readonly value: unknown }
  | {
      readonly kind: 'failed'
      readonly id: number
      readonly reason: 'late' | 'unavailable'
      readonly message: string
    }
