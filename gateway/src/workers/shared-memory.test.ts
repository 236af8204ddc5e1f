import { describe, expect, it } from 'vitest'
import { createMemoryDirectory, createSharedMemory } from './shared-memory.ts'

function memoryOf(directory: ReturnType<typeof createMemoryDirectory>, plane: number) {
  return createSharedMemory({
    plane,
    planes: 2,
    acquire: async (requests) => directory.acquire(plane, requests),
    release: (name) => directory.release(plane, [name]),
  })
}

describe('shared memory', () => {
  it('has one content per name after binding', async () => {
    const directory = createMemoryDirectory()
    const [one, two] = [memoryOf(directory, 0), memoryOf(directory, 1)]
    const regions = [one.region('a', 16), two.region('a', 16), two.region('b', 16)]
    expect(regions.map(({ int32 }) => int32.length)).toEqual([0, 0, 0])
    await Promise.all([one.bind(), two.bind()])
    const [mine, theirs, other] = regions
    Atomics.store(mine?.int32 ?? new Int32Array(), 1, 7)
    expect([theirs?.int32[1], other?.int32[1]]).toEqual([7, 0])
  })

  it('binds regions that no compilation requests', async () => {
    const region = memoryOf(createMemoryDirectory(), 0).region('a', 8)
    await new Promise(setImmediate)
    await new Promise(setImmediate)
    expect(region.int32.length).toBe(2)
  })

  it('binds regions again after a failure', async () => {
    const directory = createMemoryDirectory()
    let fails = true
    const memory = createSharedMemory({
      plane: 0,
      planes: 2,
      async acquire(requests) {
        if (fails) throw new Error('no memory')
        return directory.acquire(0, requests)
      },
      release() {},
    })
    const region = memory.region('a', 8)
    await expect(memory.bind()).rejects.toThrow('no memory')
    fails = false
    await memory.bind()
    expect(region.int32.length).toBe(2)
  })

  it('counts no reference if one of the regions does not fit', () => {
    const directory = createMemoryDirectory()
    const fitting = { name: 'a', bytes: 8, maxBytes: undefined }
    const tooLarge = { name: 'b', bytes: Number.MAX_SAFE_INTEGER, maxBytes: undefined }
    expect(() => directory.acquire(0, [fitting, tooLarge])).toThrow(RangeError)
    expect(directory.size).toBe(0)
  })

  it('returns the same region for a name', async () => {
    const memory = memoryOf(createMemoryDirectory(), 0)
    expect(memory.region('a', 8)).toBe(memory.region('a', 8))
  })

  it('grows for all data planes', async () => {
    const directory = createMemoryDirectory()
    const [one, two] = [memoryOf(directory, 0), memoryOf(directory, 1)]
    const [mine, theirs] = [one.region('a', 8, 64), two.region('a', 8, 64)]
    await Promise.all([one.bind(), two.bind()])
    mine.grow(64)
    theirs.grow(32)
    expect([mine.uint8.length, theirs.uint8.length]).toEqual([64, 64])
  })

  it('is released with its last reference', () => {
    const directory = createMemoryDirectory()
    const request = { name: 'a', bytes: 8, maxBytes: undefined }
    const [first] = directory.acquire(0, [request, request])
    directory.acquire(1, [request])
    directory.release(0, ['a'])
    expect(directory.releaseAll(0).map(({ buffer }) => buffer)).toEqual([first])
    directory.release(1, ['a'])
    expect(directory.size).toBe(0)
    expect(directory.acquire(1, [request])[0]).not.toBe(first)
  })
})
