import type { SharedEntries } from './shared-entries.ts'

/** Limit on the open connections of all data planes to one upstream, idle ones included. */
export type ConnectionPermits = {
  /**
   * Calls `open` when a connection may be opened, at once if the limit is not reached. The returned function
   * ends the wait; without effect afterwards.
   */
  acquire(open: () => void): () => void
  /** Called after the end of a connection or of a failed attempt. */
  release(): void
  /** Called after the end of the pool. Its last connections may close later. */
  end(): void
}

export type PermitsOf = (upstream: string, max: number) => ConnectionPermits | undefined

/** Interval of attempts while connections wait for a permit. */
const retryMs = 20
/** Attempts between two requests to close idle connections. */
const retriesPerRequest = 10

/** Waiting connections to one upstream, in order, and attempts since the first of them. */
type Waiting = { readonly opens: Set<() => void>; attempts: number }

/**
 * Creates the limits by upstream: a name of origin and connection settings. `requestIdle` asks all data
 * planes to close idle connections to an upstream, because one of them needs a connection: an idle one would
 * occupy its permit until the end of its keep-alive time.
 */
export function createConnectionPermits(
  entries: SharedEntries,
  requestIdle: (upstream: string) => void,
): PermitsOf {
  const waitingOf = new Map<string, Waiting>()

  return (upstream, max) => {
    const entry = entries.of(upstream)
    if (entry === undefined) return undefined

    function openWaiting({ opens }: Waiting): void {
      for (const open of opens) {
        if (!entry?.tryAdd(max)) return
        opens.delete(open)
        open()
      }
    }

    /** Ends without waiting connections. Only one series of attempts exists per upstream. */
    function retry(waiting: Waiting): void {
      if (waiting.attempts % retriesPerRequest === 0) requestIdle(upstream)
      waiting.attempts += 1
      setTimeout(() => {
        openWaiting(waiting)
        if (waiting.opens.size > 0) retry(waiting)
        else waitingOf.delete(upstream)
      }, retryMs)
    }

    function wait(open: () => void): () => void {
      const present = waitingOf.get(upstream)
      const waiting = present ?? { opens: new Set(), attempts: 0 }
      if (waiting.opens.size === 0) waiting.attempts = 0
      waiting.opens.add(open)
      if (present === undefined) {
        waitingOf.set(upstream, waiting)
        retry(waiting)
      }
      return () => waiting.opens.delete(open)
    }

    return {
      acquire(open) {
        const isFirst = (waitingOf.get(upstream)?.opens.size ?? 0) === 0
        if (!isFirst || !entry.tryAdd(max)) return wait(open)
        open()
        return ignore
      },
      release() {
        entry.subtract()
        const waiting = waitingOf.get(upstream)
        if (waiting !== undefined) openWaiting(waiting)
      },
      end: entry.end,
    }
  }
}

function ignore(): void {}
