import type { Clock } from '../../lib/clock.ts'

/** Tells the watcher of a store when there is something to read. */
export type ChangeNotifier = {
  /** The database is at this generation. */
  observe(generation: number): void
  reportOutage(error: Error): void
  /** The error of an outage under way; undefined where nothing watches, because then its end is not noticed. */
  outage(): Error | undefined
  /** This generation has been read, so it needs no announcement. */
  markRead(generation: number): void
  /** A write of this process goes on until the result is called; what is seen meanwhile may well be its own commit. */
  beginWrite(): () => void
  watch(watcher: { onChange(): void; onLost(error: Error): void }): void
  close(): void
}

/** Changes that come faster are announced together. */
const restMs = 25
/** How long the notification of a commit may be ahead of the answer to the one who commits. */
const ownMs = 200
/** What has been announced but not read in this time is announced again: the read may have failed. */
const repeatMs = 1000

/** Announces a change at once and then rests, so that a storm of notifications is one change. */
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
      // The end of an outage does not wait: writes are refused until then.
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
