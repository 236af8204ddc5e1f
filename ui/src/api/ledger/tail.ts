import { ApiError, apiResponse } from '../client.ts'
import { readEvents } from '../events.ts'
import type { LogFilters } from './filters.ts'
import type { LogEntry } from './log-entry.ts'

/** State of a tail. `waiting`: the connection broke and is opened again after a pause. */
export type TailState =
  | { readonly kind: 'connecting' | 'open' }
  | { readonly kind: 'waiting'; readonly message: string }
  | { readonly kind: 'refused'; readonly error: ApiError }

export type TailListener = {
  /** `cursor`: position behind the request, to continue from. */
  onEntry(entry: LogEntry, cursor: string): void
  /** The server skipped requests, because there are more than it sends. */
  onSkipped(): void
  onState(state: TailState): void
}

const firstPauseMs = 500
const longestPauseMs = 15_000

/** Start of a tail: behind a request, or at a time (RFC 3339) with the newest requests since. */
export type TailStart = { readonly cursor: string } | { readonly from: string }

const firstRequests = 50

/**
 * Follows new requests until `signal` is aborted. Opens the stream again after its end and after an error,
 * behind the last received request, with growing pauses.
 */
export async function followRequests(
  { filters, start }: { filters: LogFilters; start: TailStart },
  { onEntry, onSkipped, onState }: TailListener,
  signal: AbortSignal,
): Promise<void> {
  let position = start
  let pauseMs = firstPauseMs
  while (!signal.aborted) {
    onState({ kind: 'connecting' })
    try {
      const body = {
        filters,
        limit: firstRequests,
        ...('cursor' in position ? position : { timeRange: position }),
      }
      const response = await apiResponse('/api/logs/tail', { method: 'POST', body, signal })
      onState({ kind: 'open' })
      pauseMs = firstPauseMs
      for await (const { event, data } of readEvents(response)) {
        if (event === 'skipped') onSkipped()
        if (event !== 'log') continue
        const received = JSON.parse(data) as { entry: LogEntry; cursor: string }
        position = { cursor: received.cursor }
        onEntry(received.entry, received.cursor)
      }
    } catch (error) {
      if (signal.aborted) return
      if (error instanceof ApiError && isFinal(error)) {
        onState({ kind: 'refused', error })
        return
      }
      onState({ kind: 'waiting', message: error instanceof Error ? error.message : String(error) })
    }
    await pause(pauseMs, signal)
    pauseMs = Math.min(longestPauseMs, pauseMs * 2)
  }
}

/** Whether a repetition would be refused again. */
function isFinal({ status }: ApiError): boolean {
  return status >= 400 && status < 500 && status !== 429
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(end, milliseconds)
    function end(): void {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      resolve()
    }
    signal.addEventListener('abort', end)
  })
}
