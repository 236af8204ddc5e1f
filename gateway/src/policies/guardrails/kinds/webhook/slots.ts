import type { Cancellation } from '../../../../lib/cancellation.ts'

/**
 * Semaphore of concurrent calls to one webhook server. Retained by origin, across guards, phases and reloads.
 */
export type Slots = {
  /** Sets the number of slots; 0 for no limit. */
  resize(max: number): void
  /** Acquires a slot; undefined if one is free. After a cancellation the promise never settles. */
  acquire(cancellation: Cancellation): Promise<void> | undefined
  release(): void
}

type Waiting = { enter(): void; cancellation: Cancellation }

export function createSlots(): Slots {
  let max = 0
  let taken = 0
  /** FIFO queue; cancelled waiters are skipped. */
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

  /** Removes cancelled waiters, which would accumulate for a hanging webhook. */
  function removeCancelled(): void {
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
      if (queue.length >= cleanupInterval && queue.length % cleanupInterval === 0) removeCancelled()
      return new Promise((enter) => queue.push({ enter, cancellation }))
    },
    release() {
      taken -= 1
      admit()
    },
  }
}

const cleanupInterval = 1_000
