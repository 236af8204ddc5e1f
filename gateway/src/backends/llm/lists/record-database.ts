import { setTimeout as delay } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import type { CallObjectRecords, FoundObjects, ObjectRequest } from '../../../lib/planes/object-records.ts'
import { messageOf } from '../../../lib/thrown.ts'
import type { FromRecordThread, ToRecordThread } from './record-thread.ts'

/** The record of objects of clients, for all data planes of the process. */
export type RecordDatabase = { readonly call: CallObjectRecords; close(): Promise<void> }

/** Source in a checkout, a bundle of its own in the package (scripts/bundle.ts). */
const threadUrl = import.meta.url.endsWith('.ts')
  ? new URL('./record-thread.ts', import.meta.url)
  : new URL('./record-thread.js', import.meta.url)

const callWaitMs = 5_000
const closeWaitMs = 1_000
/** Calls in progress: more are refused. */
const mostCalls = 1_000

type Thread = { readonly worker: Worker; readonly waiting: Map<number, PromiseWithResolvers<FoundObjects>> }

/**
 * Starts a thread with the first call, and again after it has ended. `url` is undefined without a database:
 * each call rejects.
 */
export function createRecordDatabase(url: string | undefined): RecordDatabase {
  let thread: Thread | undefined
  let lastId = 0

  function start(address: string): Thread {
    const worker = new Worker(threadUrl, { workerData: address, execArgv: [], env: {}, name: 'llm objects' })
    const waiting: Thread['waiting'] = new Map()
    const opened = { worker, waiting }
    const end = (cause: unknown) => {
      if (thread === opened) thread = undefined
      for (const { reject } of waiting.values())
        reject(new Error(`the thread of objects has ended: ${messageOf(cause)}`))
    }
    worker.on('message', (message: FromRecordThread) => {
      if (message.kind === 'value') waiting.get(message.id)?.resolve(message.value)
      if (message.kind === 'failed') waiting.get(message.id)?.reject(new Error(message.message))
    })
    worker.on('error', end)
    worker.on('exit', (code) => end(new Error(`exit code ${code}`)))
    return opened
  }

  async function call(request: ObjectRequest): Promise<FoundObjects> {
    if (url === undefined)
      throw new Error('lists of objects require config.database.url, which is read at start')
    thread ??= start(url)
    const { worker, waiting } = thread
    if (waiting.size >= mostCalls) throw new Error('the database of objects is too slow')
    lastId += 1
    const id = lastId
    const reply = Promise.withResolvers<FoundObjects>()
    waiting.set(id, reply)
    const timer = setTimeout(
      () => reply.reject(new Error('the database of objects does not respond')),
      callWaitMs,
    )
    worker.postMessage({ kind: 'run', id, request } satisfies ToRecordThread)
    try {
      return await reply.promise
    } finally {
      clearTimeout(timer)
      waiting.delete(id)
    }
  }

  return {
    call,
    async close() {
      const closing = thread
      if (closing === undefined) return
      thread = undefined
      const closed = Promise.withResolvers<void>()
      closing.worker.on('message', ({ kind }: FromRecordThread) => {
        if (kind === 'closed') closed.resolve()
      })
      closing.worker.postMessage({ kind: 'close' } satisfies ToRecordThread)
      await Promise.race([closed.promise, delay(closeWaitMs, undefined, { ref: false })])
      await closing.worker.terminate()
    },
  }
}
