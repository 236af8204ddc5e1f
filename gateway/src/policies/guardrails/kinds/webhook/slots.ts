import type { Cancellation } from '../../../../lib/cancellation.ts'

/** Calls that may be under way to one webhook server at once. Kept by origin, across guards, phases and reloads. */
export type Slots = {
  /** Changes how many there are; 0 for any number. */
  resize(max: number): void
  /** Waits for a slot. Whoever gives up waiting gets none: the promise stays open, as the caller has gone. */
  acquire(cancellation: Cancellation): Promise<void> | undefined
  release(): void
}

type Waiting = { enter(): void; cancellation: Cancellation }

export function createSlots(): Slots {
  let max = 0
  let taken = 0
  /** First come, first served; those that gave up are skipped when their turn comes. */
  let queue: Waiting[] = []
  let next = 0

  function admit(): void {
    while (next < queue.length && isFree()) {
      const waiting = queue[next]
      next += 1
      if (waiting === undefined || waiting.cancellation.cancelled) continue
      taken += 1
      waiting.enter()
    }
    if (next === queue.length) {
      queue = []
      next = 0
    }
  }

  function isFree(): boolean {
    return max === 0 || taken < max
  }

  /** A webhook that hangs must not collect those that gave up on it. */
  function forgetGone(): void {
    queue = queue.slice(next).filter(({ cancellation }) => !cancellation.cancelled)
    next = 0
  }

  return {
    resize(to) {
      max = to
      admit()
    },
    acquire(cancellation) {
      if (next === queue.length && isFree()) {
        taken += 1
        return undefined
      }
      if (queue.length >= forgetAbove && queue.length % forgetAbove === 0) forgetGone()
      return new Promise((enter) => queue.push({ enter, cancellation }))
    },
    release() {
      taken -= 1
      admit()
    },
  }
}

const forgetAbove = 1_000
