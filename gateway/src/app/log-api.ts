import type { AdminEndpoint } from '../admin/api.ts'
import { createLogEndpoints } from '../admin/logs/logs.ts'
import { requestsEndpoint } from '../admin/requests.ts'
import { usageEndpoint } from '../admin/usage.ts'
import { type LedgerSections, ledgerSettingsOf } from '../ledger/config.ts'
import { createLedgerQueries, type LedgerQueries } from '../ledger/query/query.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../telemetry/log.ts'

/** Endpoints of the admin API that read the ledger. */
export type LogApi = {
  readonly endpoints: readonly AdminEndpoint[]
  /** Undefined without a ledger. */
  readonly queries: LedgerQueries | undefined
  /** Ends event streams, which do not end by themselves. */
  endStreams(): void
  close(): Promise<void>
}

/** Creates the endpoints; the thread of queries starts with the first of them. */
export function createLogApi(settings: LedgerSections, clock: Clock, log: Log): LogApi {
  const ledger = ledgerSettingsOf(settings)
  const queries = ledger && createLedgerQueries({ ...ledger, log })
  const logs = createLogEndpoints({ queries, now: clock.now })
  return {
    endpoints: [...logs.endpoints, usageEndpoint(queries, clock.now), requestsEndpoint(queries)],
    queries,
    endStreams: logs.close,
    async close() {
      logs.close()
      await queries?.close()
    },
  }
}
