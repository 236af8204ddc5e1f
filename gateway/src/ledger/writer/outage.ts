/** Attempts to reach the database after an error, with increasing pauses. */
export type Outage = {
  /** Records a failed attempt. Returns the pause until the next one in milliseconds. */
  failed(message: string): number
  /** Records a successful use of the database. */
  succeeded(): void
  error(): string | undefined
}

export type OutageEvents = {
  started(message: string): void
  ended(ms: number): void
}

const firstPauseMs = 250
const maxPauseMs = 5_000

export function createOutage(monotonic: () => number, random: () => number, events: OutageEvents): Outage {
  let state: { kind: 'none' } | { kind: 'down'; since: number; pauseMs: number; error: string } = {
    kind: 'none',
  }

  return {
    failed(error) {
      if (state.kind === 'none') {
        state = { kind: 'down', since: monotonic(), pauseMs: firstPauseMs, error }
        events.started(error)
      } else {
        state = { ...state, error, pauseMs: Math.min(state.pauseMs * 2, maxPauseMs) }
      }
      // Replicas must not return at the same moment.
      return state.pauseMs * (0.75 + random() / 2)
    },
    succeeded() {
      if (state.kind === 'none') return
      const ms = monotonic() - state.since
      state = { kind: 'none' }
      events.ended(ms)
    },
    error: () => (state.kind === 'down' ? state.error : undefined),
  }
}
