/** Concurrency limit; further work waits in order. */
export type Limiter = <T>(work: () => Promise<T>) => Promise<T>

export function createLimiter(most: number): Limiter {
  const waiting: (() => void)[] = []
  let underWay = 0

  function release(): void {
    const next = waiting.shift()
    if (next) next()
    else underWay -= 1
  }

  return async (work) => {
    // Finished work passes its slot to the first waiting.
    if (underWay >= most) await new Promise<void>((begin) => waiting.push(begin))
    else underWay += 1
    try {
      return await work()
    } finally {
      release()
    }
  }
}
