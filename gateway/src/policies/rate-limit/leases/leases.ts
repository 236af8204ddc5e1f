import { hash } from 'node:crypto'
import {
  float64Cells,
  generationOf,
  keyOf,
  lockRecord,
  lockShared,
  lockUsed,
  sharedCells,
  unlock,
} from '../../../lib/planes/keyed-table.ts'
import { type LeaseReply, leaseMs } from '../../../lib/planes/lease-exchange.ts'
import type { KeyedTable } from '../../../lib/planes/table-memory.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { Bucket, Rate } from '../bucket.ts'
import { createLeaseClient, type LeaseClient, type LeaseSource, type PendingReport } from './lease-client.ts'

/**
 * Leases of the buckets of one limit. `used` of a bucket is the use by all processes as last reported by the
 * database, plus the own use since then; `allowance` is the rest of the lease.
 */
export type Leases = {
  /** Sets the table of the buckets. */
  bind(table: KeyedTable): void
  /** Loads the lease of the locked bucket, at the cells of its record. */
  load(bucket: Bucket, cell: number): void
  /** Applies due refills and the end of the lease to the locked bucket. */
  refill(bucket: Bucket, rate: Rate, nowMs: number): void
  /** Stores the lease of the locked bucket, and requests an exchange if one is due. */
  store(bucket: Bucket, cell: number, position: number): void
  /** Whether units at the cells of a record are not yet in the database. */
  isUnreported(cell: number): boolean
  /** State of the exchange with the database. */
  status(): { readonly processes: number; readonly synchronized: boolean }
}

// Cells of a bucket. The first three are those of a bucket without leases.
const usedCell = 0
const refilledCell = 1
const allowanceCell = 3
/** End of the lease, by the monotonic clock. 0 before the first use; infinite without a lease. */
const untilCell = 4
/** Units consumed since the last report. */
const spentCell = 5
/** Time of the report in progress; 0 if there is none. */
const pendingCell = 6
/** Time of the last report. */
const reportedCell = 7
/** Number of cells of a bucket. */
export const leasedCells = 8

/** Interval of reports while a lease lasts. */
const reportMs = 100
/** Part of a share to consume between the end of a lease and the next one. */
const staleShare = 0.1
/** A data plane that ends does not complete its reports. */
const abandonedMs = 20_000

/** The leases of a limit; `name` identifies it in the database. */
export function leasesOf(name: string, counts: 'requests' | 'tokens', context: CompileContext): Leases {
  const client = context.retained('rate-limit leases', () =>
    createLeaseClient(context.exchangeLeases, context.clock),
  )
  return createLeases(name, counts, client)
}

type State = {
  readonly limit: string
  readonly counts: 'requests' | 'tokens'
  readonly client: LeaseClient
  /** Positions of buckets to report. */
  readonly touched: Set<number>
  table: KeyedTable | undefined
  rate: Rate
  /** Of the locked bucket. */
  allowanceBefore: number
  until: number
  wasAway: boolean
}

/** Creates the leases of a limit at a client. */
export function createLeases(name: string, counts: 'requests' | 'tokens', client: LeaseClient): Leases {
  const state: State = {
    limit: hash('sha256', name, 'base64url'),
    counts,
    client,
    touched: new Set(),
    table: undefined,
    rate: { capacity: 0, refill: 1, intervalMs: 1 },
    allowanceBefore: 0,
    until: 0,
    wasAway: false,
  }
  const source: LeaseSource = {
    collect: (nowMs, most) => collect(state, nowMs, most),
    isPending: () => state.touched.size > 0,
  }
  client.start()
  return {
    bind(table) {
      state.table = table
    },
    load(bucket, cell) {
      const { float64 } = tableOf(state)
      bucket.allowance = float64[cell + allowanceCell] ?? 0
      state.allowanceBefore = bucket.allowance
      state.until = float64[cell + untilCell] ?? 0
    },
    refill: (bucket, rate, nowMs) => refill(state, bucket, rate, nowMs),
    store({ allowance = 0 }, cell, position) {
      const { float64 } = tableOf(state)
      const spent = (float64[cell + spentCell] ?? 0) + state.allowanceBefore - allowance
      float64[cell + allowanceCell] = allowance
      float64[cell + untilCell] = state.until
      float64[cell + spentCell] = spent
      if (spent === 0 && allowance >= 1) return
      state.touched.add(position)
      client.wake(source)
    },
    isUnreported: (cell) => tableOf(state).float64[cell + spentCell] !== 0,
    status: () => ({ processes: client.processes, synchronized: !client.isAway }),
  }
}

function tableOf({ table }: State): KeyedTable {
  if (table === undefined) throw new Error('the leases of a limit are used before its table')
  return table
}

function refill(state: State, bucket: Bucket, rate: Rate, nowMs: number): void {
  state.rate = rate
  const intervals = Math.floor((nowMs - bucket.refilledAt) / rate.intervalMs)
  if (intervals > 0) {
    bucket.refilledAt += intervals * rate.intervalMs
    // Not capped at the capacity: units consumed without a lease are deducted from refills.
    bucket.used = Math.max(0, bucket.used - intervals * rate.refill)
  }
  const { client } = state
  const remaining = Math.max(0, rate.capacity - bucket.used)
  if (client.isAway) {
    state.wasAway = true
    bucket.allowance = remaining
    state.until = 0
  } else if (intervals > 0 || nowMs >= state.until) {
    // Requests do not wait for the database: the first ones consume an equal share without a lease. After the
    // end of a lease the use by others is older, so a part of it has to suffice until the next response.
    const share = remaining / client.processes
    const isStale = intervals <= 0 && state.until > 0
    bucket.allowance = Math.ceil(isStale ? share * staleShare : share)
    state.until = Number.POSITIVE_INFINITY
  } else return
  state.allowanceBefore = bucket.allowance
}

function collect(state: State, nowMs: number, most: number): PendingReport[] {
  const pending: PendingReport[] = []
  for (const position of state.touched) {
    if (pending.length >= most) break
    const outcome = reportOf(state, position, nowMs)
    if (outcome === 'later') continue
    state.touched.delete(position)
    if (outcome !== 'nothing') pending.push(outcome)
  }
  // Each of these reports includes the units that were consumed during an outage.
  if (pending.length > 0 && state.touched.size === 0) state.wasAway = false
  return pending
}

/** Takes the units to report from a bucket. */
function reportOf(state: State, position: number, nowMs: number): PendingReport | 'nothing' | 'later' {
  const table = tableOf(state)
  const cell = lockBucket(table, position)
  if (cell === undefined) return 'nothing'
  const { float64 } = table
  const spent = float64[cell + spentCell] ?? 0
  const allowance = float64[cell + allowanceCell] ?? 0
  const isIdle = spent === 0 && allowance >= 1
  const sentMs = float64[cell + pendingCell] ?? 0
  const isPending = sentMs > 0 && nowMs - sentMs < abandonedMs
  const isDue = spent >= allowance || nowMs - (float64[cell + reportedCell] ?? 0) >= reportMs
  if (isIdle || isPending || !isDue) {
    unlock(table)
    return isIdle ? 'nothing' : 'later'
  }
  // The database distributes the rest among the processes.
  const kept = state.client.processes === 1 ? Math.max(0, allowance) : Math.ceil(Math.max(0, allowance) / 2)
  float64[cell + allowanceCell] = Math.min(allowance, kept)
  float64[cell + spentCell] = 0
  float64[cell + pendingCell] = nowMs
  float64[cell + reportedCell] = nowMs
  const key = databaseKey(table, position)
  const generation = position < 0 ? 0 : generationOf(table, position)
  unlock(table)
  const { limit, counts, rate, wasAway } = state
  const { capacity, refill, intervalMs } = rate
  return {
    report: { limit, key, counts, capacity, refill, intervalMs, spent, kept, wasAway },
    apply: (reply, at) => applyReply(state, { position, generation }, reply, at),
    restore: () => restore(state, { position, generation }, spent),
  }
}

type Place = { readonly position: number; readonly generation: number }

function applyReply(
  state: State,
  place: Place,
  { used, sinceRefillMs, lease }: LeaseReply,
  sentMs: number,
): void {
  const table = tableOf(state)
  const cell = lockAgain(table, place)
  if (cell === undefined) return
  const { float64 } = table
  const spent = float64[cell + spentCell] ?? 0
  float64[cell + usedCell] = Math.max(0, used + spent)
  // Earlier than the response by its duration: units after a refill of the database are never charged before.
  float64[cell + refilledCell] = Math.floor(sentMs - sinceRefillMs)
  float64[cell + allowanceCell] = lease - spent
  float64[cell + untilCell] = sentMs + leaseMs
  float64[cell + pendingCell] = 0
  unlock(table)
  if (spent !== 0) state.touched.add(place.position)
}

function restore(state: State, place: Place, spent: number): void {
  const table = tableOf(state)
  const cell = lockAgain(table, place)
  if (cell === undefined) return
  const { float64 } = table
  float64[cell + spentCell] = (float64[cell + spentCell] ?? 0) + spent
  float64[cell + pendingCell] = 0
  unlock(table)
  state.touched.add(place.position)
}

/** Locks a bucket, and returns the index of its cells; undefined if it was evicted. */
function lockBucket(table: KeyedTable, position: number): number | undefined {
  if (position >= 0) return lockUsed(table, position) ? float64Cells(table, position) : undefined
  lockShared(table)
  return sharedCells - (position + 1) * leasedCells
}

function lockAgain(table: KeyedTable, { position, generation }: Place): number | undefined {
  if (position < 0) return lockBucket(table, position)
  return lockRecord(table, position, generation) ? float64Cells(table, position) : undefined
}

/** Hashed, because a key may be a credential. */
function databaseKey(table: KeyedTable, position: number): string {
  return position < 0 ? String(position) : hash('sha256', keyOf(table, position), 'base64url')
}
