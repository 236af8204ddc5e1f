import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createPoll } from './watch.ts'

beforeEach(() => {
  vi.useFakeTimers()
})

afterEach(() => {
  vi.useRealTimers()
})

it('checks at the interval until it is stopped', () => {
  const check = vi.fn()
  const poll = createPoll(check, 100)
  vi.advanceTimersByTime(500)
  expect(check).not.toHaveBeenCalled()
  poll.start()
  poll.start()
  vi.advanceTimersByTime(350)
  expect(check).toHaveBeenCalledTimes(3)
  poll.stop()
  vi.advanceTimersByTime(500)
  expect(check).toHaveBeenCalledTimes(3)
})
