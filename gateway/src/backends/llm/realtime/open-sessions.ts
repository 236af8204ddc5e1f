import type { CompileContext } from '../../../pipeline/compile-context.ts'

/** Open connections of realtime of one data plane. */
export type OpenSessions = {
  /** Adds a connection; returns its removal. `drain` ends it after its responses in progress. */
  add(drain: () => void): () => void
  /** Ends all connections, and those that are added later, at shutdown. */
  drainAll(): void
}

/** The open connections, across configurations. */
export function openSessionsOf({
  retained,
  metrics,
}: Pick<CompileContext, 'retained' | 'metrics'>): OpenSessions {
  return retained('llm/realtime', () => {
    const meter = metrics.admission('realtime_sessions')
    const open = new Set<() => void>()
    let isDraining = false
    return {
      add(drain) {
        open.add(drain)
        meter.changed(1)
        if (isDraining) drain()
        return () => {
          if (open.delete(drain)) meter.changed(-1)
        }
      },
      drainAll() {
        isDraining = true
        for (const drain of [...open]) drain()
      },
    }
  })
}
