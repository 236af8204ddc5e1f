import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { createPlaneMemories } from '../../../test/support/plane-memories.ts'
import { createPlaneThreads, type PlaneThreads } from '../../../test/support/plane-threads.ts'
import { createGauge } from './gauge.ts'
import { createLocalMemory, regionOf } from './memory.ts'

const module = new URL('../../../test/fixtures/gauge-tasks.ts', import.meta.url)

let threads: PlaneThreads | undefined
afterEach(() => threads?.close())

describe('a gauge', () => {
  it('adds up to its maximum and again after a subtraction', () => {
    const gauge = createGauge(createLocalMemory(), 'gauge')
    expect([gauge.tryAdd(2, 3), gauge.tryAdd(2, 3), gauge.tryAdd(1, 3), gauge.total()]).toEqual([
      true,
      false,
      true,
      3,
    ])
    gauge.subtract(2)
    expect([gauge.tryAdd(2, 3), gauge.total()]).toEqual([true, 3])
  })

  it('counts all data planes', () => {
    const [one, other] = createPlaneMemories(2).map((memory) => createGauge(memory, 'gauge'))
    expect([one?.tryAdd(2, 3), other?.tryAdd(1, 3), other?.tryAdd(1, 3)]).toEqual([true, true, false])
    expect([one?.total(), other?.total()]).toEqual([3, 3])
  })

  it('never exceeds its maximum over threads', async () => {
    threads = createPlaneThreads(4)
    const highest = (await threads.runAll(
      { module, task: 'claimGauge' },
      { rounds: 8_000, max: 7 },
    )) as number[]
    expect(Math.max(...highest)).toBe(7)
    expect([...regionOf(threads.buffer('gauge/gauge')).int32]).toEqual([0, 0, 0, 0, 0, 0, 0, 0])
  })

  it('admits exactly its maximum over threads', async () => {
    threads = createPlaneThreads(4)
    const added = (await threads.runAll({ module, task: 'fillGauge' }, { max: 2_001 })) as number[]
    expect(added.reduce((sum, count) => sum + count)).toBe(2_001)
  })

  it('loses the amounts of a failed data plane with its replacement', async () => {
    threads = createPlaneThreads(2)
    expect(await threads.run(0, { module, task: 'fillGauge' }, { max: 3 })).toBe(3)
    expect(await threads.run(1, { module, task: 'fillGauge' }, { max: 10 })).toBe(7)
    await threads.kill(1)
    expect(await threads.run(1, { module, task: 'fillGauge' }, { max: 10 })).toBe(7)
  })

  it('equals the sum of what data planes have added, for any sequence', () => {
    const step = fc.record({ plane: fc.nat(2), by: fc.integer({ min: -4, max: 4 }) })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), fc.nat(12), (steps, max) => {
        const gauges = createPlaneMemories(3).map((memory) => createGauge(memory, 'gauge'))
        const used = [0, 0, 0]
        for (const { plane, by } of steps) {
          const gauge = gauges[plane]
          const own = used[plane] ?? 0
          const total = used.reduce((sum, amount) => sum + amount)
          if (by > 0) {
            expect(gauge?.tryAdd(by, max)).toBe(total + by <= max)
            if (total + by <= max) used[plane] = own + by
          } else if (own + by >= 0) {
            gauge?.subtract(-by)
            used[plane] = own + by
          }
        }
        expect(gauges[0]?.total()).toBe(used.reduce((sum, amount) => sum + amount))
      }),
    )
  })
})
