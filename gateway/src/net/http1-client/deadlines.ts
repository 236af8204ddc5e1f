/** An object with a time limit. */
export type Limited = {
  /** Result of `Deadlines.after`; infinite without a limit. */
  deadline: number
  expire(): void
}

/**
 * Coarse time limits of many connections with one timer. A limit passes up to two ticks late and never early,
 * and not by the time for which the event loop was blocked: received data is read first.
 */
export type Deadlines = {
  /** The deadline in so many milliseconds. */
  after(ms: number): number
  add(item: Limited): void
  remove(item: Limited): void
}

const tickMs = 100

/** Longest time that one tick adds. */
const maxTickMs = 1_000

export function createDeadlines(): Deadlines {
  const items = new Set<Limited>()
  let now = 0
  let lastTick = 0
  let timer: NodeJS.Timeout | undefined

  function tick(): void {
    const time = performance.now()
    now += Math.min(time - lastTick, maxTickMs)
    lastTick = time
    for (const item of items) if (item.deadline <= now) item.expire()
  }

  return {
    after: (ms) => now + ms + tickMs,
    add(item) {
      items.add(item)
      if (timer !== undefined) return
      lastTick = performance.now()
      timer = setInterval(tick, tickMs).unref()
    },
    remove(item) {
      items.delete(item)
      if (items.size > 0) return
      clearInterval(timer)
      timer = undefined
    },
  }
}
