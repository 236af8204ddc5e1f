import { writeFileSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

/**
 * Preloaded into a process started with --expose-gc. On SIGUSR2 it writes the memory use after a full
 * collection to `memory.json` in the working folder.
 */

export type MemoryReport = { heapBytes: number; residentBytes: number }

if (isMainThread) {
  process.on('SIGUSR2', () => {
    globalThis.gc?.()
    // Finalizers run between two collections.
    setTimeout(() => {
      globalThis.gc?.()
      const { heapUsed, external, rss } = process.memoryUsage()
      const report: MemoryReport = { heapBytes: heapUsed + external, residentBytes: rss }
      writeFileSync('memory.json', JSON.stringify(report))
    }, 200)
  })
}
