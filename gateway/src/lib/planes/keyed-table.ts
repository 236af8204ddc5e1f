import { acquireLock, releaseLock } from './lock.ts'
import type { Memory } from './memory.ts'
import { createStagedKey, hashKey, writeKey } from './staged-key.ts'
import {
  allocate,
  at,
  bind,
  bucketsOf,
  bytesFor,
  committedAt,
  cursorAt,
  free,
  generation,
  hashOf,
  head,
  highestAt,
  type KeyedTable,
  layoutOf,
  lengthOf,
  next,
  recordsOf,
  seedAt,
  set,
  sharedAt,
  sizeAt,
  slotHeader,
  smallestGrowth,
  startOf,
  stripeBits,
  stripeCells,
  stripeCount,
  type TableShape,
  updateViews,
} from './table-memory.ts'

/** Creates or joins the table of a name. It may be used as soon as its memory is bound. */
export function createKeyedTable(memory: Memory, name: string, shape: TableShape): KeyedTable {
  const layout = layoutOf(shape)
  const atOnce = Math.max(stripeCount, Math.min(smallestGrowth, shape.maxRecords))
  const most = Math.max(atOnce, shape.maxRecords)
  return {
    region: memory.region(name, bytesFor(layout, atOnce), bytesFor(layout, most)),
    plane: memory.plane,
    isShared: memory.planes > 1,
    shape,
    layout,
    staged: createStagedKey(shape.keyBytes),
    int32: new Int32Array(),
    float64: new Float64Array(),
    committed: 0,
    held: 0,
  }
}

/**
 * Stages a key for `lockKey`, `findRecord` and `insertRecord`. False if it is too long or not well-formed
 * Unicode: the caller then stages a hash of it.
 */
export function stageKey(table: KeyedTable, key: string): boolean {
  const { staged } = table
  if (!writeKey(staged, key)) return false
  if (table.committed === 0) bind(table)
  staged.hash = hashKey(staged, table.int32[seedAt] ?? 0, table.int32[seedAt + 1] ?? 0)
  return true
}

/** Acquires the lock of the staged key's stripe. A plane acquires one lock of a table at a time. */
export function lockKey(table: KeyedTable): void {
  lockStripe(table, table.staged.hash)
}

/** Acquires the lock of the shared cells. */
export function lockShared(table: KeyedTable): void {
  if (table.committed === 0) bind(table)
  lockAt(table, table.layout.stripesAt)
}

/**
 * Acquires the lock of a record's stripe, if the record is still of that generation; otherwise it was
 * removed.
 */
export function lockRecord(table: KeyedTable, record: number, expected: number): boolean {
  if (record > table.committed) updateViews(table, table.int32[committedAt] ?? 0)
  lockStripe(table, at(table, record, hashOf))
  if (at(table, record, generation) === expected) return true
  unlock(table)
  return false
}

/**
 * Acquires the lock of a record's stripe, if the record is in use. Records are numbered from 1 to
 * `highestRecord`.
 */
export function lockUsed(table: KeyedTable, record: number): boolean {
  const expected = record > 0 && record <= highestRecord(table) ? at(table, record, generation) : 0
  return (expected & 1) === 1 && lockRecord(table, record, expected)
}

/** Releases the acquired lock. */
export function unlock(table: KeyedTable): void {
  const { held } = table
  table.held = 0
  if (table.isShared) releaseLock(table.int32, held)
}

function lockStripe(table: KeyedTable, hash: number): void {
  lockAt(table, table.layout.stripesAt + ((hash & (stripeCount - 1)) + 1) * stripeCells)
}

function lockAt(table: KeyedTable, index: number): void {
  if (table.held !== 0) throw new Error('a lock of the table is acquired already')
  if (table.isShared) acquireLock(table.int32, index, table.plane)
  table.held = index
  // Another data plane may have enlarged the table.
  const committed = table.int32[committedAt] ?? 0
  if (committed !== table.committed) updateViews(table, committed)
}

/** Finds the record of the staged key, whose lock is acquired; 0 if there is none. */
export function findRecord(table: KeyedTable): number {
  const { hash, length } = table.staged
  let record = at(table, bucketOf(table, hash), head)
  while (record !== 0) {
    if (at(table, record, hashOf) === hash && at(table, record, lengthOf) === length) {
      if (hasStagedKey(table, record)) return record
    }
    record = at(table, record, next)
  }
  return 0
}

function hasStagedKey(table: KeyedTable, record: number): boolean {
  const { int32, staged } = table
  const keyAt = startOf(table, record) + table.layout.keyAt
  const words = (staged.length + 3) >> 2
  for (let word = 0; word < words; word++) {
    if (int32[keyAt + word] !== staged.words[word]) return false
  }
  return true
}

/**
 * Inserts a record of the staged key, whose lock is acquired and which has none; its cells are 0. Returns 0
 * if the table has its maximum of records.
 */
export function insertRecord(table: KeyedTable): number {
  const record = allocate(table)
  if (record === 0) return 0
  const { staged } = table
  const { hash } = staged
  const { keyAt } = table.layout
  const start = startOf(table, record)
  table.int32.fill(0, start + slotHeader, start + keyAt)
  set(table, record, lengthOf, staged.length)
  const words = (staged.length + 3) >> 2
  for (let word = 0; word < words; word++) table.int32[start + keyAt + word] = staged.words[word] ?? 0
  set(table, record, hashOf, hash)
  set(table, record, generation, at(table, record, generation) + 1)
  // Linked last, so that a data plane that fails here loses at most this record.
  link(table, bucketOf(table, hash), record)
  count(table, recordsOf, 1)
  split(table)
  split(table)
  return record
}

/** Removes a record whose lock is acquired. */
export function removeRecord(table: KeyedTable, record: number): void {
  const bucket = bucketOf(table, at(table, record, hashOf))
  const following = at(table, record, next)
  let previous = at(table, bucket, head)
  if (previous === record) set(table, bucket, head, following)
  else {
    while (previous !== 0 && at(table, previous, next) !== record) previous = at(table, previous, next)
    if (previous !== 0) set(table, previous, next, following)
  }
  set(table, record, generation, at(table, record, generation) + 1)
  count(table, recordsOf, -1)
  free(table, record)
}

/**
 * Next record of an endless walk that all data planes continue together, with its lock acquired; 0, without
 * a lock, if the next slot is not in use.
 */
export function walk(table: KeyedTable): number {
  const highest = highestRecord(table)
  if (highest === 0) return 0
  const last = table.int32[cursorAt] ?? 0
  // Two data planes at the same step inspect the same record, without harm.
  const record = last < highest ? last + 1 : 1
  table.int32[cursorAt] = record
  return lockUsed(table, record) ? record : 0
}

/** Number of records. */
export function recordCount(table: KeyedTable): number {
  if (table.committed === 0) bind(table)
  return table.int32[sizeAt] ?? 0
}

/** Whether the memory can be used: a configuration that requested it has been active. */
export function isBound({ region }: KeyedTable): boolean {
  return region.int32.length > 0
}

/** Highest number of a record so far. */
export function highestRecord(table: KeyedTable): number {
  if (table.committed === 0) bind(table)
  const highest = table.int32[highestAt] ?? 0
  if (highest > table.committed) updateViews(table, table.int32[committedAt] ?? 0)
  return highest
}

/** Generation of a record, for `lockRecord`. */
export function generationOf(table: KeyedTable, record: number): number {
  return at(table, record, generation)
}

/** Key of a record whose lock is acquired. */
export function keyOf(table: KeyedTable, record: number): string {
  const from = (startOf(table, record) + table.layout.keyAt) * 4
  // Copied, because decoders refuse shared memory.
  return Buffer.from(new Uint8Array(table.int32.buffer, from, at(table, record, lengthOf))).toString()
}

/** Index of a record's first cell in `table.int32`. Valid until the lock of the record is released. */
export function int32Cells(table: KeyedTable, record: number): number {
  return startOf(table, record) + table.layout.int32At
}

/** Index of a record's first cell in `table.float64`. Valid until the lock of the record is released. */
export function float64Cells(table: KeyedTable, record: number): number {
  return startOf(table, record) / 2 + table.layout.float64At
}

/** Index of the first shared cell in `table.float64`, under `lockShared`. */
export const sharedCells = sharedAt / 2

/** Bucket of a hash in the stripe whose lock is acquired. Buckets have the numbers of slots, from 1. */
function bucketOf(table: KeyedTable, hash: number): number {
  const stripe = hash & (stripeCount - 1)
  const buckets = bucketCount(table)
  const spread = hash >>> stripeBits
  const level = 32 - Math.clz32(buckets - 1)
  let position = level === 0 ? 0 : spread & ((1 << level) - 1)
  if (position >= buckets) position -= 1 << (level - 1)
  return position * stripeCount + stripe + 1
}

function bucketCount(table: KeyedTable): number {
  return (table.int32[table.held + bucketsOf] ?? 0) + 1
}

function count(table: KeyedTable, cell: number, change: number): void {
  table.int32[table.held + cell] = (table.int32[table.held + cell] ?? 0) + change
}

/**
 * Splits the next bucket of the stripe if it has more records than buckets. Begins anew where a failed data
 * plane has stopped: records moved before are in the new bucket already.
 */
function split(table: KeyedTable): void {
  const buckets = bucketCount(table)
  const stripe = (table.held - table.layout.stripesAt) / stripeCells - 1
  const created = buckets * stripeCount + stripe + 1
  if ((table.int32[table.held + recordsOf] ?? 0) <= buckets || created > table.committed) return
  const upper = 1 << (31 - Math.clz32(buckets))
  const old = (buckets - upper) * stripeCount + stripe + 1
  let previous = 0
  let record = at(table, old, head)
  while (record !== 0) {
    const following = at(table, record, next)
    if (((at(table, record, hashOf) >>> stripeBits) & upper) === 0) previous = record
    else {
      if (previous === 0) set(table, old, head, following)
      else set(table, previous, next, following)
      link(table, created, record)
    }
    record = following
  }
  count(table, bucketsOf, 1)
}

function link(table: KeyedTable, bucket: number, record: number): void {
  set(table, record, next, at(table, bucket, head))
  set(table, bucket, head, record)
}
