import { setTimeout as delay } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { messageOf } from '../../lib/thrown.ts'
import type { FromDatabaseThread, ToDatabaseThread } from './serve-calls.ts'

/** A thread with a database for all data planes of the process: SQLite blocks its thread. */
export type DatabaseThread<Request, Value> = {
  /** Rejects if the thread fails, ends, or does not respond in time. */
  call(request: Request): Promise<Value>
  /** Resolves when the thread has ended. */
  close(): Promise<void>
}

export type DatabaseThreadOptions<Notice> = {
  /** Entry of the thread, which calls `serveCalls`. */
  readonly script: URL
  /** `workerData`. */
  readonly start: unknown
  /** Name of the thread, for errors. */
  readonly name: string
  readonly callWaitMs: number
  /** Calls in progress; more reject. */
  readonly mostCalls: number
  onNotice?(notice: Notice): void
}

const closeWaitMs = 1_000

type Thread<Value> = { readonly worker: Worker; readonly waiting: Map<number, PromiseWithResolvers<Value>> }

/** Starts a thread with the first call, and again after it has ended, until it is closed. */
export function createDatabaseThread<Request, Value, Notice = never>(
  options: DatabaseThreadOptions<Notice>,
): DatabaseThread<Request, Value> {
  const { script, start, name, callWaitMs, mostCalls, onNotice } = options
  let thread: Thread<Value> | undefined
  let lastId = 0
  let isClosed = false

  function open(): Thread<Value> {
    const worker = new Worker(script, { workerData: start, execArgv: [], env: {}, name })
    const waiting: Thread<Value>['waiting'] = new Map()
    const opened = { worker, waiting }
    const end = (cause: unknown) => {
      if (thread === opened) thread = undefined
      for (const { reject } of waiting.values())
        reject(new Error(`the thread "${name}" has ended: ${messageOf(cause)}`))
    }
    worker.on('message', (message: FromDatabaseThread<Value, Notice>) => {
      if (message.kind === 'value') waiting.get(message.id)?.resolve(message.value)
      if (message.kind === 'failed') waiting.get(message.id)?.reject(new Error(message.message))
      if (message.kind === 'notice') onNotice?.(message.notice)
    })
    worker.on('error', end)
    worker.on('exit', (code) => end(new Error(`exit code ${code}`)))
    return opened
  }

  return {
    async call(request) {
      // Another thread would outlive the process that ends.
      if (isClosed) throw new Error(`the database of ${name} is closed`)
      thread ??= open()
      const { worker, waiting } = thread
      if (waiting.size >= mostCalls) throw new Error(`the database of ${name} is too slow`)
      lastId += 1
      const id = lastId
      const reply = Promise.withResolvers<Value>()
      waiting.set(id, reply)
      const late = () => reply.reject(new Error(`the database of ${name} does not respond`))
      const timer = setTimeout(late, callWaitMs)
      worker.postMessage({ kind: 'call', id, request } satisfies ToDatabaseThread<Request>)
      try {
        return await reply.promise
      } finally {
        clearTimeout(timer)
        waiting.delete(id)
      }
    },
    async close() {
      isClosed = true
      const closing = thread
      if (closing === undefined) return
      thread = undefined
      const closed = Promise.withResolvers<void>()
      closing.worker.on('message', ({ kind }: FromDatabaseThread<Value, Notice>) => {
        if (kind === 'closed') closed.resolve()
      })
      closing.worker.postMessage({ kind: 'close' } satisfies ToDatabaseThread<Request>)
      await Promise.race([closed.promise, delay(closeWaitMs, undefined, { ref: false })])
      await closing.worker.terminate()
    },
  }
}
