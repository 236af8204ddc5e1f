import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { isPostgresUrl, sqlitePathOf } from '../../../database/url.ts'
import type { FoundObjects, ObjectRequest } from '../../../lib/planes/object-records.ts'
import { messageOf } from '../../../lib/thrown.ts'
import type { RecordStore } from './record-store.ts'
import { createSqliteRecords } from './sqlite-records.ts'

// Entry of the thread with the objects of clients. SQLite blocks its thread, and traffic must not wait for
// it. Its own bundle, which loads faster than that of the gateway.

export type ToRecordThread =
  | { readonly kind: 'run'; readonly id: number; readonly request: ObjectRequest }
  | { readonly kind: 'close' }

export type FromRecordThread =
  | { readonly kind: 'value'; readonly id: number; readonly value: FoundObjects }
  | { readonly kind: 'failed'; readonly id: number; readonly message: string }
  | { readonly kind: 'closed' }

if (parentPort) serve(parentPort, workerData)

function serve(port: MessagePort, url: string): void {
  const opened = openStore(url)
  // Calls report the error.
  opened.catch(() => undefined)
  const send = (message: FromRecordThread) => port.postMessage(message)

  async function run(id: number, request: ObjectRequest): Promise<void> {
    try {
      send({ kind: 'value', id, value: await (await opened).run(request) })
    } catch (error) {
      send({ kind: 'failed', id, message: messageOf(error) })
    }
  }

  async function close(): Promise<void> {
    const store = await opened
    await store.close()
    send({ kind: 'closed' })
  }

  port.on('message', (message: ToRecordThread) => {
    if (message.kind === 'run') void run(message.id, message.request)
    else void close()
  })
}

async function openStore(url: string): Promise<RecordStore> {
  if (!isPostgresUrl(url)) return createSqliteRecords(sqlitePathOf(url), Date.now)
  // Loaded on demand: the driver takes 45 ms and 14 MB.
  const { createPostgresRecords } = await import('./postgres-records.ts')
  return createPostgresRecords(url)
}
