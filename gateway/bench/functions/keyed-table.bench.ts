import { bench, do_not_optimize, run } from 'mitata'
import {
  createKeyedTable,
  findRecord,
  float64Cells,
  insertRecord,
  lockKey,
  stageKey,
  unlock,
} from '../../src/lib/planes/keyed-table.ts'
import { createLocalMemory, type Memory, regionOf } from '../../src/lib/planes/memory.ts'

// Cost of one counted key in memory of one data plane and of several: memory per key, insertion with its
// longest pause, and an addition to a known key.

const records = 1_000_000
const shape = { maxRecords: records, keyBytes: 64, int32Cells: 0, float64Cells: 2, sharedCells: 0 }
const keys = Array.from({ length: records }, (_, index) => `user-${index}`)

const sharedMemory: Memory = {
  plane: 0,
  planes: 2,
  region: (_name, bytes, maxBytes = bytes) =>
    regionOf(new SharedArrayBuffer(bytes, { maxByteLength: maxBytes })),
}

type Table = ReturnType<typeof createKeyedTable>

function add(table: Table, key: string): number {
  stageKey(table, key)
  lockKey(table)
  const record = findRecord(table) || insertRecord(table)
  const cell = float64Cells(table, record)
  const value = (table.float64[cell] ?? 0) + 1
  table.float64[cell] = value
  unlock(table)
  return value
}

function filled(name: string, memory: Memory): Table {
  const before = process.memoryUsage.rss()
  const table = createKeyedTable(memory, name, shape)
  const startedAt = performance.now()
  let longestMs = 0
  for (const key of keys) {
    const begunAt = performance.now()
    add(table, key)
    longestMs = Math.max(longestMs, performance.now() - begunAt)
  }
  const us = ((performance.now() - startedAt) * 1000) / records
  const bytes = (process.memoryUsage.rss() - before) / records
  console.log(
    `${name}: ${bytes.toFixed(0)} bytes and ${us.toFixed(2)} us per new key, longest pause ${longestMs.toFixed(2)} ms`,
  )
  return table
}

const tables = { 'local memory': createLocalMemory(), 'shared memory': sharedMemory }
let turn = 0
for (const [name, memory] of Object.entries(tables)) {
  const table = filled(name, memory)
  bench(`addition to one of ${records} keys in ${name}`, () => {
    turn = (turn + 7919) % records
    do_not_optimize(add(table, keys[turn] ?? ''))
  })
  bench(`addition to one key in ${name}`, () => do_not_optimize(add(table, 'user-1')))
}
await run()
