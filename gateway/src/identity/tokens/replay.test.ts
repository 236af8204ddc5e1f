import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { fixtureContext } from '../../../test/fixtures/pipeline.ts'
import { linkMemory } from '../../../test/support/linked-peers.ts'
import { createPlaneThreads, type PlaneThreads } from '../../../test/support/plane-threads.ts'
import { createReplayCache } from './replay.ts'

let threads: PlaneThreads | undefined
afterEach(() => threads?.close())

describe('replay cache', () => {
  it('evicts only the oldest ids', () => {
    const { clock, memory } = fixtureContext()
    const used = createReplayCache(memory, { name: 'codes', capacity: 2 }, clock)
    const tryUse = (id: string) => {
      clock.advance(1)
      return used.tryUse(id)
    }
    expect(['a', 'a', 'b', 'c'].map(tryUse)).toEqual([true, false, true, true])
    expect(['c', 'a'].map(tryUse)).toEqual([false, true])
  })

  it('admits each id once over threads', async () => {
    const module = new URL('../../../test/fixtures/identity-tasks.ts', import.meta.url)
    threads = createPlaneThreads(4)
    const admitted = await threads.runAll({ module, task: 'useIds' }, 2_000)
    expect(admitted.map(Number).reduce((sum, count) => sum + count)).toBe(2_000)
  })

  it('admits each id once over all data planes', () => {
    const use = fc.record({
      plane: fc.nat(3),
      id: fc.oneof(fc.nat(20).map(String), fc.string({ maxLength: 80 })),
    })
    fc.assert(
      fc.property(fc.array(use, { maxLength: 200 }), (uses) => {
        const { clock } = fixtureContext()
        const caches = linkMemory(4).map((memory) =>
          createReplayCache(memory, { name: 'codes', capacity: 1_000 }, clock),
        )
        const known = new Set<string>()
        for (const { plane, id } of uses) {
          expect(caches[plane]?.tryUse(id)).toBe(!known.has(id))
          known.add(id)
        }
      }),
    )
  })
})
