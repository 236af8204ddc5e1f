import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { sqlitePathOf } from '../../database/url.ts'
import { messageOf } from '../../lib/thrown.ts'
import { type QueryDatabase, QueryLate } from './database/database.ts'
import { createSqliteQueries } from './database/sqlite.ts'
import { createOperations } from './operations.ts'
import type { QueryMessage, QueryRequest, QuerySettings } from './protocol.ts'

// Entry of the thread of queries: `node:sqlite` is synchronous, and large results take time to convert. Its
// own bundle, because loading that of the gateway takes longer and more memory.

if (parentPort === null) throw new Error('runs as a thread only')
await serve(parentPort, workerData)

async function serve(port: MessagePort, settings: QuerySettings): Promise<void> {
  const operations = createOperations(await openDatabase(settings))
  const send = (message: QueryMessage) => port.postMessage(message)

  port.on('message', ({ id, operation, input }: QueryRequest) => {
    const run = operations[operation] as (input: unknown) => Promise<unknown>
    run(input).then(
      (value) => send({ kind: 'done', id, value }),
      (error: unknown) =>
        send({
          kind: 'failed',
          id,
          reason: error instanceof QueryLate ? 'late' : 'unavailable',
          message: messageOf(error),
        }),
    )
  })
}

async function openDatabase({ url, kind, connections }: QuerySettings): Promise<QueryDatabase> {
  if (kind === 'sqlite') return createSqliteQueries(sqlitePathOf(url))
  // Loaded on demand: the driver takes 45 ms and 14 MB.
  const { createPostgresQueries } = await import('./database/postgres.ts')
  return createPostgresQueries(url, connections)
}
