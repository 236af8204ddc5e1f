import { randomBytes } from 'node:crypto'
import { acquireLock, describeLocks, releaseLock } from './lock.ts'
import type { Region } from './memory.ts'
import type { StagedKey } from './staged-key.ts'

// A hash table in shared memory, for keys that clients choose. Layout, in 32-bit cells:
//   header    locks (lock.ts; int32[0] is the lock of the allocation), fields below, `sharedCells` float64
//   stripes   lock of the shared cells; then per stripe: lock, number of buckets, number of records
//   slots     first record of bucket N, then record N: next of its bucket, hash, generation (odd: in use),
//             length of the key, int32 cells, float64 cells, key
// Buckets and slots have the same numbers, so that both grow with the memory. Each stripe is a linear hash
// table: an insertion splits at most two of its buckets, hence there is no pause. Records do not move.
// Decision 024 lists the reasons.
export const seedAt = 4
const readyAt = 6
/** Slots in memory. */
export const committedAt = 7
/** Slots used at least once. */
export const highestAt = 8
const freeAt = 9
export const sizeAt = 10
export const cursorAt = 11
export const sharedAt = 12

export const stripeBits = 6
export const stripeCount = 1 << stripeBits
/** One cache line. */
export const stripeCells = 16
export const bucketsOf = 1
export const recordsOf = 2

export const head = 0
export const next = 1
export const hashOf = 2
export const generation = 3
export const lengthOf = 4
export const slotHeader = 5

export const smallestGrowth = 512
const largestGrowth = 8_192

/** Sizes of a table; equal for all tables of a name. */
export type TableShape = {
  maxRecords: number
  /** Longest key in bytes, a multiple of 8. Longer keys are hashed by the caller. */
  keyBytes: number
  int32Cells: number
  float64Cells: number
  /** Numbers of the caller that belong to the table itself. */
  sharedCells: number
}

/** A table of one data plane. The functions below operate on it; its fields are internal. */
export type KeyedTable = {
  readonly region: Region
  readonly plane: number
  /** Whether other data planes use the memory too; otherwise there are no locks. */
  readonly isShared: boolean
  readonly shape: TableShape
  readonly layout: Layout
  readonly staged: StagedKey
  /** Views of fixed length: those of the region follow its length, which costs a multiple per access. */
  int32: Int32Array
  float64: Float64Array
  committed: number
  /** Index of the acquired stripe lock; 0 if none. */
  held: number
}

type Layout = {
  readonly stripesAt: number
  readonly slotsAt: number
  readonly slotCells: number
  readonly int32At: number
  /** In float64 cells. */
  readonly float64At: number
  readonly keyAt: number
}

/** Computes the layout of a table. */
export function layoutOf(shape: TableShape): Layout {
  // Stripes and slots begin at multiples of a cache line and of 8 bytes.
  const stripesAt = upTo(sharedAt + shape.sharedCells * 2, stripeCells)
  const float64At = upTo(slotHeader + shape.int32Cells, 2)
  const keyAt = float64At + shape.float64Cells * 2
  return {
    stripesAt,
    slotsAt: stripesAt + (stripeCount + 1) * stripeCells,
    slotCells: upTo(keyAt + shape.keyBytes / 4, 2),
    int32At: slotHeader,
    float64At: float64At / 2,
    keyAt,
  }
}

function upTo(value: number, multiple: number): number {
  return Math.ceil(value / multiple) * multiple
}

/** Size of a table with a number of slots. */
export function bytesFor({ slotsAt, slotCells }: Layout, slots: number): number {
  return (slotsAt + slots * slotCells) * 4
}

/** Prepares the memory of the table, which is bound now, for this data plane. */
export function bind(table: KeyedTable): void {
  const { layout, region } = table
  const { int32 } = region
  if (int32.length === 0) throw new Error('the memory of a table is used before its configuration')
  if (table.isShared) acquireLock(int32, 0, table.plane)
  if (int32[readyAt] === 0) {
    describeLocks(int32, { first: layout.stripesAt, count: stripeCount + 1, distance: stripeCells })
    // Secret, unlike the random numbers of a configuration.
    const seed = randomBytes(8)
    int32[seedAt] = seed.readInt32LE(0)
    int32[seedAt + 1] = seed.readInt32LE(4)
    int32[committedAt] = Math.floor((int32.length - layout.slotsAt) / layout.slotCells)
    int32[readyAt] = 1
  }
  if (table.isShared) releaseLock(int32, 0)
  updateViews(table, int32[committedAt] ?? 0)
}

/** Replaces the views by those of a larger table. */
export function updateViews(table: KeyedTable, committed: number): void {
  const { buffer } = table.region.int32
  const bytes = bytesFor(table.layout, committed)
  table.int32 = new Int32Array(buffer, 0, bytes / 4)
  table.float64 = new Float64Array(buffer, 0, bytes / 8)
  table.committed = committed
}

/** Allocates the slot of a record; 0 at the maximum. */
export function allocate(table: KeyedTable): number {
  const { int32, shape } = table
  if (table.isShared) acquireLock(int32, 0, table.plane)
  const size = int32[sizeAt] ?? 0
  let record = size < shape.maxRecords ? (int32[freeAt] ?? 0) : 0
  if (record !== 0) int32[freeAt] = at(table, record, next)
  else if (size < shape.maxRecords) record = extend(table)
  if (record !== 0) int32[sizeAt] = size + 1
  if (table.isShared) releaseLock(int32, 0)
  return record
}

/** The next slot never used before, 0 at the maximum. Slots lost with failed data planes count too. */
function extend(table: KeyedTable): number {
  const highest = table.int32[highestAt] ?? 0
  let committed = table.int32[committedAt] ?? 0
  if (highest === committed) {
    const most = table.shape.maxRecords
    const growth = Math.min(largestGrowth, Math.max(smallestGrowth, committed >> 3))
    committed = Math.min(most, committed + growth)
    if (committed <= highest) return 0
    if (!enlarge(table, committed)) return 0
    table.int32[committedAt] = committed
  }
  if (committed !== table.committed) updateViews(table, committed)
  table.int32[highestAt] = highest + 1
  return highest + 1
}

function enlarge({ region, layout }: KeyedTable, slots: number): boolean {
  try {
    region.grow(bytesFor(layout, slots))
    return true
  } catch (error) {
    // Without memory the table is as good as full.
    if (error instanceof RangeError) return false
    throw error
  }
}

/** Frees the slot of a removed record. */
export function free(table: KeyedTable, record: number): void {
  const { int32 } = table
  if (table.isShared) acquireLock(int32, 0, table.plane)
  set(table, record, next, int32[freeAt] ?? 0)
  int32[freeAt] = record
  int32[sizeAt] = (int32[sizeAt] ?? 0) - 1
  if (table.isShared) releaseLock(int32, 0)
}

/** Index of a slot in `int32`. */
export function startOf({ layout }: KeyedTable, slot: number): number {
  return layout.slotsAt + (slot - 1) * layout.slotCells
}

/** Value of a slot's cell. */
export function at(table: KeyedTable, slot: number, cell: number): number {
  return table.int32[startOf(table, slot) + cell] ?? 0
}

/** Sets a slot's cell. */
export function set(table: KeyedTable, slot: number, cell: number, value: number): void {
  table.int32[startOf(table, slot) + cell] = value
}
