import { createDatabaseThread } from '../../../database/thread/database-thread.ts'
import type { ExchangeLeases, LeaseReplies, LeaseReport } from '../../../lib/planes/lease-exchange.ts'
import { asError } from '../../../lib/thrown.ts'
import type { Log } from '../../../telemetry/log.ts'
import type { LeaseThreadStart } from './lease-thread.ts'

/** The database of shared limits, for all data planes of the process. */
export type LeaseDatabase = { readonly exchange: ExchangeLeases; close(): Promise<void> }

export type LeaseDatabaseOptions = {
  /** Undefined without a database: each exchange rejects. */
  readonly url: string | undefined
  /** Identity of this process: a UUID. */
  readonly process: string
  readonly log: Log
  /** Reports whether shared limits are counted together with other processes. */
  report(isConnected: boolean): void
}

/** Source in a checkout, a bundle of its own in the package (scripts/bundle.ts). */
const script = import.meta.url.endsWith('.ts')
  ? new URL('./lease-thread.ts', import.meta.url)
  : new URL('./lease-thread.js', import.meta.url)

const slowExchangeMs = 1_000

export function createLeaseDatabase({ url, process, log, report }: LeaseDatabaseOptions): LeaseDatabase {
  const thread = createDatabaseThread<readonly LeaseReport[], LeaseReplies>({
    script,
    start: { url: url ?? '', process } satisfies LeaseThreadStart,
    name: 'shared limits',
    callWaitMs: 10_000,
    mostCalls: 10_000,
  })
  let isConnected: boolean | undefined

  function connected(): void {
    if (isConnected === false) log.info({}, 'shared limits counted together again')
    if (isConnected !== true) report(true)
    isConnected = true
  }

  function failed(error: Error): void {
    if (isConnected !== false) {
      log.error({ err: error }, 'database of shared limits not available, limits counted by process')
      report(false)
    }
    isConnected = false
  }

  async function exchange(reports: readonly LeaseReport[]): Promise<LeaseReplies> {
    if (url === undefined)
      throw new Error('shared limits require config.database.url, which is read at start')
    // Data planes count by themselves from now on (`lease-client.ts`).
    const slow = setTimeout(
      () => failed(new Error('the database of shared limits does not respond')),
      slowExchangeMs,
    )
    try {
      return await thread.call(reports)
    } finally {
      clearTimeout(slow)
    }
  }

  return {
    async exchange(reports) {
      try {
        const replies = await exchange(reports)
        connected()
        return replies
      } catch (error) {
        failed(asError(error))
        throw error
      }
    },
    close: thread.close,
  }
}
