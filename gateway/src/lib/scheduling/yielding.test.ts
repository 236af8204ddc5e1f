import { expect, it } from 'vitest'
import { createBreathe, runSteps } from './yielding.ts'

it('waits only after some milliseconds of work', async () => {
  let now = 0
  const breathe = createBreathe({ monotonic: () => now })
  now = 3
  expect(breathe()).toBeUndefined()
  now = 5
  const pause = breathe()
  expect(pause).toBeInstanceOf(Promise)
  await pause
  expect(breathe()).toBeUndefined()
})

it('lets others work while it waits', async () => {
  let now = 0
  const breathe = createBreathe({ monotonic: () => now })
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
  expect(await runSteps(work(), breathe)).toBe('done')
  expect(seen).toEqual(['one', 'traffic', 'two', 'three'])
})

it('passes on the error of a step', async () => {
  function* work() {
    yield
    throw new Error('no')
  }
  await expect(runSteps(work(), () => undefined)).rejects.toThrow('no')
})
