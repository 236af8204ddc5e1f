import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createDebounce } from './debounce.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const clock = { monotonic: () => Date.now() }

describe('createDebounce', () => {
  it('runs once after a pause in requests', () => {
    const work = vi.fn()
    const debounce = createDebounce({ quietMs: 10, maxMs: 100 }, clock, work)
    for (let count = 0; count < 5; count++) {
      debounce.request()
      vi.advanceTimersByTime(5)
    }
    expect(work).not.toHaveBeenCalled()
    vi.advanceTimersByTime(10)
    expect(work).toHaveBeenCalledTimes(1)
    vi.advanceTimersByTime(1_000)
    expect(work).toHaveBeenCalledTimes(1)
  })

  it('runs after the longest wait although requests continue', () => {
    const work = vi.fn()
    const debounce = createDebounce({ quietMs: 10, maxMs: 100 }, clock, work)
    for (let count = 0; count < 30; count++) {
      debounce.request()
      vi.advanceTimersByTime(5)
    }
    expect(work).toHaveBeenCalledTimes(1)
  })

  it('runs again for a request during the work, after as long as the work took', () => {
    let runs = 0
    const debounce = createDebounce({ quietMs: 10, maxMs: 100 }, clock, () => {
      runs += 1
      if (runs > 1) return
      debounce.request()
      vi.setSystemTime(Date.now() + 300)
    })
    debounce.request()
    vi.advanceTimersByTime(10)
    expect(runs).toBe(1)
    vi.advanceTimersByTime(299)
    expect(runs).toBe(1)
    vi.advanceTimersByTime(20)
    expect(runs).toBe(2)
  })

  it('runs again after an error, and not after the end', () => {
    let runs = 0
    const debounce = createDebounce({ quietMs: 10, maxMs: 100 }, clock, () => {
      runs += 1
      if (runs === 1) throw new Error('defect')
    })
    debounce.request()
    expect(() => vi.advanceTimersByTime(10)).toThrow('defect')
    debounce.request()
    vi.advanceTimersByTime(10)
    expect(runs).toBe(2)
    debounce.request()
    debounce.close()
    vi.advanceTimersByTime(1_000)
    expect(runs).toBe(2)
  })
})
