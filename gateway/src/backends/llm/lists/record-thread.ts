import { parentPort, workerData } from 'node:worker_threads'
import { serveCalls } from '../../../database/thread/serve-calls.ts'
import { isPostgresUrl, sqlitePathOf } from '../../../database/url.ts'
import type { FoundObjects, ObjectRequest } from '../../../lib/planes/object-records.ts'
import type { RecordStore } from './record-store.ts'
import { createSqliteRecords } from './sqlite-records.ts'

// Entry of the thread with the objects of clients. Its own bundle loads faster than that of the gateway.

if (parentPort) {
  const opened = openStore(workerData)
  // Calls report the error.
  opened.catch(() => undefined)
  serveCalls<ObjectRequest, FoundObjects>(parentPort, {
    run: async (request) => (await opened).run(request),
    close: async () => (await opened).close(),
  })
}

async function openStore(url: string): Promise<RecordStore> {
  if (!isPostgresUrl(url)) return createSqliteRecords(sqlitePathOf(url), Date.now)
  // Loaded on demand: the driver takes 45 ms and 14 MB.
  const { createPostgresRecords } = await import('./postgres-records.ts')
  return createPostgresRecords(url)
}
