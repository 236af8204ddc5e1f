import type { Log } from '../../telemetry/log.ts'
import type { ResourceHost } from '../resources.ts'

/** Status of the database, by the results of its calls. */
export type DatabaseConnection = {
  /** `pending` until the first successful call. */
  readonly state: 'pending' | 'connected' | 'lost'
  readonly lastError: string | undefined
  succeeded(): void
  failed(error: Error): void
}

/** Reports changes of the status to the log and the host. */
export function createDatabaseConnection(host: ResourceHost, log: Log): DatabaseConnection {
  let state: DatabaseConnection['state'] = 'pending'
  let lastError: string | undefined
  return {
    get state() {
      return state
    },
    get lastError() {
      return lastError
    },
    succeeded() {
      if (state === 'lost') log.info({}, 'connection to the database of config resources restored')
      if (state !== 'connected' || lastError !== undefined) host.reportDatabase(undefined)
      state = 'connected'
      lastError = undefined
    },
    failed(error) {
      if (lastError === undefined) {
        log.error(
          { err: error },
          'the database of config resources cannot be reached, the last state keeps serving',
        )
      }
      if (lastError !== error.message) host.reportDatabase(error.message)
      lastError = error.message
      if (state === 'connected') state = 'lost'
    },
  }
}

/** Calls `run` after a delay that grows with the number of failures. */
export type Retry = { schedule(): void; reset(): void; close(): void }

export function createRetry(run: () => void, delayMs: (failures: number) => number): Retry {
  let failures = 0
  let timer: NodeJS.Timeout | undefined
  let isClosed = false
  return {
    schedule() {
      if (isClosed || timer !== undefined) return
      failures += 1
      timer = setTimeout(() => {
        timer = undefined
        run()
      }, delayMs(failures))
    },
    reset() {
      failures = 0
    },
    close() {
      isClosed = true
      clearTimeout(timer)
    },
  }
}

export function defaultRetryDelayMs(failures: number): number {
  return Math.min(5_000, 250 * 2 ** Math.min(failures, 5)) * (0.75 + Math.random() / 2)
}
