import type { Clock } from '../../lib/clock.ts'

/** Serialises asynchronous work, in order of arrival. */
export type Mutex = {
  /**
   * Rejects with `late()` if the wait exceeds the limit. `run` receives the remaining time and is not
   * limited.
   */
  run<T>(waitMs: number, late: () => Error, run: (leftMs: number) => Promise<T>): Promise<T>
  /** Rejects all waiting calls. The running one is not affected. */
  rejectWaiting(error: Error): void
}

export function createMutex(clock: Clock): Mutex {
  let busy = false
  const waiting = new Set<{ start(): void; refuse(error: Error): void }>()

  const next = () => {
    const [first] = waiting
    busy = first !== undefined
    first?.start()
  }

  const turn = (waitMs: number, late: () => Error): Promise<void> => {
    if (!busy) {
      busy = true
      return Promise.resolve()
    }
    return new Promise((resolve, reject) => {
      const end = () => {
        waiting.delete(waiter)
        clearTimeout(timer)
      }
      const waiter = {
        start() {
          end()
          resolve()
        },
        refuse(error: Error) {
          end()
          reject(error)
        },
      }
      const timer = setTimeout(() => waiter.refuse(late()), waitMs)
      waiting.add(waiter)
    })
  }

  return {
    async run(waitMs, late, run) {
      const startedAt = clock.monotonic()
      await turn(waitMs, late)
      try {
        return await run(Math.max(1, waitMs - (clock.monotonic() - startedAt)))
      } finally {
        next()
      }
    },
    rejectWaiting(error) {
      for (const waiter of [...waiting]) waiter.refuse(error)
    },
  }
}
