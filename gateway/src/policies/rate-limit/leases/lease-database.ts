import { setTimeout as delay } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import type { ExchangeLeases, LeaseReplies } from '../../../lib/planes/lease-exchange.ts'
import { asError, messageOf } from '../../../lib/thrown.ts'
import type { Log } from '../../../telemetry/log.ts'
import type { FromLeaseThread, LeaseThreadStart, ToLeaseThread } from './lease-thread.ts'

/** The database of shared limits, for all data planes of the process. */
export type LeaseDatabase = { readonly exchange: ExchangeLeases; close(): Promise<void> }

export type LeaseDatabaseOptions = {
  /** Undefined without a database: each exchange rejects. */
  readonly url: string | undefined
  /** Identity of this process: a UUID. */
  readonly process: string
  readonly log: Log
  /** Reports whether shared limits are counted together with other processes. */
  report(isConnected: boolean): void
}

/** Source in a checkout, a bundle of its own in the package (scripts/bundle.ts). */
const threadUrl = import.meta.url.endsWith('.ts')
  ? new URL('./lease-thread.ts', import.meta.url)
  : new URL('./lease-thread.js', import.meta.url)

const exchangeWaitMs = 10_000
const slowExchangeMs = 1_000
const closeWaitMs = 1_000

type Thread = { readonly worker: Worker; readonly waiting: Map<number, PromiseWithResolvers<LeaseReplies>> }

/** Starts a thread with the first exchange, and again after it has ended. */
export function createLeaseDatabase({ url, process, log, report }: LeaseDatabaseOptions): LeaseDatabase {
  let thread: Thread | undefined
  let lastId = 0
  let isConnected: boolean | undefined

  function connected(): void {
    if (isConnected === false) log.info({}, 'shared limits counted together again')
    if (isConnected !== true) report(true)
    isConnected = true
  }

  function failed(error: Error): void {
    if (isConnected !== false) {
      log.error({ err: error }, 'database of shared limits not available, limits counted by process')
      report(false)
    }
    isConnected = false
  }

  function send(opened: Thread, message: ToLeaseThread): void {
    opened.worker.postMessage(message)
  }

  async function exchange(reports: Parameters<ExchangeLeases>[0]): Promise<LeaseReplies> {
    if (url === undefined)
      throw new Error('shared limits require config.database.url, which is read at start')
    thread ??= startThread({ url, process }, (ended) => {
      if (thread === ended) thread = undefined
    })
    const { waiting } = thread
    lastId += 1
    const id = lastId
    const replies = Promise.withResolvers<LeaseReplies>()
    waiting.set(id, replies)
    const late = () => new Error('the database of shared limits does not respond')
    // Data planes count by themselves from now on (`lease-client.ts`).
    const slow = setTimeout(() => failed(late()), slowExchangeMs)
    const timer = setTimeout(() => replies.reject(late()), exchangeWaitMs)
    send(thread, { kind: 'exchange', id, reports })
    try {
      return await replies.promise
    } finally {
      clearTimeout(slow)
      clearTimeout(timer)
      waiting.delete(id)
    }
  }

  return {
    async exchange(reports) {
      try {
        const replies = await exchange(reports)
        connected()
        return replies
      } catch (error) {
        failed(asError(error))
        throw error
      }
    },
    async close() {
      const closing = thread
      if (closing === undefined) return
      thread = undefined
      const closed = Promise.withResolvers<void>()
      closing.worker.on('message', ({ kind }: FromLeaseThread) => {
        if (kind === 'closed') closed.resolve()
      })
      send(closing, { kind: 'close' })
      await Promise.race([closed.promise, delay(closeWaitMs, undefined, { ref: false })])
      await closing.worker.terminate()
    },
  }
}

function startThread(start: LeaseThreadStart, onEnd: (thread: Thread) => void): Thread {
  const worker = new Worker(threadUrl, { workerData: start, execArgv: [], env: {}, name: 'shared limits' })
  const thread: Thread = { worker, waiting: new Map() }
  const end = (cause: unknown) => {
    for (const { reject } of thread.waiting.values())
      reject(new Error(`the thread of shared limits has ended: ${messageOf(cause)}`))
    onEnd(thread)
  }
  worker.on('message', (message: FromLeaseThread) => {
    if (message.kind === 'replies') thread.waiting.get(message.id)?.resolve(message.value)
    if (message.kind === 'failed') thread.waiting.get(message.id)?.reject(new Error(message.message))
  })
  worker.on('error', end)
  worker.on('exit', (code) => end(new Error(`exit code ${code}`)))
  return thread
}
