/**
 * Tells work in progress that nobody waits for its result any more.
 * Lighter than an AbortSignal, because one exists for every request.
 */
export type Cancellation = {
  readonly cancelled: boolean
  /** Calls `listener` once, at once when already cancelled. The returned function takes it back. */
  onCancel(listener: () => void): () => void
}

export type CancellationSource = Cancellation & { cancel(): void }

export function createCancellation(): CancellationSource {
  let cancelled = false
  let listeners: (() => void)[] = []
  return {
    get cancelled() {
      return cancelled
    },
    onCancel(listener) {
      if (cancelled) {
        listener()
        return () => {}
      }
      listeners.push(listener)
      return () => {
        listeners = listeners.filter((entry) => entry !== listener)
      }
    },
    cancel() {
      if (cancelled) return
      cancelled = true
      const waiting = listeners
      listeners = []
      for (const listener of waiting) listener()
    },
  }
}
