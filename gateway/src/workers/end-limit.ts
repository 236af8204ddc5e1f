const maxEnds = 5
const windowMs = 60_000

/**
 * Counts the ends of data planes. The fifth within a minute calls `fail` instead of a replacement: an error
 * that ends one data plane after another must not continue unnoticed.
 */
export function createEndLimit(monotonic: () => number, fail: (error: Error) => void) {
  let ends: number[] = []
  return {
    /** Counts an end; returns whether the data plane may be replaced. */
    mayReplace(error: Error): boolean {
      const now = monotonic()
      ends = [...ends, now].filter((at) => now - at < windowMs)
      if (ends.length < maxEnds) return true
      fail(new Error(`data planes ended ${maxEnds} times within a minute: ${error.message}`))
      return false
    },
  }
}
