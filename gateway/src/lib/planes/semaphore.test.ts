import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { createPlaneMemories } from '../../../test/support/plane-memories.ts'
import { createPlaneThreads, type PlaneThreads } from '../../../test/support/plane-threads.ts'
import { createLocalMemory } from './memory.ts'
import { createSemaphore, type Semaphore } from './semaphore.ts'

const module = new URL('../../../test/fixtures/gauge-tasks.ts', import.meta.url)

let threads: PlaneThreads | undefined
afterEach(() => threads?.close())

describe('a semaphore', () => {
  it('has no limit at first, and counts the slots acquired before a limit', () => {
    const semaphore = createSemaphore(createLocalMemory(), 'semaphore')
    expect([semaphore.tryAcquire(), semaphore.tryAcquire()]).toEqual([true, true])
    semaphore.resize(2)
    expect(semaphore.tryAcquire()).toBe(false)
    semaphore.release()
    expect(semaphore.tryAcquire()).toBe(true)
  })

  it('serves waiters in order, without those cancelled', () => {
    const semaphore = createSemaphore(createLocalMemory(), 'semaphore')
    semaphore.resize(1)
    semaphore.tryAcquire()
    const entered: string[] = []
    for (const name of ['a', 'cancelled', 'b']) {
      semaphore.wait({ enter: () => entered.push(name), isCancelled: () => name === 'cancelled' })
    }
    semaphore.release()
    expect(entered).toEqual(['a'])
    expect(semaphore.tryAcquire()).toBe(false)
    semaphore.release()
    expect(entered).toEqual(['a', 'b'])
    semaphore.release()
    expect(semaphore.tryAcquire()).toBe(true)
  })

  it('serves waiters when its limit grows', () => {
    const semaphore = createSemaphore(createLocalMemory(), 'semaphore')
    semaphore.resize(1)
    semaphore.tryAcquire()
    let entered = 0
    for (let waiter = 0; waiter < 3; waiter++) {
      semaphore.wait({ enter: () => (entered += 1), isCancelled: () => false })
    }
    semaphore.resize(3)
    expect(entered).toBe(2)
  })

  it('returns slots of cancelled waiters, however many', () => {
    const semaphore = createSemaphore(createLocalMemory(), 'semaphore')
    semaphore.resize(1)
    semaphore.tryAcquire()
    let isCancelled = false
    for (let waiter = 0; waiter < 5_000; waiter++) {
      semaphore.wait({ enter: () => expect.unreachable(), isCancelled: () => isCancelled })
    }
    isCancelled = true
    semaphore.release()
    expect(semaphore.tryAcquire()).toBe(true)
  })

  it('passes a slot to waiters of other data planes in turn', async () => {
    const [a, b, c] = createPlaneMemories(3).map((memory) => createSemaphore(memory, 'semaphore'))
    for (const semaphore of [a, b, c]) semaphore?.resize(1)
    expect([a?.tryAcquire(), b?.tryAcquire()]).toEqual([true, false])
    const entered: string[] = []
    const all = Promise.withResolvers<void>()
    function wait(name: string, semaphore: Semaphore | undefined): void {
      const enter = () => {
        entered.push(name)
        if (entered.length === 5) all.resolve()
        semaphore?.release()
      }
      semaphore?.wait({ enter, isCancelled: () => false })
    }
    for (const name of ['a1', 'a2', 'a3']) wait(name, a)
    wait('b1', b)
    wait('c1', c)
    a?.release()
    await all.promise
    expect(entered.filter((name) => name.startsWith('a'))).toEqual(['a1', 'a2', 'a3'])
    // The data plane with three waiters does not serve all of them first.
    expect(entered.at(-1)).toBe('a3')
  })

  it('never has more slots in use than its limit, and serves all waiters, over threads', async () => {
    threads = createPlaneThreads(4)
    const request = { rounds: 60, max: 3, callers: 8 }
    const highest = (await threads.runAll({ module, task: 'takeTurns' }, request)) as number[]
    expect(Math.max(...highest)).toBe(3)
  })

  it('regains the slots of a failed data plane with its replacement', async () => {
    threads = createPlaneThreads(2)
    expect(await threads.run(1, { module, task: 'occupySemaphore' }, { max: 2 })).toBe(2)
    await threads.kill(1)
    const waiting = threads.run(0, { module, task: 'takeTurns' }, { rounds: 3, max: 2, callers: 3 })
    expect(
      await threads.run(1, { module, task: 'takeTurns' }, { rounds: 3, max: 2, callers: 3 }),
    ).toBeLessThan(3)
    expect(await waiting).toBeLessThan(3)
  })

  it('admits up to its limit, and a waiter per release, for any sequence', () => {
    const step = fc.constantFrom('acquire' as const, 'release' as const, 'cancel' as const)
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), fc.integer({ min: 1, max: 4 }), (steps, max) => {
        const semaphore = createSemaphore(createLocalMemory(), 'semaphore')
        semaphore.resize(max)
        let used = 0
        const waiting: { isOver: boolean; hasEntered: boolean }[] = []
        for (const action of steps) {
          if (action === 'release') {
            if (used === 0) continue
            used -= 1
            semaphore.release()
          } else if (action === 'cancel') {
            const waiter = waiting.find(({ isOver, hasEntered }) => !isOver && !hasEntered)
            if (waiter) waiter.isOver = true
          } else if (semaphore.tryAcquire()) used += 1
          else {
            const waiter = { isOver: false, hasEntered: false }
            waiting.push(waiter)
            const enter = () => {
              waiter.hasEntered = true
              used += 1
            }
            semaphore.wait({ enter, isCancelled: () => waiter.isOver })
          }
          expect(used).toBeLessThanOrEqual(max)
          const isWaiting = waiting.some(({ isOver, hasEntered }) => !isOver && !hasEntered)
          if (isWaiting) expect(used).toBe(max)
        }
      }),
    )
  })
})
