import { hash } from 'node:crypto'
import {
  createKeyedTable,
  findRecord,
  float64Cells,
  generationOf,
  highestRecord,
  insertRecord,
  keyOf,
  lockKey,
  lockRecord,
  lockShared,
  lockUsed,
  recordCount,
  removeRecord,
  sharedCells,
  stageKey,
  unlock as unlockTable,
  walk,
} from '../../lib/planes/keyed-table.ts'
import type { Memory } from '../../lib/planes/memory.ts'
import type { KeyedTable } from '../../lib/planes/table-memory.ts'
import {
  type Bucket,
  type ConfiguredRate,
  consume,
  createBucket,
  isFull,
  type Rate,
  refillBucket,
  returnUnit,
} from './bucket.ts'
import type { BucketReference, Buckets } from './buckets.ts'
import { type Leases, leasedCells } from './leases/leases.ts'

/** Buckets of a limit by key value, for up to `maxKeys` values. */
export type KeyedBuckets = Buckets & { readonly size: number }

/**
 * Buckets inspected per new value. More than one, so that idle buckets are evicted faster than new ones are
 * added.
 */
const stepsPerInsert = 2
/** Buckets inspected per new value at capacity. */
const stepsWhenFull = 32
const longestPlainKey = 64

// Positions below 0 are the shared buckets, in the shared cells of the table.
const withoutValue = -1
const overflow = -2
const sharedPositions = [withoutValue, overflow]

// Cells of a record, and of a shared bucket.
const usedCell = 0
const refilledCell = 1
/** 1 as soon as a shared bucket is in use. */
const startedCell = 2
// Shared cells: bucket of requests without a value, overflow bucket, rate in force (4).
const rateSize = 4
/** Cells of a record, and of a shared bucket. Buckets with leases have more (`leases/leases.ts`). */
const plainLayout = { record: 2, shared: 3 }
const leasedLayout = { record: leasedCells, shared: leasedCells }
const shape = { keyBytes: longestPlainKey, int32Cells: 0 }

const sharedReferences: Record<number, BucketReference> = {
  [withoutValue]: { position: withoutValue, generation: 0, key: undefined },
  [overflow]: { position: overflow, generation: 0, key: undefined },
}

type State = {
  readonly table: KeyedTable
  readonly layout: typeof plainLayout
  /** Undefined for a limit of this process. */
  readonly leases: Leases | undefined
  /** Copy of the locked bucket. */
  readonly bucket: Bucket
  /** Rate in force, or a copy. */
  rate: Rate
  /** Value of the selected bucket. */
  key: string | undefined
  position: number
  generation: number
  /** Index of the locked bucket's cells. */
  cell: number
  isNew: boolean
  hadNoRoom: boolean
}

/**
 * Creates buckets with incremental eviction: each new value evicts a few full buckets, without a timer or a
 * full scan. If no inspected bucket is full at capacity, new values share one overflow bucket, so that a
 * client gains nothing from invented values.
 */
export function createKeyedBuckets(
  memory: Memory,
  name: string,
  maxKeys: number,
  leases?: Leases,
): KeyedBuckets {
  const layout = leases === undefined ? plainLayout : leasedLayout
  const sizes = { float64Cells: layout.record, sharedCells: 2 * layout.shared + rateSize }
  const table = createKeyedTable(memory, name, { ...shape, ...sizes, maxRecords: maxKeys })
  leases?.bind(table)
  const bucket = createBucket(0)
  const fields = { key: undefined, position: 0, generation: 0, cell: 0, isNew: false, hadNoRoom: false }
  const rate = { capacity: 0, refill: 0, intervalMs: 0 }
  const state: State = { table, layout, leases, bucket, rate, ...fields }
  return {
    bucket,
    select(key, configured) {
      select(state, key)
      activateRate(state, configured)
    },
    lock: (_, nowMs) => lockSelected(state, nowMs),
    makeRoom: (nowMs) => makeRoom(state, nowMs),
    unlock: () => unlock(state),
    settle: (nowMs) => settle(state, nowMs),
    reference() {
      const { position, generation, key } = state
      return sharedReferences[position] ?? { position, generation, key }
    },
    charge(reference, amount, nowMs) {
      readRate(state)
      state.isNew = false
      if (!lockReference(state, reference, nowMs)) lockSuccessor(state, reference, nowMs)
      refill(state, nowMs)
      consume(bucket, state.rate, amount)
      unlock(state)
      settle(state, nowMs)
    },
    giveBack(reference, takenAtMs) {
      // An evicted bucket was full.
      if (!lockReference(state, reference, takenAtMs)) return
      returnUnit(bucket, takenAtMs)
      unlock(state)
    },
    ...(leases && { sharing: leases.status }),
    get size() {
      return recordCount(table)
    },
    *positions() {
      yield* sharedPositions
      for (let record = 1; record <= highestRecord(table); record++) yield record
    },
    read: (position) => read(state, position),
    valueOf(position) {
      if (position < 0 || !lockUsed(table, position)) return undefined
      const value = keyOf(table, position)
      unlockTable(table)
      return value
    },
  }
}

function select(state: State, key: string | undefined): void {
  state.key = key
  state.hadNoRoom = false
  state.isNew = false
  if (key !== undefined) stageValue(state.table, key)
}

function lockSelected(state: State, nowMs: number): boolean {
  if (state.key === undefined) lockSharedBucket(state, withoutValue, nowMs)
  else if (!lockOwn(state, nowMs)) return false
  refill(state, nowMs)
  return true
}

/** Locks the bucket of the staged value, creates it if there is room, and loads it. */
function lockOwn(state: State, nowMs: number): boolean {
  const { table } = state
  lockKey(table)
  let record = findRecord(table)
  if (record === 0) {
    record = insertRecord(table)
    if (record === 0) {
      unlockTable(table)
      if (state.hadNoRoom) lockSharedBucket(state, overflow, nowMs)
      return state.hadNoRoom
    }
    state.isNew = true
    table.float64[float64Cells(table, record) + refilledCell] = nowMs
  }
  loadRecord(state, record)
  return true
}

function lockSharedBucket(state: State, position: number, nowMs: number): void {
  const { table } = state
  lockShared(table)
  const cell = sharedCell(state, position)
  if (table.float64[cell + startedCell] === 0) {
    table.float64[cell + refilledCell] = nowMs
    table.float64[cell + startedCell] = 1
  }
  state.position = position
  load(state, cell)
}

/** Locks the bucket of a reference, if it was not evicted, and loads it. */
function lockReference(state: State, { position, generation }: BucketReference, nowMs: number): boolean {
  if (position < 0) lockSharedBucket(state, position, nowMs)
  else if (!lockRecord(state.table, position, generation)) return false
  else loadRecord(state, position)
  return true
}

function lockSuccessor(state: State, { key }: BucketReference, nowMs: number): void {
  select(state, key)
  if (lockSelected(state, nowMs)) return
  makeRoom(state, nowMs)
  lockSelected(state, nowMs)
}

function makeRoom(state: State, nowMs: number): void {
  evictFull(state, { steps: stepsWhenFull, except: 0, nowMs })
  state.hadNoRoom = true
}

function settle(state: State, nowMs: number): void {
  if (!state.isNew) return
  state.isNew = false
  evictFull(state, { steps: stepsPerInsert, except: state.position, nowMs })
}

function loadRecord(state: State, record: number): void {
  state.position = record
  state.generation = generationOf(state.table, record)
  load(state, float64Cells(state.table, record))
}

function load(state: State, cell: number): void {
  const { float64 } = state.table
  state.cell = cell
  state.bucket.used = float64[cell + usedCell] ?? 0
  state.bucket.refilledAt = float64[cell + refilledCell] ?? 0
  state.leases?.load(state.bucket, cell)
}

/** Index of the cells of a shared bucket. */
function sharedCell({ layout }: State, position: number): number {
  return sharedCells - (position + 1) * layout.shared
}

/** Applies due refills to the locked bucket. */
function refill({ leases, bucket, rate }: State, nowMs: number): void {
  if (leases === undefined) refillBucket(bucket, rate, nowMs)
  else leases.refill(bucket, rate, nowMs)
}

function unlock({ table, leases, bucket, cell, position }: State): void {
  leases?.store(bucket, cell, position)
  // A data plane that fails between the two must not refill twice.
  table.float64[cell + refilledCell] = bucket.refilledAt
  table.float64[cell + usedCell] = bucket.used
  unlockTable(table)
}

type Eviction = { steps: number; except: number; nowMs: number }

function evictFull({ table, rate, leases }: State, { steps, except, nowMs }: Eviction): void {
  const bucket = createBucket(0)
  for (let step = 0; step < steps; step++) {
    const record = walk(table)
    if (record === 0) continue
    const cell = float64Cells(table, record)
    bucket.used = table.float64[cell + usedCell] ?? 0
    bucket.refilledAt = table.float64[cell + refilledCell] ?? 0
    const isUnreported = leases?.isUnreported(cell) === true
    if (record !== except && !isUnreported && isFull(bucket, rate, nowMs)) removeRecord(table, record)
    unlockTable(table)
  }
}

function read(state: State, position: number): Bucket | undefined {
  const { table } = state
  if (position < 0) lockShared(table)
  else if (!lockUsed(table, position)) return undefined
  const cell = position < 0 ? sharedCell(state, position) : float64Cells(table, position)
  const { float64 } = table
  const isUsed = position > 0 || float64[cell + startedCell] === 1
  const bucket = { used: float64[cell + usedCell] ?? 0, refilledAt: float64[cell + refilledCell] ?? 0 }
  unlockTable(table)
  return isUsed ? bucket : undefined
}

/**
 * Activates a rate, unless it is older than the one in force: data planes activate a configuration one after
 * another. Later charges are at the rate in force: the smaller capacity of an older one would cap the usage.
 */
function activateRate(state: State, configured: ConfiguredRate): void {
  const { table } = state
  const rateCells = rateCell(state)
  state.rate = configured
  if (isInForce(state, configured)) return
  lockShared(table)
  const { float64 } = table
  if (configured.sinceMs >= (float64[rateCells + 3] ?? 0)) {
    float64[rateCells] = configured.capacity
    float64[rateCells + 1] = configured.refill
    float64[rateCells + 2] = configured.intervalMs
    float64[rateCells + 3] = configured.sinceMs
  } else state.rate = rateIn(state)
  unlockTable(table)
}

function readRate(state: State): void {
  const { table } = state
  // Values that another data plane is just replacing differ from those read under the lock before.
  if (isInForce(state, state.rate)) return
  lockShared(table)
  state.rate = rateIn(state)
  unlockTable(table)
}

function isInForce(state: State, { capacity, refill, intervalMs }: Rate): boolean {
  const { float64 } = state.table
  const rateCells = rateCell(state)
  return (
    float64[rateCells] === capacity &&
    float64[rateCells + 1] === refill &&
    float64[rateCells + 2] === intervalMs
  )
}

function rateCell({ layout }: State): number {
  return sharedCells + 2 * layout.shared
}

function rateIn(state: State): Rate {
  const rateCells = rateCell(state)
  const [capacity = 0, refill = 0, intervalMs = 0] = state.table.float64.subarray(rateCells, rateCells + 3)
  return { capacity, refill, intervalMs }
}

const hashMark = 'sha256:'

/**
 * Stages a value with a bound on its length. Values that look like a hash are hashed, to avoid collisions;
 * values that are not Unicode have hashes of their own, because UTF-8 cannot represent them.
 */
function stageValue(table: KeyedTable, value: string): void {
  if (!value.startsWith(hashMark) && stageKey(table, value)) return
  const isText = value.isWellFormed()
  const bytes = Buffer.from(value, isText ? 'utf8' : 'utf16le')
  stageKey(table, `${hashMark}${isText ? '' : 'utf16:'}${hash('sha256', bytes, 'base64')}`)
}
