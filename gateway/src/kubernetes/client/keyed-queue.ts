import { type BackOff, type BackOffLimits, createBackOff } from './back-off.ts'
import { ApiError } from './requests/api-error.ts'

/**
 * Queue of work by key: a key is processed by one worker at a time, and additions to a waiting key coalesce.
 */
export type KeyedQueue = {
  /** Processes the key soon; after its current attempt if there is one, or at the end of its back-off. */
  add(key: string): void
  /** Keys that wait, including those in back-off. */
  readonly size: number
  /** Forgets waiting keys and resolves once the current attempts have ended. */
  close(): Promise<void>
}

export type KeyedQueueOptions = {
  /** Processes a key. A rejection leads to another attempt after the back-off of the key. */
  readonly work: (key: string) => Promise<void>
  readonly failed: (key: string, error: unknown, retryMs: number) => void
  readonly concurrency: number
  readonly backOff?: BackOffLimits
  readonly random: () => number
}

const defaultBackOff = { minMs: 100, maxMs: 60_000 }

type Retry = { readonly backOff: BackOff; timer: NodeJS.Timeout | undefined }

export function createKeyedQueue(options: KeyedQueueOptions): KeyedQueue {
  const { work, failed, concurrency, backOff = defaultBackOff, random } = options
  /** In order of arrival. */
  const waiting = new Set<string>()
  const running = new Map<string, Promise<void>>()
  /** Keys whose last attempt failed. */
  const retries = new Map<string, Retry>()
  let isClosed = false

  function isInBackOff(key: string): boolean {
    return retries.get(key)?.timer !== undefined
  }

  async function attempt(key: string): Promise<void> {
    try {
      await work(key)
      retries.delete(key)
    } catch (error) {
      if (isClosed) return
      const retry = retries.get(key) ?? { backOff: createBackOff(backOff, random), timer: undefined }
      const retryMs = retry.backOff.next(error instanceof ApiError ? error : undefined)
      retry.timer = setTimeout(() => {
        retry.timer = undefined
        waiting.add(key)
        advance()
      }, retryMs)
      retries.set(key, retry)
      waiting.delete(key)
      failed(key, error, retryMs)
    }
  }

  function advance(): void {
    for (const key of waiting) {
      if (isClosed || running.size >= concurrency) return
      if (running.has(key) || isInBackOff(key)) continue
      waiting.delete(key)
      const done = attempt(key).finally(() => {
        running.delete(key)
        advance()
      })
      running.set(key, done)
    }
  }

  return {
    add(key) {
      if (isClosed || isInBackOff(key)) return
      waiting.add(key)
      advance()
    },
    get size() {
      return waiting.size + [...retries.values()].filter(({ timer }) => timer !== undefined).length
    },
    async close() {
      isClosed = true
      waiting.clear()
      for (const { timer } of retries.values()) clearTimeout(timer)
      retries.clear()
      await Promise.all(running.values())
    },
  }
}
