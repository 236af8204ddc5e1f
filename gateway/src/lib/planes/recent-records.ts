import { hash } from 'node:crypto'
import type { Clock } from '../clock.ts'
import {
  createKeyedTable,
  findRecord,
  float64Cells,
  generationOf,
  insertRecord,
  lockKey,
  lockRecord,
  removeRecord,
  stageKey,
  unlock,
  walk,
} from './keyed-table.ts'
import type { Memory } from './memory.ts'

/**
 * Numbers of a record. `from` is the index of the first one, `isNew` marks a record just created, whose
 * numbers are 0.
 */
export type UseRecord<T> = (numbers: Float64Array, from: number, isNew: boolean) => T

/**
 * Records of the most recently used keys, shared by all data planes. `use` is called under the lock of the
 * record: it must neither throw nor use records.
 */
export type RecentRecords = {
  /** Uses the record of a key, created if necessary. */
  update<T>(key: string, use: UseRecord<T>): T
  /** Uses the record of a key; undefined if there is none. */
  find<T>(key: string, use: UseRecord<T>): T | undefined
}

/** Longer keys are hashed. */
const keyBytes = 48
/** Records compared for an eviction. */
const samples = 16
/** Attempts to find so many records, and to insert one, while other data planes change them. */
const maxSteps = 8 * samples
const maxInsertions = 100

/**
 * Creates records with `size` numbers each. Beyond `maxRecords`, a new record replaces the one of a sample
 * that has not been used for the longest time.
 */
export function createRecentRecords(
  memory: Memory,
  { name, maxRecords, size }: { name: string; maxRecords: number; size: number },
  clock: Pick<Clock, 'monotonic'>,
): RecentRecords {
  // The first number of a record is the time of its last use.
  const table = createKeyedTable(memory, name, {
    ...{ maxRecords, keyBytes, int32Cells: 0, float64Cells: 1 + size, sharedCells: 0 },
  })

  function stage(key: string): void {
    if (!stageKey(table, key)) stageKey(table, hash('sha256', key, 'base64'))
  }

  /** Uses a record, and releases its lock. */
  function useAndUnlock<T>(record: number, use: UseRecord<T>, isNew: boolean): T {
    const usedAt = float64Cells(table, record)
    table.float64[usedAt] = clock.monotonic()
    try {
      return use(table.float64, usedAt + 1, isNew)
    } finally {
      unlock(table)
    }
  }

  function evictOldest(): void {
    const oldest = { record: 0, generation: 0, usedAt: Number.POSITIVE_INFINITY }
    for (let step = 0, sampled = 0; step < maxSteps && sampled < samples; step += 1) {
      const record = walk(table)
      if (record === 0) continue
      sampled += 1
      const usedAt = table.float64[float64Cells(table, record)] ?? 0
      const generation = generationOf(table, record)
      unlock(table)
      if (usedAt < oldest.usedAt) Object.assign(oldest, { record, generation, usedAt })
    }
    if (oldest.record === 0 || !lockRecord(table, oldest.record, oldest.generation)) return
    removeRecord(table, oldest.record)
    unlock(table)
  }

  return {
    update(key, use) {
      stage(key)
      for (let attempt = 0; attempt < maxInsertions; attempt += 1) {
        lockKey(table)
        const found = findRecord(table)
        if (found !== 0) return useAndUnlock(found, use, false)
        const inserted = insertRecord(table)
        if (inserted !== 0) return useAndUnlock(inserted, use, true)
        unlock(table)
        evictOldest()
      }
      throw new Error('shared memory has no room for a record')
    },
    find(key, use) {
      stage(key)
      lockKey(table)
      const found = findRecord(table)
      if (found !== 0) return useAndUnlock(found, use, false)
      unlock(table)
      return undefined
    },
  }
}
