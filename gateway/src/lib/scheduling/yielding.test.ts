import { expect, it } from 'vitest'
import { createYieldPoint, runYielding } from './yielding.ts'

it('waits only after some milliseconds of work', async () => {
  let now = 0
  const yieldPoint = createYieldPoint({ monotonic: () => now })
  now = 3
  expect(yieldPoint()).toBeUndefined()
  now = 5
  const pause = yieldPoint()
  expect(pause).toBeInstanceOf(Promise)
  await pause
  expect(yieldPoint()).toBeUndefined()
})

it('runs other work while it waits', async () => {
  let now = 0
  const yieldPoint = createYieldPoint({ monotonic: () => now })
  const seen: string[] = []
  function* work() {
    for (const step of ['one', 'two', 'three']) {
      seen.push(step)
      now += 10
      yield
    }
    return 'done'
  }
  setImmediate(() => seen.push('traffic'))
  expect(await runYielding(work(), yieldPoint)).toBe('done')
  expect(seen).toEqual(['one', 'traffic', 'two', 'three'])
})

it('rejects with the error of a step', async () => {
  function* work() {
    yield
    throw new Error('no')
  }
  await expect(runYielding(work(), () => undefined)).rejects.toThrow('no')
})
