import type { Clock } from '../clock.ts'

/**
 * Queue of large work on the main thread, processed in slices: all of it together uses at most half of the
 * time.
 */
export type WorkQueue = {
  /** Runs steps to completion; each step must be short. Rejects with the error of a step. */
  run<T>(steps: Iterator<unknown, T>): Promise<T>
}

/** Length of a slice, followed by a pause of the same length. */
const sliceMs = 4

type Job = { advance(deadline: number): 'done' | 'more' }

/**
 * Creates the queue, one per process, so that slices of many requests do not add up. Jobs run round-robin, so
 * that none waits for a larger one.
 */
export function createWorkQueue({ monotonic }: Pick<Clock, 'monotonic'>): WorkQueue {
  const jobs: Job[] = []
  let scheduled = false
  let restUntil = 0

  function schedule(): void {
    if (scheduled || jobs.length === 0) return
    scheduled = true
    const pauseMs = restUntil - monotonic()
    if (pauseMs > 0) setTimeout(slice, pauseMs)
    else setImmediate(slice)
  }

  function slice(): void {
    scheduled = false
    const startedAt = monotonic()
    const deadline = startedAt + sliceMs
    do {
      const job = jobs.shift()
      if (job === undefined) break
      if (job.advance(deadline) === 'more') jobs.push(job)
    } while (monotonic() < deadline)
    const endedAt = monotonic()
    restUntil = endedAt + (endedAt - startedAt)
    schedule()
  }

  return {
    run: <T>(steps: Iterator<unknown, T>) =>
      new Promise<T>((resolve, reject) => {
        jobs.push({
          advance(deadline) {
            try {
              do {
                const step = steps.next()
                if (!step.done) continue
                resolve(step.value)
                return 'done'
              } while (monotonic() < deadline)
              return 'more'
            } catch (error) {
              reject(error)
              return 'done'
            }
          },
        })
        schedule()
      }),
  }
}
