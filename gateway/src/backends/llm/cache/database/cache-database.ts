import { createDatabaseThread } from '../../../../database/thread/database-thread.ts'
import type { CachedRows, FoundRow } from '../../../../lib/planes/cached-rows.ts'
import { asError } from '../../../../lib/thrown.ts'
import type { Log } from '../../../../telemetry/log.ts'
import type { CacheDatabaseMeter } from '../../../../telemetry/metrics/llm.ts'
import type { CacheRequest } from './cache-thread.ts'
import type { RowTotals } from './row-store.ts'
import type { CacheDatabaseSettings } from './settings.ts'

/** The database of the response cache, for all data planes of the process. */
export type CacheDatabase = { readonly rows: CachedRows; close(): Promise<void> }

export type CacheDatabaseOptions = {
  /** Undefined without a database: each call rejects. */
  readonly settings: CacheDatabaseSettings | undefined
  readonly log: Log
  readonly meter: CacheDatabaseMeter
}

/** Source in a checkout, a bundle of its own in the package (scripts/bundle.ts). */
const script = import.meta.url.endsWith('.ts')
  ? new URL('./cache-thread.ts', import.meta.url)
  : new URL('./cache-thread.js', import.meta.url)

/** Data planes limit the wait of calls. */
const callWaitMs = 10_000
/** Calls of all data planes in progress. */
const mostCalls = 10_000

export function createCacheDatabase({ settings, log, meter }: CacheDatabaseOptions): CacheDatabase {
  const thread = createDatabaseThread<CacheRequest, FoundRow | undefined, RowTotals>({
    script,
    start: settings,
    name: 'the response cache',
    callWaitMs,
    mostCalls,
    onNotice: meter.stored,
  })
  let isConnected: boolean | undefined

  function connected(): void {
    if (isConnected === false) log.info({}, 'database of the response cache available again')
    if (isConnected !== true) meter.connected(true)
    isConnected = true
  }

  /** One line for each outage. */
  function failed(error: Error): void {
    if (isConnected !== false) {
      log.error(
        { err: error },
        'database of the response cache not available, responses cached by data plane',
      )
      meter.connected(false)
    }
    isConnected = false
  }

  async function call(request: CacheRequest): Promise<FoundRow | undefined> {
    try {
      if (settings === undefined)
        throw new Error('store: database requires config.database.url, which is read at start')
      const found = await thread.call(request)
      connected()
      return found
    } catch (error) {
      failed(asError(error))
      throw error
    }
  }

  return {
    rows: {
      read: (key) => call({ kind: 'read', key }),
      async write(row) {
        await call({ kind: 'write', row })
      },
    },
    close: thread.close,
  }
}
