import { hash } from 'node:crypto'
import {
  createKeyedTable,
  findRecord,
  float64Cells,
  generationOf,
  highestRecord,
  insertRecord,
  int32Cells,
  keyOf,
  lockKey,
  lockRecord,
  lockShared,
  lockUsed,
  recordCount,
  removeRecord,
  sharedCells,
  stageKey,
  unlock,
  walk,
} from './keyed-table.ts'
import type { Memory, Region } from './memory.ts'
import type { KeyedTable, TableShape } from './table-memory.ts'

/** Amounts of one account. */
export type Account = {
  readonly key: string
  /** Settled in this process, and elsewhere. */
  readonly used: number
  /** Reserved in all data planes. */
  readonly reserved: number
  /** Limit of the latest reservation; 0 before the first. */
  readonly limit: number
  /** Milliseconds since the epoch. */
  readonly endsAt: number
}

export type ReservationRequest = {
  readonly limit: number
  readonly amount: number
  /** Reserves above the limit, too. */
  readonly isUnlimited: boolean
  /** Refuses an amount beyond the limit; else only an account that has reached it refuses. */
  readonly mustFit?: boolean | undefined
  /** Amounts whose first use is reported, at most 32. */
  readonly levels: readonly number[]
  /** End of the account, in milliseconds since the epoch; equal for all uses of a key. */
  readonly endsAt: number
  readonly now: number
}

/** `crossed` is a set of bits: the levels that are reached for the first time. */
export type Reservation =
  | {
      readonly kind: 'reserved' | 'refused'
      readonly used: number
      /** Before this reservation. */
      readonly reserved: number
      readonly crossed: number
      readonly reference: AccountReference
    }
  /** There is no room for another account. */
  | { readonly kind: 'full' }

export type AccountReference = { readonly record: number; readonly generation: number }

export type Settlement = {
  /** What `reserve` has reserved. */
  readonly reserved: number
  readonly amount: number
  readonly levels: readonly number[]
}

/** Use elsewhere. `number` orders the reports: older ones are ignored. */
export type UseElsewhere = { readonly amount: number; readonly number: number; readonly endsAt: number }

/** Time of the latest report on use elsewhere; `Clock.monotonic()`. */
export type ReportState =
  | { readonly kind: 'unexpected' }
  | { readonly kind: 'expected' }
  | { readonly kind: 'reported'; readonly at: number }

/**
 * Accounts with a use and reservations, by key, in memory of all data planes. An account lasts until its end;
 * reservations of a data plane that fails are released.
 */
export type KeyedAccounts = {
  /** Reserves an amount, unless the used and reserved amounts have reached the limit. */
  reserve(key: string, request: ReservationRequest): Reservation
  /** Replaces a reservation by the used amount. Returns the levels that are reached for the first time. */
  settle(reference: AccountReference, settlement: Settlement): number
  /** Adds an amount without a reservation, also a negative one. */
  add(key: string, amount: number, times: { readonly endsAt: number; readonly now: number }): void
  /** Sets the use elsewhere. False if there is no room for another account. */
  setElsewhere(key: string, use: UseElsewhere, now: number): boolean
  find(key: string): Account | undefined
  /** Iterates over positions, for `read`. */
  positions(): Iterable<number>
  read(position: number): Account | undefined
  /** Expects reports on use elsewhere from now on. */
  expectReports(): void
  /** Records a report at a time of `Clock.monotonic()`. */
  reported(at: number): void
  reports(): ReportState
  readonly size: number
}

/** Start of the names of regions with accounts. */
export const keyedAccountsPrefix = 'keyed accounts/'

/** Longer keys are hashed. */
const keyBytes = 192
const hashMark = 'sha256:'

// Cells of a record. Reservations follow, one cell per data plane.
const ownCell = 0
const elsewhereCell = 1
const endsAtCell = 2
const limitCell = 3
const numberCell = 4
const firstReserved = 5
/** Reached levels, in `int32`. */
const levelsCell = 0
/** Shared cells: 1 if reports are expected, time of the latest report. */
const expectedCell = sharedCells
const reportedCell = sharedCells + 1

/** Records inspected per new account: more than one, so that ended ones do not accumulate. */
const stepsPerInsert = 2
/** Records inspected at the maximum. */
const stepsWhenFull = 64

type Place = { readonly table: KeyedTable; readonly plane: number; readonly planes: number }

/** Creates or joins accounts, at most `maxAccounts`. */
export function createKeyedAccounts(memory: Memory, name: string, maxAccounts: number): KeyedAccounts {
  const { plane, planes } = memory
  const table = createKeyedTable(memory, keyedAccountsPrefix + name, shapeOf(planes, maxAccounts))
  const place: Place = { table, plane, planes }
  let isStarted = false

  /** Locks the account of a key, created if necessary. Returns its record; 0, unlocked, without room. */
  function open(key: string, endsAt: number, now: number): number {
    start()
    stage(table, key)
    lockKey(table)
    const found = findRecord(table)
    if (found !== 0) return found
    const inserted = insert(table, endsAt)
    unlock(table)
    evictEnded(place, inserted === 0 ? stepsWhenFull : stepsPerInsert, { except: inserted, now })
    lockKey(table)
    const record = findRecord(table) || insert(table, endsAt)
    if (record === 0) unlock(table)
    return record
  }

  /** A replacement of a failed data plane has no reservations. */
  function start(): void {
    if (isStarted) return
    isStarted = true
    clearReserved(table, plane)
  }

  return {
    reserve(key, request) {
      const record = open(key, request.endsAt, request.now)
      if (record === 0) return { kind: 'full' }
      const reservation = reserveIn(place, record, request)
      unlock(table)
      return reservation
    },
    settle({ record, generation }, { reserved, amount, levels }) {
      if (!lockRecord(table, record, generation)) return 0
      const cell = float64Cells(table, record)
      add(table, cell + firstReserved + plane, -reserved)
      add(table, cell + ownCell, amount)
      const crossed = cross(table, record, levels)
      unlock(table)
      return crossed
    },
    add(key, amount, { endsAt, now }) {
      const record = open(key, endsAt, now)
      if (record === 0) return
      add(table, float64Cells(table, record) + ownCell, amount)
      unlock(table)
    },
    setElsewhere(key, { amount, number, endsAt }, now) {
      const record = open(key, endsAt, now)
      if (record === 0) return false
      const cell = float64Cells(table, record)
      if (number > (table.float64[cell + numberCell] ?? 0)) {
        table.float64[cell + elsewhereCell] = amount
        table.float64[cell + numberCell] = number
      }
      unlock(table)
      return true
    },
    find(key) {
      stage(table, key)
      lockKey(table)
      const record = findRecord(table)
      const account = record === 0 ? undefined : accountOf(place, record)
      unlock(table)
      return account
    },
    *positions() {
      for (let record = 1; record <= highestRecord(table); record++) yield record
    },
    read(position) {
      if (!lockUsed(table, position)) return undefined
      const account = accountOf(place, position)
      unlock(table)
      return account
    },
    expectReports() {
      lockShared(table)
      table.float64[expectedCell] = 1
      unlock(table)
    },
    reported(at) {
      lockShared(table)
      table.float64[reportedCell] = at
      unlock(table)
    },
    reports: () => reportState(table),
    get size() {
      return recordCount(table)
    },
  }
}

function shapeOf(planes: number, maxRecords: number): TableShape {
  return { maxRecords, keyBytes, int32Cells: 1, float64Cells: firstReserved + planes, sharedCells: 2 }
}

/** Releases the reservations of a data plane that has failed. */
export function clearKeyedAccounts(region: Region, plane: number, planes: number): void {
  // The capacity of the memory is not changed.
  clearReserved(createKeyedTable({ plane, planes, region: () => region }, '', shapeOf(planes, 1)), plane)
}

function clearReserved(table: KeyedTable, plane: number): void {
  for (let record = highestRecord(table); record > 0; record--) {
    if (!lockUsed(table, record)) continue
    table.float64[float64Cells(table, record) + firstReserved + plane] = 0
    unlock(table)
  }
}

/** Keys that look like a hash are hashed, to avoid collisions. */
function stage(table: KeyedTable, key: string): void {
  if (!key.startsWith(hashMark) && stageKey(table, key)) return
  const isText = key.isWellFormed()
  const bytes = Buffer.from(key, isText ? 'utf8' : 'utf16le')
  stageKey(table, `${hashMark}${isText ? '' : 'utf16:'}${hash('sha256', bytes, 'base64')}`)
}

/** Inserts the account of the staged key; 0 without room. */
function insert(table: KeyedTable, endsAt: number): number {
  const record = insertRecord(table)
  if (record !== 0) table.float64[float64Cells(table, record) + endsAtCell] = endsAt
  return record
}

function reserveIn(
  { table, plane, planes }: Place,
  record: number,
  request: ReservationRequest,
): Reservation {
  const { limit, amount, isUnlimited, mustFit = false, levels } = request
  const cell = float64Cells(table, record)
  const used = usedOf(table, cell)
  const reserved = reservedOf(table, cell, planes)
  const hasRoom = used + reserved < limit && (!mustFit || used + reserved + amount <= limit)
  const kind = isUnlimited || hasRoom ? 'reserved' : 'refused'
  table.float64[cell + limitCell] = limit
  if (kind === 'reserved') add(table, cell + firstReserved + plane, amount)
  const crossed = cross(table, record, levels)
  return { kind, used, reserved, crossed, reference: { record, generation: generationOf(table, record) } }
}

function add({ float64 }: KeyedTable, cell: number, amount: number): void {
  float64[cell] = (float64[cell] ?? 0) + amount
}

function usedOf({ float64 }: KeyedTable, cell: number): number {
  return (float64[cell + ownCell] ?? 0) + (float64[cell + elsewhereCell] ?? 0)
}

function reservedOf({ float64 }: KeyedTable, cell: number, planes: number): number {
  let sum = 0
  for (let index = cell + firstReserved; index < cell + firstReserved + planes; index++)
    sum += float64[index] ?? 0
  return sum
}

/** Marks the reached levels; returns those that were not marked before. */
function cross(table: KeyedTable, record: number, levels: readonly number[]): number {
  const used = usedOf(table, float64Cells(table, record))
  const index = int32Cells(table, record) + levelsCell
  const known = table.int32[index] ?? 0
  let reached = known
  for (let level = 0; level < levels.length; level++) if (used >= (levels[level] ?? 0)) reached |= 1 << level
  if (reached !== known) table.int32[index] = reached
  return reached & ~known
}

function accountOf({ table, planes }: Place, record: number): Account {
  const cell = float64Cells(table, record)
  return {
    key: keyOf(table, record),
    used: usedOf(table, cell),
    reserved: reservedOf(table, cell, planes),
    limit: table.float64[cell + limitCell] ?? 0,
    endsAt: table.float64[cell + endsAtCell] ?? 0,
  }
}

/** Removes ended accounts without reservations. */
function evictEnded(
  { table, planes }: Place,
  steps: number,
  { except, now }: { except: number; now: number },
): void {
  for (let step = 0; step < steps; step++) {
    const record = walk(table)
    if (record === 0) continue
    const cell = float64Cells(table, record)
    const hasEnded = (table.float64[cell + endsAtCell] ?? 0) <= now
    if (record !== except && hasEnded && reservedOf(table, cell, planes) === 0) removeRecord(table, record)
    unlock(table)
  }
}

function reportState(table: KeyedTable): ReportState {
  lockShared(table)
  const isExpected = table.float64[expectedCell] === 1
  const at = table.float64[reportedCell] ?? 0
  unlock(table)
  if (!isExpected) return { kind: 'unexpected' }
  return at === 0 ? { kind: 'expected' } : { kind: 'reported', at }
}
