/** Cancellation signal of a request. Lighter than an AbortSignal, because one exists for every request. */
export type Cancellation = {
  readonly cancelled: boolean
  /**
   * Calls `listener` once, immediately if already cancelled. Listeners live as long as the request and must
   * tolerate a late call.
   */
  onCancel(listener: () => void): void
}

export type CancellationSource = Cancellation & { cancel(): void }

export function createCancellation(): CancellationSource {
  let listeners: (() => void)[] | undefined
  const source = {
    cancelled: false,
    onCancel(listener: () => void) {
      if (source.cancelled) listener()
      else if (listeners) listeners.push(listener)
      else listeners = [listener]
    },
    cancel() {
      if (source.cancelled) return
      source.cancelled = true
      for (const listener of listeners ?? []) listener()
      listeners = undefined
    },
  }
  return source
}
