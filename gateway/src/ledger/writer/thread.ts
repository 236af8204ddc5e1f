import { hostname } from 'node:os'
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { systemClock } from '../../lib/clock.ts'
import type { LedgerSettings } from '../config.ts'
import type { LedgerStore } from '../store/store.ts'
import type { FromWriter, ToWriter, WriterStart } from './protocol.ts'
import { createWriter, type Writer } from './writer.ts'

// Entry of the thread that writes the ledger. Its own bundle: SQLite blocks its thread, and the bundle of the
// gateway takes ten times as long to load.

if (parentPort === null) throw new Error('runs as a thread only')
serve(parentPort, workerData)

function serve(port: MessagePort, { settings, source, spool }: WriterStart): void {
  const writer = createStore(settings).then((store): Writer => {
    return createWriter({
      settings,
      store,
      source,
      incarnation: Date.now().toString(36),
      spool,
      owner: { host: hostname(), pid: process.pid },
      uid: process.getuid?.(),
      isRunning,
      now: systemClock.now,
      monotonic: systemClock.monotonic,
      random: Math.random,
      send(message: FromWriter) {
        port.postMessage(message)
        if (message.kind === 'closed') port.close()
      },
    })
  })
  port.on('message', async (message: ToWriter) => (await writer).receive(message))
}

async function createStore({ kind }: LedgerSettings): Promise<LedgerStore> {
  throw new Error(`the ledger has no store for ${kind}`)
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
