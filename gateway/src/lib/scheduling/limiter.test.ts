import { expect, it } from 'vitest'
import { createLocalMemory } from '../planes/memory.ts'
import { createSemaphore } from '../planes/semaphore.ts'
import { createLimiter } from './limiter.ts'

it('limits concurrency, in order, also after failures', async () => {
  const semaphore = createSemaphore(createLocalMemory(), 'limiter')
  semaphore.resize(2)
  const limited = createLimiter(semaphore)
  const started: number[] = []
  const ends: (() => void)[] = []
  const results = [0, 1, 2, 3, 4].map((index) =>
    limited(async () => {
      started.push(index)
      await new Promise<void>((end) => ends.push(end))
      if (index === 1) throw new Error('failed')
      return index
    }).catch(() => 'failed'),
  )
  await Promise.resolve()
  expect(started).toEqual([0, 1])
  for (let count = 0; count < 5; count++) {
    ends[count]?.()
    await results[count]
    await new Promise(setImmediate)
    expect(started).toHaveLength(Math.min(5, count + 3))
  }
  expect(await Promise.all(results)).toEqual([0, 'failed', 2, 3, 4])
  expect(started).toEqual([0, 1, 2, 3, 4])
})
