/** Use of one bucket by a process since its last report, and the rate of its limit. */
export type LeaseReport = {
  /** Hash of the identity of the limit. */
  readonly limit: string
  /** Hash of the key value. */
  readonly key: string
  readonly counts: 'requests' | 'tokens'
  readonly capacity: number
  readonly refill: number
  readonly intervalMs: number
  /** Units; negative if more were returned than consumed. */
  readonly spent: number
  /** Units of the current lease that the process may consume before the reply. */
  readonly kept: number
  /** The process counted without the database, up to the whole limit. */
  readonly wasAway: boolean
}

/** State of a bucket after a report, and the lease of the process. */
export type LeaseReply = {
  /** Units used by all processes. Exceeds the capacity by units consumed without a lease. */
  readonly used: number
  /** Time since the last refill. */
  readonly sinceRefillMs: number
  /** Units that the process may consume until `leaseMs` after its report. */
  readonly lease: number
}

export type LeaseReplies = {
  /** In the order of the reports. */
  readonly replies: readonly LeaseReply[]
  /** Number of processes that use the database, this one included. */
  readonly processes: number
}

/** Sends reports to the database. Rejects if it is not available: the reports then count as not sent. */
export type ExchangeLeases = (reports: readonly LeaseReport[]) => Promise<LeaseReplies>

/** Validity of a lease. */
export const leaseMs = 1_000
