import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { isPostgresUrl, sqlitePathOf } from '../../../database/url.ts'
import type { LeaseReplies, LeaseReport } from '../../../lib/planes/lease-exchange.ts'
import { messageOf } from '../../../lib/thrown.ts'
import type { LeaseStore } from './lease-store.ts'
import { createSqliteLeases } from './sqlite-leases.ts'

// Entry of the thread of shared limits. SQLite blocks its thread, and traffic must not wait for it. Its own
// bundle, which loads faster than that of the gateway.

/** `workerData` of the thread. */
export type LeaseThreadStart = { readonly url: string; readonly process: string }

export type ToLeaseThread =
  | { readonly kind: 'exchange'; readonly id: number; readonly reports: readonly LeaseReport[] }
  | { readonly kind: 'close' }

export type FromLeaseThread =
  | { readonly kind: 'replies'; readonly id: number; readonly value: LeaseReplies }
  | { readonly kind: 'failed'; readonly id: number; readonly message: string }
  | { readonly kind: 'closed' }

const announceMs = 2_000
const pruneEvery = 5

if (parentPort) serve(parentPort, workerData)

function serve(port: MessagePort, { url, process }: LeaseThreadStart): void {
  const opened = openStore(url)
  const send = (message: FromLeaseThread) => port.postMessage(message)
  let announcements = 0

  async function announce(): Promise<void> {
    const store = await opened
    await store.announce(process)
    announcements += 1
    if (announcements % pruneEvery === 0) await store.prune()
  }

  /** A process is announced before its first exchange, which counts it. */
  let announced: Promise<void> | undefined
  const timer = setInterval(() => {
    announced = announce().catch(() => {
      announced = undefined
    })
  }, announceMs)

  async function exchange(id: number, reports: readonly LeaseReport[]): Promise<void> {
    try {
      announced ??= announce()
      await announced
      send({ kind: 'replies', id, value: await (await opened).exchange(process, reports) })
    } catch (error) {
      announced = undefined
      send({ kind: 'failed', id, message: messageOf(error) })
    }
  }

  async function close(): Promise<void> {
    clearInterval(timer)
    const store = await opened
    await store.leave(process).catch(() => undefined)
    await store.close()
    send({ kind: 'closed' })
  }

  port.on('message', (message: ToLeaseThread) => {
    if (message.kind === 'exchange') void exchange(message.id, message.reports)
    else void close()
  })
}

async function openStore(url: string): Promise<LeaseStore> {
  if (!isPostgresUrl(url)) return createSqliteLeases(sqlitePathOf(url), Date.now)
  // Loaded on demand: the driver takes 45 ms and 14 MB.
  const { createPostgresLeases } = await import('./postgres-leases.ts')
  return createPostgresLeases(url)
}
