import type { SharedEntries } from './shared-entries.ts'

/** Limit on the open connections of all data planes to one upstream, idle ones included. */
export type ConnectionPermits = {
  /** Calls `open` when a connection may be opened, at once if the limit is not reached. */
  acquire(open: () => void): void
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

/**
 * Creates the limits by upstream: a name of origin and connection settings. `requestIdle` asks all data
 * planes to close idle connections to an upstream, because one of them needs a connection: an idle one would
 * occupy its permit until the end of its keep-alive time.
 */
export function createConnectionPermits(
  entries: SharedEntries,
  requestIdle: (upstream: string) => void,
): PermitsOf {
  /** Waiting connections by upstream, in order. */
  const waiting = new Map<string, (() => void)[]>()

  return (upstream, max) => {
    const entry = entries.of(upstream)
    if (entry === undefined) return undefined

    /** Opens waiting connections; false if some still wait. */
    function openWaiting(): boolean {
      const queue = waiting.get(upstream) ?? []
      while (queue.length > 0 && entry?.tryAdd(max)) queue.shift()?.()
      if (queue.length === 0) waiting.delete(upstream)
      return queue.length === 0
    }

    function retry(attempt: number): void {
      if (attempt % retriesPerRequest === 0) requestIdle(upstream)
      setTimeout(() => {
        if (!openWaiting()) retry(attempt + 1)
      }, retryMs)
    }

    return {
      acquire(open) {
        const queue = waiting.get(upstream)
        if (queue !== undefined) queue.push(open)
        else if (entry.tryAdd(max)) open()
        else {
          waiting.set(upstream, [open])
          retry(0)
        }
      },
      release() {
        entry.subtract()
        openWaiting()
      },
      end: entry.end,
    }
  }
}
