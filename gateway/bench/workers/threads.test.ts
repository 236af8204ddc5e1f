import { readdirSync } from 'node:fs'
import { expect, it } from 'vitest'
import { busiestThread, parseSchedstat, spreadOf, threadTimes } from './threads.ts'

it('schedstat begins with the time on a CPU', () => {
  expect(parseSchedstat('61309690 180927054 58\n')).toBe(61_309_690)
  expect(parseSchedstat('')).toBe(0)
})

it('the busiest thread is the one with the largest increase, new threads included', () => {
  const before = [
    { id: 1, nanoseconds: 900 },
    { id: 2, nanoseconds: 100 },
  ]
  const after = [
    { id: 1, nanoseconds: 950 },
    { id: 2, nanoseconds: 180 },
    { id: 3, nanoseconds: 70 },
  ]
  expect(busiestThread(before, after)).toBe(2)
  expect(busiestThread(before, [...after, { id: 4, nanoseconds: 90 }])).toBe(4)
  expect(busiestThread(after, after)).toBeUndefined()
})

it.each([
  [[1, 1, 2, 2], 2, 1],
  [[1, 1, 1, 2], 2, 1.5],
  [[1, 1, 1, 1], 2, 2],
  [[1, 2, 3], 1, 1 / 3],
])('the spread of the connections %j over %i workers is %d', (owners, workers, spread) => {
  expect(spreadOf(owners, workers)).toBeCloseTo(spread)
})

it('threads of the engine do not count', () => {
  expect(threadTimes(process.pid).map(({ id }) => id)).toContain(process.pid)
  const all = readdirSync(`/proc/${process.pid}/task`)
  expect(threadTimes(process.pid).length).toBeLessThan(all.length)
})
