/** Runs work of which a bounded number is under way at once; the rest waits in order. */
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
    // The place of work that is over goes to the first that waits.
    if (underWay >= most) await new Promise<void>((begin) => waiting.push(begin))
    else underWay += 1
    try {
      return await work()
    } finally {
      release()
    }
  }
}
