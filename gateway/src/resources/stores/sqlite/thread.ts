import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { describeError } from '../../../database/sqlite/errors.ts'
import type { SqliteMessage, SqliteRequest, SqliteThreadSettings, SqliteValue } from './protocol.ts'
import { createSqliteSession } from './session.ts'
import { createPoll } from './watch.ts'

// Entry of the thread of a SQLite database: `node:sqlite` is synchronous, and a checkpoint or the lock of
// another process would block traffic. Its own bundle, because loading that of the gateway takes ten times as
// long and five times the memory.

if (parentPort === null) throw new Error('runs as a thread only')
serve(parentPort, workerData)

function serve(port: MessagePort, { path, pollMs }: SqliteThreadSettings): void {
  const send = (message: SqliteMessage) => port.postMessage(message)
  const session = createSqliteSession(path, () => send({ kind: 'replaced' }))
  const poll = createPoll(() => {
    try {
      const generation = session.generation()
      if (generation !== undefined) send({ kind: 'generation', generation })
    } catch (error) {
      send({ kind: 'unavailable', message: describeError(error, path) })
    }
  }, pollMs)

  async function respond(request: SqliteRequest): Promise<SqliteValue> {
    switch (request.op) {
      case 'read':
        return session.read(request.since)
      case 'begin':
        return await session.begin(request.since, request.waitMs)
      case 'page':
        return session.page(request.transaction)
      case 'commit':
        return session.commit(request.changes)
      case 'rollback':
        session.rollback()
        return undefined
      case 'history':
        return session.history(request.query)
      case 'rewrite':
        await session.rewrite(request.rows, request.waitMs)
        return undefined
      case 'watch':
        poll.start()
        return undefined
      case 'close':
        poll.stop()
        session.close()
        return undefined
    }
  }

  port.on('message', ({ id, request }: { id: number; request: SqliteRequest }) => {
    respond(request).then(
      (value) => send({ kind: 'done', id, value }),
      (error: unknown) => send({ kind: 'failed', id, message: describeError(error, path) }),
    )
  })
}
