import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { serveCalls } from '../../../../database/thread/serve-calls.ts'
import { isPostgresUrl, sqlitePathOf } from '../../../../database/url.ts'
import type { CachedRow, FoundRow } from '../../../../lib/planes/cached-rows.ts'
import { createBatches } from './batches.ts'
import { type RowLimits, type RowStore, type RowTotals, turnMs } from './row-store.ts'
import { createSqliteRows } from './sqlite-rows.ts'

// Entry of the thread of the response cache. Its own bundle, which loads faster than that of the gateway.

/** `workerData` of the thread. */
export type CacheThreadStart = { readonly url: string; readonly limits: RowLimits }

export type CacheRequest =
  | { readonly kind: 'read'; readonly key: string }
  | { readonly kind: 'write'; readonly row: CachedRow }

const mostRead = 64
const mostWritten = { items: 128, bytes: 4 * 1024 * 1024 }
/** Part of the limits that one process may write between two turns of deletion. */
const hurryPart = 16

if (parentPort) serve(parentPort, workerData)

function serve(port: MessagePort, { url, limits }: CacheThreadStart): void {
  const opened = openStore(url, limits)
  let written = { entries: 0, bytes: 0 }

  const reads = createBatches<string, FoundRow | undefined>({
    mostItems: mostRead,
    mostBytes: Number.POSITIVE_INFINITY,
    sizeOf: () => 0,
    run: async (keys) => (await opened).read(keys),
  })
  const writes = createBatches<CachedRow, undefined>({
    mostItems: mostWritten.items,
    mostBytes: mostWritten.bytes,
    sizeOf: ({ content }) => content.byteLength,
    async run(rows) {
      // A statement changes a row once.
      await (await opened).write([...new Map(rows.map((row) => [row.key, row])).values()])
      for (const { content } of rows) written.bytes += content.byteLength
      written.entries += rows.length
      const isMuch =
        written.entries > limits.maxEntries / hurryPart || written.bytes > limits.maxBytes / hurryPart
      if (isMuch) await prune(true)
      return rows.map(() => undefined)
    },
  })

  async function prune(hurries: boolean): Promise<void> {
    written = { entries: 0, bytes: 0 }
    try {
      notify(await (await opened).prune(hurries))
    } catch {
      // Reads and writes report the outage.
    }
  }

  const notify = serveCalls<CacheRequest, FoundRow | undefined, RowTotals>(port, {
    run: (request) => (request.kind === 'read' ? reads.add(request.key) : writes.add(request.row)),
    async close() {
      clearInterval(timer)
      await writes.idle()
      await (await opened).close()
    },
  })
  const timer = setInterval(() => void prune(false), turnMs)
  void prune(false)
}

async function openStore(url: string, limits: RowLimits): Promise<RowStore> {
  if (!isPostgresUrl(url)) return createSqliteRows(sqlitePathOf(url), limits, Date.now)
  // Loaded on demand: the driver takes 45 ms and 14 MB.
  const { createPostgresRows } = await import('./postgres-rows.ts')
  return createPostgresRows(url, limits)
}
