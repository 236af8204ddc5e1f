import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { fixtureContext } from '../../../../../test/fixtures/pipeline.ts'
import { createCancellation } from '../../../../lib/cancellation.ts'
import { compileSlots } from './slots.ts'

function slotsOf(config: Parameters<typeof compileSlots>[0]) {
  return compileSlots(config, 'm', fixtureContext())
}

describe('slots of a model', () => {
  it('pass from a call to the first that waits', async () => {
    const slots = slotsOf({ max: 1, queue: 2 })
    expect([slots.tryAcquire(), slots.tryAcquire()]).toEqual([true, false])
    const order: string[] = []
    const waits = ['first', 'second'].map((name) =>
      slots.wait(createCancellation()).then((isAcquired) => order.push(`${name} ${isAcquired}`)),
    )
    expect(await slots.wait(createCancellation())).toBe(false)
    slots.release()
    await waits[0]
    slots.release()
    await waits[1]
    expect(order).toEqual(['first true', 'second true'])
    slots.release()
    expect(slots.tryAcquire()).toBe(true)
  })

  it('are not assigned after the time limit or a disconnect', async () => {
    vi.useFakeTimers()
    const slots = slotsOf({ max: 1, queue: 2, timeout: '1s' })
    slots.tryAcquire()
    const client = createCancellation()
    const waits = [slots.wait(createCancellation()), slots.wait(client)]
    client.cancel()
    await vi.advanceTimersByTimeAsync(1_000)
    expect(await Promise.all(waits)).toEqual([false, false])
    slots.release()
    expect([slots.tryAcquire(), slots.tryAcquire()]).toEqual([true, false])
    vi.useRealTimers()
  })

  it('never exceed their number, and serve all that wait, for any sequence', async () => {
    const step = fc.constantFrom('acquire' as const, 'release' as const)
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 4 }),
        fc.array(step, { maxLength: 40 }),
        async (max, steps) => {
          const slots = slotsOf({ max, queue: 100 })
          let occupied = 0
          const enter = () => {
            occupied += 1
            expect(occupied).toBeLessThanOrEqual(max)
          }
          const waits: Promise<void>[] = []
          for (const one of steps) {
            if (one === 'release' && occupied > 0) {
              occupied -= 1
              slots.release()
            } else if (one === 'acquire') {
              if (slots.tryAcquire()) enter()
              else waits.push(slots.wait(createCancellation()).then(enter))
            }
            await Promise.resolve()
          }
          while (occupied > 0) {
            occupied -= 1
            slots.release()
            await new Promise(setImmediate)
          }
          await Promise.all(waits)
        },
      ),
      { numRuns: 30 },
    )
  })
})
