import { setTimeout as delay } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { DatabaseUnavailable } from '../../../database/database-unavailable.ts'
import type { CommittedRows, DriverEvents, HistoryRows } from '../row-driver.ts'
import type {
  SqliteHead,
  SqliteMessage,
  SqlitePage,
  SqliteRequest,
  SqliteThreadSettings,
  SqliteValue,
} from './protocol.ts'

/** Sends requests to the thread of a database. Rejects with `DatabaseUnavailable`. */
export type SqliteClient = {
  readonly request: SendRequest
  /** Polls for changes of other processes, also after a restart of the thread. */
  watch(): void
  close(): Promise<void>
}

type SendRequest = {
  (request: Extract<SqliteRequest, { op: 'read' | 'begin' }>): Promise<SqliteHead>
  (request: Extract<SqliteRequest, { op: 'page' }>): Promise<SqlitePage>
  (request: Extract<SqliteRequest, { op: 'commit' }>): Promise<CommittedRows>
  (request: Extract<SqliteRequest, { op: 'history' }>): Promise<HistoryRows>
  (request: Extract<SqliteRequest, { op: 'rollback' | 'rewrite' | 'watch' | 'close' }>): Promise<undefined>
}

type Thread = {
  readonly worker: Worker
  readonly pending: Map<number, PromiseWithResolvers<SqliteValue>>
}

const closeWaitMs = 5000

/** Source in a checkout, a bundle of its own in the package (scripts/build.ts). */
const threadUrl = import.meta.url.endsWith('.ts')
  ? new URL('./thread.ts', import.meta.url)
  : new URL('./sqlite-thread.js', import.meta.url)

/** Starts the thread with the first request, and again after it has ended. */
export function createSqliteClient(settings: SqliteThreadSettings, events: DriverEvents): SqliteClient {
  let thread: Thread | undefined
  let isWatched = false
  let lastId = 0

  const start = (): Thread => {
    const started = startThread(settings, events, (error) => {
      if (thread === started) thread = undefined
      if (error === undefined) return
      events.unavailable(new DatabaseUnavailable('the thread of the SQLite database has failed', error))
      if (isWatched) setTimeout(watch, settings.pollMs)
    })
    return started
  }

  const send = (request: SqliteRequest): Promise<SqliteValue> => {
    thread ??= start()
    lastId += 1
    const response = Promise.withResolvers<SqliteValue>()
    thread.pending.set(lastId, response)
    thread.worker.postMessage({ id: lastId, request })
    return response.promise
  }

  const watch = (): void => {
    if (isWatched) send({ op: 'watch' }).catch((error: Error) => events.unavailable(error))
  }

  return {
    // The thread responds with the type of the request; both sides are one version of one program.
    request: send as SendRequest,
    watch() {
      isWatched = true
      watch()
    },
    async close() {
      isWatched = false
      const ending = thread
      if (ending === undefined) return
      const closed = send({ op: 'close' }).catch(() => undefined)
      // A thread blocked by a disk is terminated: uncommitted changes are not in the file.
      await Promise.race([closed, delay(closeWaitMs, undefined, { ref: false })])
      thread = undefined
      await ending.worker.terminate()
    },
  }
}

/** `onEnd` receives the error of a failed thread. Pending requests are rejected. */
function startThread(
  settings: SqliteThreadSettings,
  events: DriverEvents,
  onEnd: (error: Error | undefined) => void,
): Thread {
  const worker = new Worker(threadUrl, { workerData: settings, execArgv: [], env: {}, name: 'sqlite' })
  const pending: Thread['pending'] = new Map()
  const rejectPending = (cause: unknown) => {
    const error = new DatabaseUnavailable('the thread of the SQLite database has ended', cause)
    for (const { reject } of pending.values()) reject(error)
    pending.clear()
  }
  worker.on('message', (message: SqliteMessage) => receive(message, pending, events))
  worker.on('error', (error: Error) => {
    rejectPending(error)
    onEnd(error)
  })
  worker.on('exit', (code) => {
    rejectPending(new Error(`exit code ${code}`))
    onEnd(undefined)
  })
  return { worker, pending }
}

function receive(message: SqliteMessage, pending: Thread['pending'], events: DriverEvents): void {
  switch (message.kind) {
    case 'generation':
      events.generation(message.generation)
      break
    case 'unavailable':
      events.unavailable(new DatabaseUnavailable(message.message, undefined))
      break
    case 'replaced':
      events.replaced()
      break
    case 'done':
      pending.get(message.id)?.resolve(message.value)
      pending.delete(message.id)
      break
    case 'failed':
      pending.get(message.id)?.reject(new DatabaseUnavailable(message.message, undefined))
      pending.delete(message.id)
  }
}
