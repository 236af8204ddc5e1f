import { hash } from 'node:crypto'
import { type Gauge, subtract, sumOf, tryAdd } from './gauge.ts'
import {
  createKeyedTable,
  findRecord,
  highestRecord,
  insertRecord,
  int32Cells,
  lockKey,
  lockUsed,
  removeRecord,
  stageKey,
  unlock,
} from './keyed-table.ts'
import type { Memory, Region } from './memory.ts'
import type { KeyedTable, TableShape } from './table-memory.ts'

/** Entries in use in all data planes, by key. Each key has an amount as well. */
export type KeyedGauge = {
  /** Opens an entry of a key, and counts it in a total; returns the limit that it would exceed. */
  open(key: string, limits: EntryLimits): Opened
  /** Open entries of a key. */
  countOf(key: string): number
}

export type EntryLimits = {
  /** Maximum of entries of the key. */
  readonly max: number
  readonly total: Gauge
  readonly maxTotal: number
}

export type Opened = { kind: 'open'; entry: Entry } | { kind: 'key' } | { kind: 'total' }

export type Entry = {
  /** Adds to the amount of the key, unless it would exceed `max`. */
  tryAdd(by: number, max: number): boolean
  /** Subtracts from the amount of the key what this data plane has added. */
  subtract(by: number): void
  /** Closes the entry; the total is the caller's. */
  close(): void
}

/** Start of the names of regions with a gauge by key. */
export const keyedGaugePrefix = 'keyed gauge/'

/** Length of a hash in hexadecimal digits, which replaces longer keys. */
const maxKeyBytes = 64

/**
 * Creates a gauge by key, for at most `maxKeys` keys with open entries; further ones exceed the limit of a
 * key. Each data plane has a column per key, which a replacement of the data plane clears on first use.
 */
export function createKeyedGauge(memory: Memory, name: string, maxKeys: number): KeyedGauge {
  const { plane, planes } = memory
  const table = createKeyedTable(memory, keyedGaugePrefix + name, shapeOf(planes, maxKeys))
  let isStarted = false

  /** Acquires the lock of a key; returns its record, 0 if there is none. */
  function lock(key: string): number {
    if (!isStarted) {
      isStarted = true
      clearColumns(table, plane, planes)
    }
    if (!stageKey(table, key)) stageKey(table, hash('sha256', key, 'hex'))
    lockKey(table)
    return findRecord(table)
  }

  function countOf(record: number): number {
    return record === 0 ? 0 : sumOf(table.int32, int32Cells(table, record), planes)
  }

  function change(record: number, column: number, by: number): void {
    const index = int32Cells(table, record) + column
    table.int32[index] = (table.int32[index] ?? 0) + by
  }

  function openLocked(found: number, { max, total, maxTotal }: EntryLimits): number | 'key' | 'total' {
    if (countOf(found) >= max) return 'key'
    if (!total.tryAdd(1, maxTotal)) return 'total'
    const record = found === 0 ? insertRecord(table) : found
    if (record === 0) {
      total.subtract(1)
      return 'key'
    }
    change(record, plane, 1)
    return record
  }

  /** The record of an open entry does not move and is not removed. */
  function entryOf(key: string, record: number): Entry {
    const first = int32Cells(table, record) + planes
    return {
      tryAdd: (by, max) => tryAdd({ cells: table.int32, first, plane, planes }, by, max),
      subtract: (by) => subtract({ cells: table.int32, first, plane, planes }, by),
      close() {
        lock(key)
        change(record, plane, -1)
        if (countOf(record) <= 0) removeRecord(table, record)
        unlock(table)
      },
    }
  }

  return {
    open(key, limits) {
      const result = openLocked(lock(key), limits)
      unlock(table)
      return typeof result === 'string' ? { kind: result } : { kind: 'open', entry: entryOf(key, result) }
    },
    countOf(key) {
      const count = countOf(lock(key))
      unlock(table)
      return count
    },
  }
}

function shapeOf(planes: number, maxRecords: number): TableShape {
  return { maxRecords, keyBytes: maxKeyBytes, int32Cells: 2 * planes, float64Cells: 0, sharedCells: 0 }
}

/** Clears the entries and amounts of a data plane that has failed. */
export function clearKeyedGauge(region: Region, plane: number, planes: number): void {
  // The capacity of the memory is not changed.
  const table = createKeyedTable({ plane, planes, region: () => region }, '', shapeOf(planes, 1))
  clearColumns(table, plane, planes)
}

function clearColumns(table: KeyedTable, plane: number, planes: number): void {
  for (let record = highestRecord(table); record > 0; record--) {
    if (!lockUsed(table, record)) continue
    const first = int32Cells(table, record)
    table.int32[first + plane] = 0
    Atomics.store(table.int32, first + planes + plane, 0)
    if (sumOf(table.int32, first, planes) <= 0) removeRecord(table, record)
    unlock(table)
  }
}
