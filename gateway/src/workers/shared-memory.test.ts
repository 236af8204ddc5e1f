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
