import {
  createKeyedTable,
  findRecord,
  float64Cells,
  highestRecord,
  insertRecord,
  isBound,
  keyOf,
  lockKey,
  lockUsed,
  removeRecord,
  stageKey,
  unlock as unlockTable,
  walk,
} from '../../../lib/planes/keyed-table.ts'
import type { Memory } from '../../../lib/planes/memory.ts'
import type { KeyedTable } from '../../../lib/planes/table-memory.ts'
import { type KeyLimit, longestBucketName } from '../../../pipeline/keys/key-limits.ts'
import { type Bucket, consume, isEqual, isFull, type Rate, refillBucket, returnUnit } from '../bucket.ts'

/** Buckets of the limits of virtual keys, in memory of all data planes, by `KeyLimit.bucket`. */
export type KeyBuckets = {
  /** Copy of the bucket of the last call, refilled. */
  readonly bucket: Bucket
  /** Refills the bucket of a limit, and takes units of it if any remain. Returns whether any remain. */
  take(limit: KeyLimit, units: number, nowMs: number): boolean
  /** Charges units beyond the allowance, too. */
  charge(limit: KeyLimit, units: number, nowMs: number): void
  /** Returns one unit taken at `takenAtMs`. */
  giveBack(limit: KeyLimit, takenAtMs: number): void
  /** Copies of all buckets with their names and rates. */
  all(): Iterable<{ readonly name: string; readonly bucket: Bucket; readonly rate: Rate } | undefined>
}

/** Buckets with used units. Full buckets are removed, so that this is no limit on keys. */
const maxBuckets = 1_000_000
const stepsPerInsert = 2
const stepsWhenFull = 64

// Cells of a record. Each has its rate, because keys differ in their amounts.
const usedCell = 0
const refilledCell = 1
const capacityCell = 2
const refillCell = 3
const intervalCell = 4
const shape = {
  keyBytes: longestBucketName,
  int32Cells: 0,
  float64Cells: 5,
  sharedCells: 0,
  maxRecords: maxBuckets,
}

type State = { readonly table: KeyedTable; readonly bucket: Bucket; cell: number }

export function createKeyBuckets(memory: Memory): KeyBuckets {
  const table = createKeyedTable(memory, 'key limits', shape)
  const bucket = { used: 0, refilledAt: 0 }
  const state: State = { table, bucket, cell: 0 }
  return {
    bucket,
    take(limit, units, nowMs) {
      if (!lock(state, limit, nowMs)) return false
      const isAvailable = bucket.used < limit.capacity
      if (isAvailable) consume(bucket, limit, units)
      unlock(state)
      return isAvailable
    },
    charge(limit, units, nowMs) {
      if (!lock(state, limit, nowMs)) return
      consume(bucket, limit, units)
      unlock(state)
    },
    giveBack(limit, takenAtMs) {
      stageKey(table, limit.bucket)
      lockKey(table)
      const record = findRecord(table)
      if (record === 0) return unlockTable(table)
      load(state, record)
      returnUnit(bucket, takenAtMs)
      unlock(state)
    },
    *all() {
      // Without a configuration with virtual keys.
      if (!isBound(table)) return
      for (let record = 1; record <= highestRecord(table); record++) yield read(table, record)
    },
  }
}

/** Locks and loads the bucket of a limit, created if there is room. False without a lock if there is none. */
function lock(state: State, limit: KeyLimit, nowMs: number): boolean {
  const { table } = state
  stageKey(table, limit.bucket)
  lockKey(table)
  let record = findRecord(table)
  if (record === 0) {
    unlockTable(table)
    evictFull(table, stepsPerInsert, nowMs)
    record = lockNew(table)
  }
  if (record === 0) {
    unlockTable(table)
    evictFull(table, stepsWhenFull, nowMs)
    record = lockNew(table)
  }
  if (record === 0) {
    unlockTable(table)
    return false
  }
  load(state, record)
  adopt(state, limit, nowMs)
  return true
}

/** Locks the record of the staged key, created if there is none; 0 if there is no room. */
function lockNew(table: KeyedTable): number {
  lockKey(table)
  const record = findRecord(table)
  return record === 0 ? insertRecord(table) : record
}

/** Refills the loaded bucket at its own rate, then applies the configured rate. */
function adopt({ table, bucket, cell }: State, limit: KeyLimit, nowMs: number): void {
  const { float64 } = table
  const rate = rateAt(float64, cell)
  if (rate.intervalMs === 0) {
    bucket.used = 0
    bucket.refilledAt = nowMs
  } else {
    refillBucket(bucket, rate, nowMs)
  }
  if (isEqual(rate, limit)) return
  float64[cell + capacityCell] = limit.capacity
  float64[cell + refillCell] = limit.refill
  float64[cell + intervalCell] = limit.intervalMs
  refillBucket(bucket, limit, nowMs)
}

function rateAt(float64: Float64Array, cell: number): Rate {
  return {
    capacity: float64[cell + capacityCell] ?? 0,
    refill: float64[cell + refillCell] ?? 0,
    intervalMs: float64[cell + intervalCell] ?? 0,
  }
}

function load(state: State, record: number): void {
  const { float64 } = state.table
  state.cell = float64Cells(state.table, record)
  state.bucket.used = float64[state.cell + usedCell] ?? 0
  state.bucket.refilledAt = float64[state.cell + refilledCell] ?? 0
}

function unlock({ table, bucket, cell }: State): void {
  // A data plane that fails between the two must not refill twice.
  table.float64[cell + refilledCell] = bucket.refilledAt
  table.float64[cell + usedCell] = bucket.used
  unlockTable(table)
}

function evictFull(table: KeyedTable, steps: number, nowMs: number): void {
  for (let step = 0; step < steps; step++) {
    const record = walk(table)
    if (record === 0) continue
    const cell = float64Cells(table, record)
    const { float64 } = table
    const bucket = { used: float64[cell + usedCell] ?? 0, refilledAt: float64[cell + refilledCell] ?? 0 }
    if (isFull(bucket, rateAt(float64, cell), nowMs)) removeRecord(table, record)
    unlockTable(table)
  }
}

function read(table: KeyedTable, record: number) {
  if (!lockUsed(table, record)) return undefined
  const cell = float64Cells(table, record)
  const { float64 } = table
  const bucket = { used: float64[cell + usedCell] ?? 0, refilledAt: float64[cell + refilledCell] ?? 0 }
  const read = { name: keyOf(table, record), bucket, rate: rateAt(float64, cell) }
  unlockTable(table)
  return read
}
