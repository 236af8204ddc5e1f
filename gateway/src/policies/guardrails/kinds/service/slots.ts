import type { Cancellation } from '../../../../lib/cancellation.ts'
import type { Memory } from '../../../../lib/planes/memory.ts'
import { createSemaphore } from '../../../../lib/planes/semaphore.ts'

/**
 * Semaphore of concurrent calls of the process to one guard service. Retained by server, across guards,
 * phases and reloads.
 */
export type Slots = {
  /** Sets the number of slots; 0 for no limit. */
  resize(max: number): void
  /** Acquires a slot; undefined if one is free. After a cancellation the promise never settles. */
  acquire(cancellation: Cancellation): Promise<void> | undefined
  release(): void
}

/** Creates slots without limit. */
export function createSlots(memory: Memory, server: string): Slots {
  const semaphore = createSemaphore(memory, `webhook calls ${server}`)
  return {
    resize(max) {
      semaphore.resize(max === 0 ? Number.POSITIVE_INFINITY : max)
    },
    acquire(cancellation) {
      if (semaphore.tryAcquire()) return undefined
      return new Promise((enter) => semaphore.wait({ enter, isCancelled: () => cancellation.cancelled }))
    },
    release: semaphore.release,
  }
}
