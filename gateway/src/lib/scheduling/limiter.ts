import type { Semaphore } from '../planes/semaphore.ts'

/** Concurrency limit; further work waits in order. */
export type Limiter = <T>(work: () => Promise<T>) => Promise<T>

/** Creates the limit of a semaphore. */
export function createLimiter(semaphore: Semaphore): Limiter {
  return async (work) => {
    if (!semaphore.tryAcquire()) {
      await new Promise<void>((enter) => semaphore.wait({ enter, isCancelled: () => false }))
    }
    try {
      return await work()
    } finally {
      semaphore.release()
    }
  }
}
