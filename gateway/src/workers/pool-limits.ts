/** Threads for large work of single requests, in the whole process. */
const poolThreads = 2
const poolLimits = { maxQueued: 64, maxQueuedBytes: 256 * 1024 * 1024, idleMs: 60_000 }

/** Limits of the thread pool of one of several data planes; each has a thread at least. */
export function poolLimitsOf(planes: number): typeof poolLimits & { maxThreads: number } {
  return { ...poolLimits, maxThreads: Math.max(1, Math.floor(poolThreads / planes)) }
}
