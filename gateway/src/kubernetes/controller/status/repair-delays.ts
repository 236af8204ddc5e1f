import type { Clock } from '../../../lib/clock.ts'
import type { ObjectStatus } from '../../translate/status/object-status.ts'

/**
 * Delays of writes that repair a status which something else has replaced. Without them, two controllers with
 * the same name would replace each other's status without end.
 */
export type RepairDelays = {
  /** Whether a write has to wait; then `retry` is called later. */
  mustWait(id: string, status: ObjectStatus | undefined): boolean
  written(id: string, status: ObjectStatus | undefined): void
  forget(id: string): void
  close(): void
}

const firstDelayMs = 1_000
const maxDelayMs = 300_000
/** After this time without a repair, the next one is immediate. */
const quietMs = 600_000
/** Entries that are not needed any more are removed above this number. */
const pruneAbove = 1_000

type Repairs = {
  readonly status: ObjectStatus | undefined
  readonly writtenAt: number
  /** Writes of the same status. */
  readonly count: number
}

export function createRepairDelays(
  { monotonic }: Pick<Clock, 'monotonic'>,
  retry: (id: string) => void,
): RepairDelays {
  const repairs = new Map<string, Repairs>()
  const timers = new Map<string, NodeJS.Timeout>()

  function prune(now: number): void {
    for (const [id, { writtenAt }] of repairs) if (now - writtenAt > quietMs) repairs.delete(id)
  }

  return {
    mustWait(id, status) {
      const last = repairs.get(id)
      if (last === undefined || last.status !== status) return false
      const delayMs = Math.min(maxDelayMs, firstDelayMs * 2 ** (last.count - 1))
      const waitMs = last.writtenAt + delayMs - monotonic()
      if (waitMs <= 0) return false
      if (!timers.has(id)) {
        const timer = setTimeout(() => {
          timers.delete(id)
          retry(id)
        }, waitMs)
        timers.set(id, timer)
      }
      return true
    },
    written(id, status) {
      const now = monotonic()
      const last = repairs.get(id)
      const isRepeated = last !== undefined && last.status === status && now - last.writtenAt < quietMs
      repairs.set(id, { status, writtenAt: now, count: isRepeated ? last.count + 1 : 1 })
      if (repairs.size > pruneAbove) prune(now)
    },
    forget(id) {
      clearTimeout(timers.get(id))
      timers.delete(id)
      repairs.delete(id)
    },
    close() {
      for (const timer of timers.values()) clearTimeout(timer)
      timers.clear()
    },
  }
}
