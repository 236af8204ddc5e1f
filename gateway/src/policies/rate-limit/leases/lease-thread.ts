import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { serveCalls } from '../../../database/thread/serve-calls.ts'
import { isPostgresUrl, sqlitePathOf } from '../../../database/url.ts'
import type { LeaseReplies, LeaseReport } from '../../../lib/planes/lease-exchange.ts'
import type { LeaseStore } from './lease-store.ts'
import { createSqliteLeases } from './sqlite-leases.ts'

// Entry of the thread of shared limits. Its own bundle, which loads faster than that of the gateway.

/** `workerData` of the thread. */
export type LeaseThreadStart = { readonly url: string; readonly process: string }

const announceMs = 2_000
const pruneEvery = 5

if (parentPort) serve(parentPort, workerData)

function serve(port: MessagePort, { url, process }: LeaseThreadStart): void {
  const opened = openStore(url)
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

  async function exchange(reports: readonly LeaseReport[]): Promise<LeaseReplies> {
    try {
      announced ??= announce()
      await announced
      return await (await opened).exchange(process, reports)
    } catch (error) {
      announced = undefined
      throw error
    }
  }

  serveCalls<readonly LeaseReport[], LeaseReplies>(port, {
    run: exchange,
    async close() {
      clearInterval(timer)
      const store = await opened
      await store.leave(process).catch(() => undefined)
      await store.close()
    },
  })
}

async function openStore(url: string): Promise<LeaseStore> {
  if (!isPostgresUrl(url)) return createSqliteLeases(sqlitePathOf(url), Date.now)
  // Loaded on demand: the driver takes 45 ms and 14 MB.
  const { createPostgresLeases } = await import('./postgres-leases.ts')
  return createPostgresLeases(url)
}
