import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createLocalMemory } from '../../lib/planes/memory.ts'
import { createConnectionPermits } from './connection-permits.ts'
import { createSharedEntries } from './shared-entries.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function permits(max: number) {
  const requestIdle = vi.fn()
  const entries = createSharedEntries(createLocalMemory(), 'connections', 10)
  const created = createConnectionPermits(entries, requestIdle)('upstream', max)
  if (created === undefined) throw new Error('no entry')
  return { ...created, requestIdle }
}

it('a connection that no longer waits is forgotten, however many there were', () => {
  const { acquire, release } = permits(1)
  acquire(() => {})
  const open = vi.fn()
  for (let count = 0; count < 20_000; count++) acquire(open)()
  const last = vi.fn()
  acquire(last)
  expect(last).not.toHaveBeenCalled()
  release()
  expect(last).toHaveBeenCalledTimes(1)
  expect(open).not.toHaveBeenCalled()
})

it('a connection without others that wait needs no timer', () => {
  const { acquire, release } = permits(1)
  acquire(() => {})
  acquire(() => {})()
  release()
  const open = vi.fn()
  acquire(open)
  expect(open).toHaveBeenCalledTimes(1)
})

it('waiting connections share one series of attempts', () => {
  const { acquire, release, requestIdle } = permits(1)
  acquire(() => {})
  for (let count = 0; count < 1_000; count++) {
    acquire(() => {})
    release()
  }
  acquire(() => {})
  expect(vi.getTimerCount()).toBe(1)
  expect(requestIdle).toHaveBeenCalledTimes(1)
  release()
  release()
  vi.advanceTimersByTime(1_000)
  expect(vi.getTimerCount()).toBe(0)
})
