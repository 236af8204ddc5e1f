import { setTimeout as delay } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import type { Clock } from '../../../lib/clock.ts'
import { sqliteMigrations } from '../migrations.ts'
import { createRecordStore } from '../record-store.ts'
import {
  type CommittedRows,
  type DriverEvents,
  maxStoredRemovals,
  pageRows,
  type RowChanges,
  type RowDelta,
  type RowDriver,
  type StoredRow,
} from '../row-driver.ts'
import { type ResourceStore, StoreUnavailable } from '../store.ts'
import {
  createValueCodec,
  type EncryptionSettings,
  readEncryptionKeys,
  type SecretPaths,
} from '../value-codec.ts'
import {
  runSqliteThread,
  type SqliteAnswer,
  type SqliteHead,
  type SqlitePage,
  type SqliteRequest,
  type SqliteThreadSettings,
} from './thread.ts'

/** Throws where a key of `EncryptionSettings` is none. */
export type SqliteStoreOptions = EncryptionSettings & {
  /** The file; it and its folder are created, for this user only. */
  path: string
  secretPaths: SecretPaths
  clock: Clock
  /** Called with the number of records when those of previous keys are encrypted with the current one. */
  onRotated?: (records: number) => void
  /** How often the file is asked whether another process has written to it. */
  pollMs?: number
}

/** Resources in a SQLite file, which several processes of one machine may share. Opens nothing until it is used. */
export function createSqliteStore(options: SqliteStoreOptions): ResourceStore {
  const { path, secretPaths, clock, pollMs = 250, onRotated } = options
  if (path === '' || path.includes('\0') || path.startsWith(':memory:')) {
    throw new Error(
      'config.database.url must name a file, for example sqlite:///var/lib/tollgate/tollgate.db',
    )
  }
  const settings: SqliteThreadSettings = {
    path,
    pollMs,
    migrations: sqliteMigrations,
    pageRows,
    keptRemovals: maxStoredRemovals,
  }
  const codec = createValueCodec(readEncryptionKeys(options), secretPaths)
  return createRecordStore((events) => createDriver(settings, events), { codec, clock, onRotated })
}

type Ask = {
  (request: Extract<SqliteRequest, { op: 'read' | 'begin' }>): Promise<SqliteHead>
  (request: Extract<SqliteRequest, { op: 'page' }>): Promise<SqlitePage>
  (request: Extract<SqliteRequest, { op: 'commit' }>): Promise<CommittedRows>
  (request: Extract<SqliteRequest, { op: 'rollback' | 'rewrite' | 'watch' | 'close' }>): Promise<undefined>
}

function createDriver(settings: SqliteThreadSettings, events: DriverEvents): RowDriver {
  const thread = createThread(settings, events)
  const { ask } = thread

  async function* pages(step: 'read' | 'begin'): AsyncGenerator<readonly StoredRow[]> {
    for (let isLast = false; !isLast; ) {
      const page = await ask({ op: 'page', step })
      isLast = page.isLast
      yield page.rows
    }
  }

  const deltaOf = (head: SqliteHead, step: 'read' | 'begin'): RowDelta => ({ ...head, pages: pages(step) })

  return {
    async read(since, use) {
      return await use(deltaOf(await ask({ op: 'read', since }), 'read'))
    },
    async write(since, waitMs, use) {
      const head = await ask({ op: 'begin', since, waitMs })
      let changes: RowChanges | undefined
      try {
        changes = await use(deltaOf(head, 'begin'))
      } catch (error) {
        await ask({ op: 'rollback' }).catch(() => undefined)
        throw error
      }
      if (changes !== undefined) return await ask({ op: 'commit', changes })
      await ask({ op: 'rollback' })
      return undefined
    },
    rewrite: (rows, waitMs) => ask({ op: 'rewrite', rows, waitMs }),
    watch: thread.watch,
    close: thread.close,
  }
}

const closeWaitMs = 5000

type Thread = { ask: Ask; watch(): void; close(): Promise<void> }

/** Starts the thread when it is first asked, and anew when it has died. */
function createThread(settings: SqliteThreadSettings, events: DriverEvents): Thread {
  type Running = { worker: Worker; pending: Map<number, PromiseWithResolvers<SqliteValue>> }
  let running: Running | undefined
  let isWatched = false
  let lastId = 0

  const start = (): Running => {
    const worker = new Worker(`(${runSqliteThread.toString()})()`, {
      eval: true,
      workerData: settings,
      execArgv: [],
      env: {},
      name: 'sqlite',
    })
    const pending: Running['pending'] = new Map()
    const started = { worker, pending }
    worker.on('message', (answer: SqliteAnswer) => receive(answer, pending))
    const onEnd = (cause: unknown) => {
      if (running === started) running = undefined
      const error = new StoreUnavailable('the thread of the SQLite database has ended', cause)
      for (const { reject } of pending.values()) reject(error)
      pending.clear()
    }
    worker.on('error', (error) => {
      onEnd(error)
      events.unavailable(new StoreUnavailable('the thread of the SQLite database has failed', error))
      if (isWatched) setTimeout(watch, settings.pollMs)
    })
    worker.on('exit', (code) => onEnd(new Error(`exit code ${code}`)))
    return started
  }

  const receive = (answer: SqliteAnswer, pending: Running['pending']) => {
    switch (answer.kind) {
      case 'at':
        return events.generation(answer.generation)
      case 'lost':
        return events.unavailable(new StoreUnavailable(answer.message, undefined))
      case 'replaced':
        return events.replaced()
    }
    const asked = pending.get(answer.id)
    pending.delete(answer.id)
    if (answer.kind === 'done') asked?.resolve(answer.value)
    else asked?.reject(new StoreUnavailable(answer.message, undefined))
  }

  const send = (request: SqliteRequest): Promise<SqliteValue> => {
    running ??= start()
    lastId += 1
    const answer = Promise.withResolvers<SqliteValue>()
    running.pending.set(lastId, answer)
    running.worker.postMessage({ id: lastId, request })
    return answer.promise
  }

  const watch = () => {
    if (isWatched) send({ op: 'watch' }).catch((error: Error) => events.unavailable(error))
  }

  return {
    // The thread answers each request with what belongs to it; both sides are one version of one program.
    ask: send as Ask,
    watch() {
      isWatched = true
      watch()
    },
    async close() {
      isWatched = false
      const ending = running
      if (ending === undefined) return
      const closed = send({ op: 'close' }).catch(() => undefined)
      // A thread that hangs on a disk is not waited for: what it has not committed is not in the file.
      await Promise.race([closed, delay(closeWaitMs, undefined, { ref: false })])
      running = undefined
      await ending.worker.terminate()
    },
  }
}

type SqliteValue = SqliteHead | SqlitePage | CommittedRows | undefined
