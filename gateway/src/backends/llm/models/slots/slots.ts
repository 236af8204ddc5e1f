import type { Cancellation } from '../../../../lib/cancellation.ts'
import { milliseconds } from '../../../../lib/duration.ts'
import { createGauge } from '../../../../lib/planes/gauge.ts'
import { createSemaphore } from '../../../../lib/planes/semaphore.ts'
import type { CompileContext } from '../../../../pipeline/compile-context.ts'
import type { ConcurrencyConfig } from '../../config/config.ts'

/** Slots of concurrent calls of a model, the same for all data planes, and a bounded queue for them. */
export type Slots = {
  readonly max: number
  /** Acquires a slot unless all are occupied. */
  tryAcquire(): boolean
  /** Waits for a slot; false if the queue is full, the time limit passes or the client disconnects. */
  wait(cancellation: Cancellation): Promise<boolean>
  release(): void
}

const defaultTimeoutMs = 5_000

/** Compiles `concurrency` of a model. `name` is the key of the slots across reloads. */
export function compileSlots(
  { max, queue = 0, timeout }: ConcurrencyConfig,
  name: string,
  { memory, retained }: CompileContext,
): Slots {
  const timeoutMs = milliseconds(timeout) ?? defaultTimeoutMs
  const state = retained(name, () => ({
    semaphore: createSemaphore(memory, name),
    waiting: createGauge(memory, name),
    max: 0,
  }))

  /** The semaphore with the number of slots of this configuration. */
  function semaphore() {
    if (state.max !== max) {
      state.max = max
      state.semaphore.resize(max)
    }
    return state.semaphore
  }

  return {
    max,
    tryAcquire: () => semaphore().tryAcquire(),
    wait(cancellation) {
      if (cancellation.cancelled || !state.waiting.tryAdd(1, queue)) return Promise.resolve(false)
      return new Promise((resolve) => {
        let isOver = false
        const timer = setTimeout(() => end(false), timeoutMs)

        function end(isAcquired: boolean): void {
          if (isOver) return
          isOver = true
          clearTimeout(timer)
          state.waiting.subtract(1)
          resolve(isAcquired)
        }

        cancellation.onCancel(() => end(false))
        semaphore().wait({
          enter() {
            if (isOver) state.semaphore.release()
            else end(true)
          },
          isCancelled: () => isOver,
        })
      })
    },
    release: () => state.semaphore.release(),
  }
}
