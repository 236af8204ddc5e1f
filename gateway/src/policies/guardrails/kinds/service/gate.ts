import { type CancellationSource, createCancellation } from '../../../../lib/cancellation.ts'
import { CheckFailure, type CheckInput } from '../../guard.ts'
import type { Slots } from './slots.ts'

export type GateOptions = {
  /** Kind of the guard, the start of failure reasons. */
  readonly kind: string
  readonly slots: Slots
  readonly timeoutMs: number
}

/** Runs the calls of one check in a slot and within a time limit. */
export type Gate = <T>(
  exchange: CheckInput['exchange'],
  call: (cancellation: CancellationSource) => Promise<T>,
) => Promise<T>

/**
 * Creates a gate. One timeout covers the wait for a slot, the connections, and the heads and bodies of the
 * responses. The timeout, a failure and the end of the client's connection cancel the calls.
 */
export function createGate({ kind, slots, timeoutMs }: GateOptions): Gate {
  return (exchange, call) =>
    new Promise((resolve, reject) => {
      const cancellation = createCancellation()
      let state: 'waiting' | 'calling' | 'settled' = 'waiting'
      const timer = setTimeout(() => refuse(new CheckFailure(`${kind} timed out`)), timeoutMs)
      exchange.cancellation.onCancel(() => refuse(new CheckFailure('the client closed the connection')))

      function settle(): boolean {
        const before = state
        state = 'settled'
        if (before === 'settled') return false
        clearTimeout(timer)
        if (before === 'calling') slots.release()
        return true
      }

      function refuse(error: unknown): void {
        // Settles before the cancellation, which makes the calls fail with another error.
        if (!settle()) return
        reject(error)
        cancellation.cancel()
      }

      function enter(): void {
        // The caller was cancelled while waiting.
        if (state === 'settled') {
          slots.release()
          return
        }
        state = 'calling'
        call(cancellation).then((result) => {
          if (settle()) resolve(result)
        }, refuse)
      }

      const turn = slots.acquire(cancellation)
      if (turn === undefined) enter()
      else void turn.then(enter)
    })
}
