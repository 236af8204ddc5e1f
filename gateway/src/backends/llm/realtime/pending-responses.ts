import type { Clock } from '../../../lib/clock.ts'
import type { JsonValue } from '../../../lib/json/json.ts'

/** Error of the provider: the event that it refuses, if it names one, and its code. */
export type ProviderError = {
  readonly eventId: string | undefined
  readonly code?: JsonValue | undefined
}

/** Responses that the client has requested, and the provider has not created, in order. */
export type PendingResponses<Turn> = {
  readonly count: number
  add(turn: Turn): void
  /** Removes the first one, which the provider has created. */
  takeFirst(): Turn | undefined
  /** Removes the one that an error refuses. An error without event may refuse the only one. */
  takeRefused(error: ProviderError): Turn | undefined
  /** Removes those that the provider has neither created nor refused in time. */
  takeLate(): { readonly turn: Turn; readonly isRefused: boolean }[]
  takeAll(): Turn[]
}

/** Longest time from the request of a response to its start. */
const maxStartMs = 60_000

/** Longest time from an error without event, which may concern another event, to the start of a response. */
const maxStartAfterErrorMs = 5_000

/** Codes of errors that refuse the request of a response. Requests are processed in order. */
const codesOfResponses: ReadonlySet<unknown> = new Set(['conversation_already_has_active_response'])

export function createPendingResponses<Turn extends { readonly eventId: string | undefined }>(
  clock: Pick<Clock, 'monotonic'>,
): PendingResponses<Turn> {
  let pending: { readonly turn: Turn; readonly until: number; readonly isRefused: boolean }[] = []

  return {
    get count() {
      return pending.length
    },
    add(turn) {
      pending.push({ turn, until: clock.monotonic() + maxStartMs, isRefused: false })
    },
    takeFirst: () => pending.shift()?.turn,
    takeRefused({ eventId, code }) {
      if (eventId !== undefined) {
        const index = pending.findIndex(({ turn }) => turn.eventId === eventId)
        return index === -1 ? undefined : pending.splice(index, 1)[0]?.turn
      }
      if (codesOfResponses.has(code)) return pending.shift()?.turn
      const [only] = pending
      if (only === undefined || pending.length > 1 || only.isRefused) return undefined
      const until = Math.min(only.until, clock.monotonic() + maxStartAfterErrorMs)
      pending = [{ turn: only.turn, until, isRefused: true }]
      return undefined
    },
    takeLate() {
      const now = clock.monotonic()
      const late = pending.filter(({ until }) => now >= until)
      if (late.length > 0) pending = pending.filter(({ until }) => now < until)
      return late
    },
    takeAll: () => pending.splice(0).map(({ turn }) => turn),
  }
}
