import type { Clock } from '../../lib/clock.ts'

/** Delays work until changes pause. */
export type Debounce = {
  /** Requests a run. */
  request(): void
  close(): void
}

export type DebounceTimes = { readonly quietMs: number; readonly maxMs: number }

/**
 * Runs `work` once no request arrived for `quietMs`, at the latest `maxMs` after the first. After a run, the
 * next one waits for as long as it took, so that a stream of changes uses at most half of the time.
 */
export function createDebounce(
  { quietMs, maxMs }: DebounceTimes,
  { monotonic }: Pick<Clock, 'monotonic'>,
  work: () => void,
): Debounce {
  let firstAt: number | undefined
  let lastAt = 0
  let earliestAt = 0
  let timer: NodeJS.Timeout | undefined
  let isClosed = false

  function arm(): void {
    if (firstAt === undefined || isClosed) return
    clearTimeout(timer)
    const dueAt = Math.max(Math.min(lastAt + quietMs, firstAt + maxMs), earliestAt)
    timer = setTimeout(fire, Math.max(0, dueAt - monotonic()))
  }

  function fire(): void {
    timer = undefined
    const now = monotonic()
    // Requests since the timer was set move the time.
    if (firstAt !== undefined && now < Math.min(lastAt + quietMs, firstAt + maxMs)) {
      arm()
      return
    }
    firstAt = undefined
    try {
      work()
    } finally {
      const endedAt = monotonic()
      earliestAt = endedAt + (endedAt - now)
      arm()
    }
  }

  return {
    request() {
      const now = monotonic()
      lastAt = now
      firstAt ??= now
      if (timer === undefined) arm()
    },
    close() {
      isClosed = true
      clearTimeout(timer)
    },
  }
}
