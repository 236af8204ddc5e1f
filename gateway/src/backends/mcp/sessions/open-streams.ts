import type { Federation } from '../federation/federation.ts'
import { isConfigured } from './session.ts'

/** Long-lived streams without a session: subscriptions of revision 2026-07-28. */
export type OpenStreams = {
  /** Adds a stream of these targets; returns its removal. */
  add(federation: Federation, end: () => void): () => void
  /** Ends streams with targets that differ from the configuration. */
  retain(federation: Federation): void
  /** Ends all streams, at shutdown. */
  endAll(): void
}

/** Creates the open streams of an endpoint. */
export function createOpenStreams(): OpenStreams {
  const streams = new Set<{ readonly federation: Federation; readonly end: () => void }>()
  return {
    add(federation, end) {
      const stream = { federation, end }
      streams.add(stream)
      return () => streams.delete(stream)
    },
    retain(current) {
      for (const stream of [...streams]) if (!isConfigured(stream, current)) stream.end()
    },
    endAll() {
      for (const { end } of [...streams]) end()
    },
  }
}
