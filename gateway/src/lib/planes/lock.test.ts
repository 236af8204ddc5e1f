import { afterEach, describe, expect, it } from 'vitest'
import { createPlaneThreads, type PlaneThreads } from '../../../test/support/plane-threads.ts'
import { acquireLock, describeLocks, releaseLock, releaseLocksOf } from './lock.ts'
import { createLocalMemory, regionOf } from './memory.ts'

const module = new URL('../../../test/fixtures/table-tasks.ts', import.meta.url)

let threads: PlaneThreads | undefined
afterEach(() => threads?.close())

describe('a lock', () => {
  it('is free after its release', () => {
    const { int32 } = createLocalMemory().region('lock', 64)
    acquireLock(int32, 4, 2)
    expect(int32[4]).toBe(3)
    releaseLock(int32, 4)
    expect(int32[4]).toBe(0)
  })

  it('excludes other threads', async () => {
    threads = createPlaneThreads(4)
    await threads.runAll({ module, task: 'countUnderLock' }, 50_000)
    const cells = new Int32Array(threads.buffer('lock'))
    expect([cells[0], cells[8]]).toEqual([0, 200_000])
  })

  it('is acquired from the failed predecessor of the same data plane', async () => {
    threads = createPlaneThreads(2)
    await threads.run(1, { module, task: 'holdLock' }, undefined)
    await threads.kill(1)
    await threads.run(1, { module, task: 'countUnderLock' }, 10)
    expect([...new Int32Array(threads.buffer('lock'))].slice(0, 9)).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 10])
  })

  it('is released for a failed data plane while others wait', async () => {
    threads = createPlaneThreads(2)
    await threads.run(1, { module, task: 'holdLock' }, undefined)
    await threads.kill(1)
    const counted = threads.run(0, { module, task: 'countUnderLock' }, 10)
    const cells = new Int32Array(threads.buffer('lock'))
    // Negative as soon as the other data plane waits.
    while (Atomics.load(cells, 0) !== -2) await new Promise(setImmediate)
    releaseLocksOf(regionOf(threads.buffer('lock')), 1)
    await counted
    expect([cells[0], cells[8]]).toEqual([0, 10])
  })
})

describe('locks of a failed data plane', () => {
  it('are released wherever the region describes them', () => {
    const region = createLocalMemory().region('locks', 256)
    const cells = region.int32
    describeLocks(cells, { first: 8, count: 3, distance: 4 })
    for (const [index, value] of [3, 0, 3, -3].entries()) cells[index === 0 ? 0 : 4 + index * 4] = value
    cells[20] = 3
    releaseLocksOf(region, 2)
    expect([cells[0], cells[8], cells[12], cells[16], cells[20]]).toEqual([0, 0, 0, 0, 3])
  })

  it('do not include locks of other data planes', () => {
    const region = createLocalMemory().region('locks', 64)
    region.int32[0] = 2
    releaseLocksOf(region, 0)
    expect(region.int32[0]).toBe(2)
  })

  it('are absent in memory that is not bound', () => {
    expect(() => releaseLocksOf(regionOf(new ArrayBuffer(0)), 0)).not.toThrow()
  })
})
