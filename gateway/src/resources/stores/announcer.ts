import type { Clock } from '../../lib/clock.ts'

/** Tells the watcher of a store when there is something to read. */
export type Announcer = {
  /** The database is at this generation. */
  at(generation: number): void
  lost(error: Error): void
  /** This generation has been read, so it needs no announcement. */
  known(generation: number): void
  watch(watcher: { onChange(): void; onLost(error: Error): void }): void
  close(): void
}

/** Changes that come faster are announced together. */
const restMs = 25
/** What has been announced but not read in this time is announced again: the read may have failed. */
const repeatMs = 1000

/** Announces a change at once and then rests, so that a storm of notifications is one change. */
export function createAnnouncer(clock: Clock): Announcer {
  let watcher: { onChange(): void; onLost(error: Error): void } | undefined
  let known: number | undefined
  let seen: number | undefined
  let announced: { generation: number | undefined; at: number } = { generation: undefined, at: 0 }
  let isLost = false
  let resting: NodeJS.Timeout | undefined

  const isDue = (): boolean => {
    if (seen === known) return false
    if (announced.generation !== seen) return true
    return clock.monotonic() - announced.at >= repeatMs
  }

  const announce = () => {
    announced = { generation: seen, at: clock.monotonic() }
    resting = setTimeout(() => {
      resting = undefined
      if (isDue()) announce()
    }, restMs)
    watcher?.onChange()
  }

  return {
    at(generation) {
      seen = generation
      if (watcher === undefined || resting !== undefined) return
      if (isLost || isDue()) announce()
      isLost = false
    },
    lost(error) {
      if (isLost) return
      isLost = true
      watcher?.onLost(error)
    },
    known(generation) {
      known = generation
    },
    watch(newWatcher) {
      watcher = newWatcher
    },
    close() {
      watcher = undefined
      clearTimeout(resting)
    },
  }
}
