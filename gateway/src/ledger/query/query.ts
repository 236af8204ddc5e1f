import { Worker } from 'node:worker_threads'
import type { Log } from '../../telemetry/log.ts'
import { queryTimeoutMs } from './database/database.ts'
import type { LedgerOperations } from './operations.ts'
import type { QueryMessage, QueryOperation, QueryRequest, QuerySettings } from './protocol.ts'

/** The queries of the ledger. Reject with `QueryRefused`. */
export type LedgerQueries = LedgerOperations & { close(): Promise<void> }

/** A query that was not answered. The message is for clients. */
export class QueryRefused extends Error {
  /** `busy`: too many queries wait; `late`: it took too long; `unavailable`: the database, see `cause`. */
  readonly kind: 'busy' | 'late' | 'unavailable'

  constructor(kind: QueryRefused['kind'], cause?: unknown) {
    super(refusals[kind], { cause })
    this.name = 'QueryRefused'
    this.kind = kind
  }
}

const refusals = {
  busy: 'too many queries of the request log are waiting: try again later',
  late: 'the query takes too long: use a shorter time range or more filters',
  unavailable: 'the request log database does not respond: see the log',
} as const

export type QueryOptions = {
  readonly url: string
  readonly kind: 'sqlite' | 'postgres'
  /** Connections of the ledger to Postgres; one of them writes. */
  readonly maxConnections: number
  /** Time limit of a query in its thread; it is ended a little later. */
  readonly timeoutMs?: number
  readonly log: Log
}

type Waiting = {
  readonly operation: QueryOperation
  readonly input: unknown
  readonly response: PromiseWithResolvers<unknown>
}

type Running = Waiting & { readonly timer: NodeJS.Timeout }

type Thread = { readonly worker: Worker; readonly running: Map<number, Running> }

const maxWaiting = 200
const maxQueries = 4
/** Time after the limit of a query until its thread is given up. */
const graceMs = 2_000
/** Threads that were given up and have not ended: a disk that blocks would collect them. */
const maxAbandoned = 2

/** Source in a checkout, a bundle of its own in the package (scripts/build.ts). */
const threadUrl = import.meta.url.endsWith('.ts')
  ? new URL('./thread.ts', import.meta.url)
  : new URL('./ledger-queries.js', import.meta.url)

/**
 * Creates the queries of a ledger. They run in a thread that starts with the first one, read-only, and start
 * again after it has failed. At most `maxWaiting` of them wait.
 */
export function createLedgerQueries(options: QueryOptions): LedgerQueries {
  const { url, kind, maxConnections, timeoutMs = queryTimeoutMs + graceMs, log } = options
  const connections = kind === 'sqlite' ? 1 : Math.max(1, Math.min(maxQueries, maxConnections - 1))
  const settings: QuerySettings = { url, kind, connections }
  const waiting: Waiting[] = []
  let thread: Thread | undefined
  let lastId = 0
  let abandoned = 0

  function start(): Thread {
    const worker = new Worker(threadUrl, { workerData: settings, execArgv: [], env: {}, name: 'queries' })
    const started: Thread = { worker, running: new Map() }
    worker.unref()
    worker.on('message', (message: QueryMessage) => receive(started, message))
    worker.on('error', (error: Error) => end(started, error))
    worker.on('exit', (code) => end(started, new Error(`exit code ${code}`)))
    return started
  }

  function receive(from: Thread, message: QueryMessage): void {
    const query = from.running.get(message.id)
    if (query === undefined) return
    from.running.delete(message.id)
    clearTimeout(query.timer)
    if (message.kind === 'done') query.response.resolve(message.value)
    else {
      query.response.reject(new QueryRefused(message.reason, new Error(message.message)))
      log.warn({ operation: query.operation, reason: message.message }, 'ledger query failed')
    }
    next()
  }

  function end(ended: Thread, cause: unknown): void {
    if (thread === ended) thread = undefined
    for (const { timer, response } of ended.running.values()) {
      clearTimeout(timer)
      response.reject(new QueryRefused('unavailable', cause))
    }
    ended.running.clear()
    next()
  }

  /** A thread cannot be ended during a statement: it ends afterwards. */
  function abandon(late: Thread, id: number): void {
    const query = late.running.get(id)
    query?.response.reject(new QueryRefused('late'))
    late.running.delete(id)
    log.warn({ operation: query?.operation }, 'thread of ledger queries abandoned: a query does not end')
    abandoned += 1
    void late.worker.terminate().then(() => {
      abandoned -= 1
    })
    end(late, new Error('a query did not end'))
  }

  function next(): void {
    while (waiting.length > 0 && (thread?.running.size ?? 0) < connections) {
      if (abandoned >= maxAbandoned) {
        for (const { response } of waiting.splice(0)) response.reject(new QueryRefused('unavailable'))
        return
      }
      const query = waiting.shift()
      if (query !== undefined) send(query)
    }
  }

  function send(query: Waiting): void {
    thread ??= start()
    const current = thread
    lastId += 1
    const id = lastId
    const timer = setTimeout(() => abandon(current, id), timeoutMs)
    timer.unref()
    current.running.set(id, { ...query, timer })
    const request: QueryRequest = { id, operation: query.operation, input: query.input }
    current.worker.postMessage(request)
  }

  function run(operation: QueryOperation, input: unknown): Promise<unknown> {
    if (waiting.length >= maxWaiting) return Promise.reject(new QueryRefused('busy'))
    const response = Promise.withResolvers<unknown>()
    waiting.push({ operation, input, response })
    next()
    return response.promise
  }

  // The thread responds with the types of the operation; both sides are one version of one program.
  const operation = <Name extends QueryOperation>(name: Name): LedgerOperations[Name] =>
    ((input: unknown) => run(name, input)) as LedgerOperations[Name]

  return {
    search: operation('search'),
    findPositions: operation('findPositions'),
    readRequests: operation('readRequests'),
    readRequest: operation('readRequest'),
    summarize: operation('summarize'),
    readOptions: operation('readOptions'),
    exportPage: operation('exportPage'),
    readKeysUsed: operation('readKeysUsed'),
    async close() {
      for (const { response } of waiting.splice(0)) response.reject(new QueryRefused('unavailable'))
      const closing = thread
      if (closing === undefined) return
      end(closing, new Error('the process ends'))
      await closing.worker.terminate()
    },
  }
}
