import { useEffect, useMemo, useRef, useState } from 'react'
import type { LogFilters } from '../../../api/ledger/filters.ts'
import type { LogEntry } from '../../../api/ledger/log-entry.ts'
import { followRequests, type TailStart, type TailState } from '../../../api/ledger/tail.ts'

/** Most requests that are displayed; older ones are dropped. */
export const maxShown = 300
const drawMs = 250
/** Requests of this time are displayed at the start. */
const recentMs = 300_000

type Tail = {
  /** Newest first. */
  readonly entries: readonly LogEntry[]
  readonly received: number
  readonly skipped: boolean
  readonly state: TailState
  clear(): void
}

type Content = { entries: readonly LogEntry[]; received: number; skipped: boolean }

const empty: Content = { entries: [], received: 0, skipped: false }

/** Follows new requests while the page is visible and not paused. Draws four times a second at most. */
export function useTail(filters: LogFilters, paused: boolean): Tail {
  const [content, setContent] = useState(empty)
  const [state, setState] = useState<TailState>({ kind: 'connecting' })
  const isVisible = useVisible()
  const waiting = useRef<LogEntry[]>([])
  const key = useMemo(() => JSON.stringify(filters), [filters])
  const lastKey = useRef(key)
  /** Behind the last received request: a pause loses none. */
  const start = useRef<TailStart>(undefined)
  useEffect(() => {
    if (lastKey.current !== key) {
      setContent(empty)
      start.current = undefined
    }
    lastKey.current = key
    if (paused || !isVisible) return
    const abort = new AbortController()
    const timer = setInterval(() => {
      if (waiting.current.length === 0) return
      const fresh = waiting.current.reverse()
      waiting.current = []
      setContent(({ entries, received, skipped }) => ({
        entries: [...fresh, ...entries].slice(0, maxShown),
        received: received + fresh.length,
        skipped,
      }))
    }, drawMs)
    void followRequests(
      {
        filters: JSON.parse(key) as LogFilters,
        start: start.current ?? { from: new Date(Date.now() - recentMs).toISOString() },
      },
      {
        onEntry: (entry, cursor) => {
          start.current = { cursor }
          waiting.current.push(entry)
          if (waiting.current.length > maxShown) waiting.current.shift()
        },
        onSkipped: () => setContent((current) => ({ ...current, skipped: true })),
        onState: setState,
      },
      abort.signal,
    )
    return () => {
      clearInterval(timer)
      abort.abort()
    }
  }, [key, paused, isVisible])
  return { ...content, state, clear: () => setContent(empty) }
}

function useVisible(): boolean {
  const [isVisible, setIsVisible] = useState(document.visibilityState === 'visible')
  useEffect(() => {
    const update = () => setIsVisible(document.visibilityState === 'visible')
    document.addEventListener('visibilitychange', update)
    return () => document.removeEventListener('visibilitychange', update)
  }, [])
  return isVisible
}
