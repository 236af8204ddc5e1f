import type { Clock } from '../../lib/clock.ts'
import type { Memory } from '../../lib/planes/memory.ts'
import { createRecentRecords } from '../../lib/planes/recent-records.ts'

/** Replay cache of single-use values, for all data planes. It evicts the least recently used ones first. */
export type ReplayCache = {
  /** Records a use; false if the value was used before. */
  tryUse(id: string): boolean
}

export function createReplayCache(
  memory: Memory,
  { name, capacity }: { name: string; capacity: number },
  clock: Pick<Clock, 'monotonic'>,
): ReplayCache {
  const used = createRecentRecords(memory, { name, maxRecords: capacity, size: 0 }, clock)
  return { tryUse: (id) => used.update(id, (_numbers, _from, isNew) => isNew) }
}
