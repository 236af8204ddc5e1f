import type { Clock } from '../../lib/clock.ts'

/** Notifies the watcher of a store of changes to read. */
export type ChangeNotifier = {
  /** The current generation of the database. */
  observe(generation: number): void
  reportOutage(error: Error): void
  /** Error of the current outage; undefined without a watcher, because its end would not be detected. */
  outage(): Error | undefined
  /** This generation was read and needs no notification. */
  markRead(generation: number): void
  /**
   * Starts a write of this process; the result ends it. Generations observed meanwhile may be its own commit.
   */
  beginWrite(): () => void
  watch(watcher: { onChange(): void; onLost(error: Error): void }): void
  close(): void
}

/** Minimum interval of notifications. */
const restMs = 25
/** Time by which the notification of a commit may precede the result of the commit. */
const ownMs = 200
/** Changes not read in this time are announced again: the read may have failed. */
const repeatMs = 1000

/** Notifies immediately, then at most once per interval, so that a burst of changes is one notification. */
export function createChangeNotifier(clock: Clock): ChangeNotifier {
  let watcher: { onChange(): void; onLost(error: Error): void } | undefined
  let known: number | undefined
  let seen: number | undefined
  let announced: { generation: number | undefined; at: number } = { generation: undefined, at: 0 }
  let outage: Error | undefined
  let writes = 0
  let resting: NodeJS.Timeout | undefined

  const isDue = (): boolean => {
    if (seen === known) return false
    if (announced.generation !== seen) return true
    return clock.monotonic() - announced.at >= repeatMs
  }

  const rest = (ms: number) => {
    resting = setTimeout(() => {
      resting = undefined
      if (isDue()) announce()
    }, ms)
  }

  const announce = () => {
    announced = { generation: seen, at: clock.monotonic() }
    rest(restMs)
    watcher?.onChange()
  }

  return {
    observe(generation) {
      seen = generation
      if (watcher === undefined) return
      // The end of an outage is not delayed: writes are refused until then.
      if (resting !== undefined && outage === undefined) return
      clearTimeout(resting)
      resting = undefined
      if (outage === undefined && writes > 0 && isDue()) return rest(ownMs)
      if (outage !== undefined || isDue()) announce()
      outage = undefined
    },
    reportOutage(error) {
      const isNews = outage === undefined
      outage = error
      if (isNews) watcher?.onLost(error)
    },
    outage: () => (watcher === undefined ? undefined : outage),
    markRead(generation) {
      known = generation
    },
    beginWrite() {
      writes += 1
      return () => {
        writes -= 1
      }
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
