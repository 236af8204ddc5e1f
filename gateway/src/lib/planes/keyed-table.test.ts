import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { taskShape } from '../../../test/fixtures/table-tasks.ts'
import { createPlaneThreads, type PlaneThreads } from '../../../test/support/plane-threads.ts'
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
  lockUsed,
  recordCount,
  removeRecord,
  sharedCells,
  stageKey,
  unlock,
  walk,
} from './keyed-table.ts'
import { releaseLocksOf } from './lock.ts'
import { createLocalMemory, type Memory, regionOf } from './memory.ts'
import type { KeyedTable, TableShape } from './table-memory.ts'

const shape: TableShape = { maxRecords: 300, keyBytes: 16, int32Cells: 0, float64Cells: 1, sharedCells: 2 }
const module = new URL('../../../test/fixtures/table-tasks.ts', import.meta.url)

function tableOf(options: Partial<TableShape> = {}): KeyedTable {
  return createKeyedTable(createLocalMemory(), 'table', { ...shape, ...options })
}

/** Memory of two data planes in this thread. */
function sharedMemory(): Memory[] {
  const buffers = new Map<string, SharedArrayBuffer>()
  return [0, 1].map((plane) => ({
    plane,
    planes: 2,
    region(name, bytes, maxBytes = bytes) {
      const buffer = buffers.get(name) ?? new SharedArrayBuffer(bytes, { maxByteLength: maxBytes })
      buffers.set(name, buffer)
      return regionOf(buffer)
    },
  }))
}

function stage(table: KeyedTable, key: string): void {
  if (!stageKey(table, key)) throw new Error('the key is too long')
}

function write(table: KeyedTable, key: string, value: number): boolean {
  stage(table, key)
  lockKey(table)
  const record = findRecord(table) || insertRecord(table)
  if (record !== 0) table.float64[float64Cells(table, record)] = value
  unlock(table)
  return record !== 0
}

function read(table: KeyedTable, key: string): number | undefined {
  stage(table, key)
  lockKey(table)
  const record = findRecord(table)
  const value = record === 0 ? undefined : table.float64[float64Cells(table, record)]
  unlock(table)
  return value
}

function remove(table: KeyedTable, key: string): void {
  stage(table, key)
  lockKey(table)
  const record = findRecord(table)
  if (record !== 0) removeRecord(table, record)
  unlock(table)
}

function entriesOf(table: KeyedTable): Map<string, number | undefined> {
  const entries = new Map<string, number | undefined>()
  for (let record = 1; record <= highestRecord(table); record++) {
    if (!lockUsed(table, record)) continue
    entries.set(keyOf(table, record), table.float64[float64Cells(table, record)])
    unlock(table)
  }
  return entries
}

const keyArbitrary = fc.oneof(
  fc.nat(400).map((number) => `key ${number}`),
  fc.string({ unit: 'binary', maxLength: 4 }).filter((key) => key.isWellFormed()),
)
const stepArbitrary = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('write' as const), key: keyArbitrary, value: fc.nat() }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('remove' as const), key: keyArbitrary }) },
)

describe('a table', () => {
  it('agrees with a Map in any sequence of steps, from two data planes', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(1), stepArbitrary), { maxLength: 600, size: 'max' }),
        fc.integer({ min: 1, max: 300 }),
        (steps, maxRecords) => {
          const tables = sharedMemory().map((memory) =>
            createKeyedTable(memory, 'table', { ...shape, maxRecords }),
          )
          const model = new Map<string, number>()
          for (const [plane, step] of steps) {
            const table = tables[plane]
            if (table === undefined) throw new RangeError('no such plane')
            if (step.kind === 'remove') {
              remove(table, step.key)
              model.delete(step.key)
            } else {
              const fits = model.has(step.key) || model.size < maxRecords
              expect(write(table, step.key, step.value)).toBe(fits)
              if (fits) model.set(step.key, step.value)
            }
            expect(read(table, step.key)).toBe(model.get(step.key))
          }
          for (const table of tables) {
            expect(recordCount(table)).toBe(model.size)
            expect(entriesOf(table)).toEqual(model)
          }
        },
      ),
      { numRuns: 60 },
    )
  })

  it('grows to its maximum and uses the slots of removed records again', () => {
    const table = tableOf({ maxRecords: 20_000 })
    for (let round = 0; round < 2; round++) {
      for (let index = 0; index < 20_000; index++) write(table, `key ${index}`, index)
      expect(write(table, 'one more', 0)).toBe(false)
      expect([recordCount(table), highestRecord(table)]).toEqual([20_000, 20_000])
      const values = Array.from({ length: 20_000 }, (_, index) => read(table, `key ${index}`))
      expect(values.every((value, index) => value === index)).toBe(true)
      for (let index = 0; index < 20_000; index++) remove(table, `key ${index}`)
      expect(recordCount(table)).toBe(0)
    }
  })

  it('has short chains at any size', () => {
    const table = tableOf({ maxRecords: 50_000, keyBytes: 24 })
    for (let index = 0; index < 50_000; index++) write(table, `client-${index}`, index)
    const longest = Math.max(...chainsOf(table))
    // With a random hash more than 12 records in one of 50,000 chains are as good as impossible.
    expect(longest).toBeLessThan(13)
  })

  it('distinguishes keys with the same hash', () => {
    const table = tableOf()
    for (const key of ['one', 'two', 'three']) {
      expect(stageKey(table, key)).toBe(true)
      table.staged.hash = 7
      lockKey(table)
      expect(findRecord(table)).toBe(0)
      expect(keyOf(table, insertRecord(table))).toBe(key)
      unlock(table)
    }
  })

  it('has a secret of its own in each process', () => {
    const hashes = Array.from({ length: 8 }, () => {
      const table = tableOf()
      stageKey(table, 'key')
      return table.staged.hash
    })
    expect(new Set(hashes).size).toBeGreaterThan(6)
  })

  it('refuses keys that are too long or not Unicode', () => {
    const table = tableOf()
    expect(stageKey(table, 'x'.repeat(16))).toBe(true)
    expect(stageKey(table, 'x'.repeat(17))).toBe(false)
    expect(stageKey(table, 'é'.repeat(8))).toBe(true)
    expect(stageKey(table, 'é'.repeat(9))).toBe(false)
    expect(stageKey(table, '\ud800')).toBe(false)
  })

  it('has zeros in the cells of a new record', () => {
    const table = tableOf()
    write(table, 'a', 7)
    remove(table, 'a')
    stageKey(table, 'b')
    lockKey(table)
    const record = insertRecord(table)
    expect(table.float64[float64Cells(table, record)]).toBe(0)
    unlock(table)
  })

  it('does not lock a record of an earlier generation', () => {
    const table = tableOf()
    write(table, 'a', 1)
    const generation = generationOf(table, 1)
    remove(table, 'a')
    expect(lockRecord(table, 1, generation)).toBe(false)
    write(table, 'b', 1)
    expect(lockRecord(table, 1, generation)).toBe(false)
    expect(lockRecord(table, 1, generationOf(table, 1))).toBe(true)
    unlock(table)
  })

  it('is walked endlessly', () => {
    const table = tableOf()
    expect(walk(table)).toBe(0)
    for (const key of ['a', 'b', 'c']) write(table, key, 1)
    remove(table, 'b')
    const walked = Array.from({ length: 6 }, () => {
      const record = walk(table)
      const key = record === 0 ? '-' : keyOf(table, record)
      if (record !== 0) unlock(table)
      return key
    })
    expect(walked).toEqual(['a', '-', 'c', 'a', '-', 'c'])
  })

  it('does not overlap its shared cells', () => {
    const table = tableOf({ sharedCells: 40 })
    write(table, 'a', 1)
    table.float64.fill(9, sharedCells, sharedCells + 40)
    for (let index = 0; index < 200; index++) write(table, `key ${index}`, index)
    expect(read(table, 'a')).toBe(1)
    expect([...table.float64.subarray(sharedCells, sharedCells + 40)]).toEqual(Array(40).fill(9))
  })
})

/** Lengths of all chains. */
function chainsOf(table: KeyedTable): number[] {
  const { int32, layout } = table
  const cell = (slot: number, index: number) => int32[layout.slotsAt + (slot - 1) * layout.slotCells + index]
  return Array.from({ length: table.committed }, (_, bucket) => {
    let length = 0
    for (let record = cell(bucket + 1, 0); record; record = cell(record, 1)) length += 1
    return length
  })
}

describe('several threads', () => {
  let threads: PlaneThreads | undefined
  afterEach(() => threads?.close())

  function result(): { table: KeyedTable; values: (number | undefined)[] } {
    const buffer = threads?.buffer('table')
    if (buffer === undefined) throw new Error('no table')
    const memory: Memory = { plane: 0, planes: 1, region: () => regionOf(buffer) }
    const table = createKeyedTable(memory, 'table', taskShape)
    return { table, values: [...entriesOf(table).values()] }
  }

  it('lose no addition while the table grows', async () => {
    threads = createPlaneThreads(4)
    await threads.runAll({ module, task: 'addToKeys' }, { keys: 20_000, rounds: 2 })
    const { table, values } = result()
    expect([recordCount(table), values.length]).toEqual([20_000, 20_000])
    expect(values.every((value) => value === 8)).toBe(true)
  })

  it('agree on which records are in use while they insert and remove', async () => {
    threads = createPlaneThreads(4)
    await threads.runAll({ module, task: 'addAndRemove' }, { keys: 50, rounds: 20_000 })
    const { table, values } = result()
    expect(values.every((value) => value === 0)).toBe(true)
    expect(recordCount(table)).toBe(values.length)
  })

  it('continue after a thread ends anywhere', async () => {
    threads = createPlaneThreads(2)
    await threads.run(0, { module, task: 'addToKeys' }, { keys: 2_000, rounds: 1 })
    const region = regionOf(threads.buffer('table'))
    for (let kill = 0; kill < 5; kill++) {
      const added = region.float64[sharedCells] ?? 0
      const work = threads.run(1, { module, task: 'addAndRemove' }, { keys: 5_000, rounds: 1e9 })
      const ended = expect(work).rejects.toThrow('has ended')
      const other = threads.run(0, { module, task: 'addToKeys' }, { keys: 2_000, rounds: 20 })
      while ((region.float64[sharedCells] ?? 0) - added < 1_000 * (kill + 1)) {
        await new Promise(setImmediate)
      }
      await threads.kill(1)
      await ended
      releaseLocksOf(region, 1)
      await other
    }
    const { values } = result()
    expect(values.length).toBeGreaterThanOrEqual(2_000)
  })
})
