import { hostname } from 'node:os'
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { systemClock } from '../../lib/clock.ts'
import { messageOf } from '../../lib/thrown.ts'
import type { LedgerSettings } from '../config.ts'
import { createLedgerStore } from '../store/open.ts'
import type { LedgerStore } from '../store/store.ts'
import type { FromWriter, ToWriter, WriterStart } from './protocol.ts'
import { createWriter, type Writer } from './writer.ts'

// Entry of the thread that writes the ledger. Its own bundle: SQLite blocks its thread, and the bundle of the
// gateway takes ten times as long to load.

if (parentPort === null) throw new Error('runs as a thread only')
serve(parentPort, workerData)

function serve(port: MessagePort, { settings, source, spool }: WriterStart): void {
  const send = (message: FromWriter) => port.postMessage(message)
  const store = createStore(settings)
  store.then(
    () => send({ kind: 'ready' }),
    (error: unknown) => send({ kind: 'invalid', message: messageOf(error) }),
  )
  const create = (opened: LedgerStore): Writer =>
    createWriter({
      settings,
      store: opened,
      source,
      incarnation: Date.now().toString(36),
      spool,
      owner: { host: hostname(), pid: process.pid },
      uid: process.getuid?.(),
      isRunning,
      now: systemClock.now,
      monotonic: systemClock.monotonic,
      random: Math.random,
      send(message) {
        send(message)
        if (message.kind === 'closed') port.close()
      },
    })
  const writer = store.then(create, () => undefined)
  port.on('message', async (message: ToWriter) => {
    // An error of the writer ends the thread, which is replaced.
    const created = await writer
    if (created !== undefined) created.receive(message)
    else if (message.kind === 'close') send({ kind: 'closed' })
  })
}

/** One connection: writes are sequential. */
function createStore({ url, urlField }: LedgerSettings): Promise<LedgerStore> {
  return createLedgerStore({ url, field: urlField, maxConnections: 1 }, systemClock)
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // The process exists, and belongs to another user.
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
