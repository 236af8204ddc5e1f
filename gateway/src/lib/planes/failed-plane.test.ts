import { describe, expect, it } from 'vitest'
import { releaseFailedPlane } from './failed-plane.ts'
import { createGauge } from './gauge.ts'
import { createKeyedGauge } from './keyed-gauge.ts'
import { acquireLock } from './lock.ts'
import { type Memory, maxBytesOf, type Region, regionOf } from './memory.ts'
import { createSemaphore } from './semaphore.ts'

/** Memory of two data planes with its regions by name. */
function twoPlanes() {
  const regions = new Map<string, Region>()
  const [one, failed] = [0, 1].map(
    (plane): Memory => ({
      plane,
      planes: 2,
      region(name, bytes, maxBytes) {
        const region =
          regions.get(name) ?? regionOf(new SharedArrayBuffer(bytes, maxBytesOf(bytes, maxBytes)))
        regions.set(name, region)
        return region
      },
    }),
  )
  if (one === undefined || failed === undefined) throw new Error('two data planes expected')
  return {
    one,
    failed,
    fail() {
      releaseFailedPlane(
        [...regions].map(([name, region]) => ({ name, region })),
        1,
        2,
      )
    },
  }
}

describe('the failure of a data plane', () => {
  it('ends what it has in use, before its replacement starts', () => {
    const { one, failed, fail } = twoPlanes()
    const [ours, theirs] = [one, failed].map((memory) => {
      const total = createGauge(memory, 'total')
      const keyed = createKeyedGauge(memory, 'keys', 10)
      return { total, keyed, open: (key: string) => keyed.open(key, { max: 2, total, maxTotal: 9 }) }
    })
    expect([ours?.open('a').kind, theirs?.open('a').kind, theirs?.open('b').kind]).toEqual([
      'open',
      'open',
      'open',
    ])
    fail()
    expect([ours?.total.total(), ours?.keyed.countOf('a'), ours?.keyed.countOf('b')]).toEqual([1, 1, 0])
  })

  it('passes its slots to waiters of others', async () => {
    const { one, failed, fail } = twoPlanes()
    const [ours, theirs] = [one, failed].map((memory) => createSemaphore(memory, 'slots'))
    for (const semaphore of [ours, theirs]) semaphore?.resize(1)
    expect([theirs?.tryAcquire(), ours?.tryAcquire()]).toEqual([true, false])
    const entered = new Promise<void>((enter) => ours?.wait({ enter, isCancelled: () => false }))
    fail()
    await entered
  })

  it('releases the locks of all regions before it ends what is in use', () => {
    const locked = regionOf(new SharedArrayBuffer(64))
    acquireLock(locked.int32, 0, 1)
    const gauge = regionOf(new SharedArrayBuffer(64))
    const locks: unknown[] = []
    const observed: Region = {
      ...gauge,
      get int32() {
        locks.push(locked.int32[0])
        return gauge.int32
      },
    }
    const regions = [
      { name: 'gauge/observed', region: observed },
      { name: 'other', region: locked },
    ]
    releaseFailedPlane(regions, 1, 2)
    expect(locks).toEqual([2, 0])
  })

  it('releases its locks', () => {
    const { one, failed, fail } = twoPlanes()
    const region = failed.region('other', 64)
    acquireLock(region.int32, 0, 1)
    fail()
    acquireLock(one.region('other', 64).int32, 0, 0)
    expect(region.int32[0]).toBe(1)
  })
})
