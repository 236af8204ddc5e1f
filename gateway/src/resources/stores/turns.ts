import type { Clock } from '../../lib/clock.ts'

/** Lets one run at a time, in order. */
export type Turns = {
  /** Rejects with `late()` when the turn has not come in time; the run itself is not limited. It is given the time left. */
  take<T>(waitMs: number, late: () => Error, run: (leftMs: number) => Promise<T>): Promise<T>
}

export function createTurns(clock: Clock): Turns {
  let busy = false
  const waiting = new Set<() => void>()

  const next = () => {
    const [first] = waiting
    busy = first !== undefined
    first?.()
  }

  const turn = (waitMs: number, late: () => Error): Promise<void> => {
    if (!busy) {
      busy = true
      return Promise.resolve()
    }
    return new Promise((resolve, reject) => {
      const start = () => {
        waiting.delete(start)
        clearTimeout(timer)
        resolve()
      }
      const timer = setTimeout(() => {
        waiting.delete(start)
        reject(late())
      }, waitMs)
      waiting.add(start)
    })
  }

  return {
    async take(waitMs, late, run) {
      const startedAt = clock.monotonic()
      await turn(waitMs, late)
      try {
        return await run(Math.max(1, waitMs - (clock.monotonic() - startedAt)))
      } finally {
        next()
      }
    },
  }
}
