import { createDatabaseThread } from '../../../database/thread/database-thread.ts'
import type { CallObjectRecords, FoundObjects, ObjectRequest } from '../../../lib/planes/object-records.ts'

/** The record of objects of clients, for all data planes of the process. */
export type RecordDatabase = { readonly call: CallObjectRecords; close(): Promise<void> }

/** Source in a checkout, a bundle of its own in the package (scripts/bundle.ts). */
const script = import.meta.url.endsWith('.ts')
  ? new URL('./record-thread.ts', import.meta.url)
  : new URL('./record-thread.js', import.meta.url)

/** `url` is undefined without a database: each call rejects. */
export function createRecordDatabase(url: string | undefined): RecordDatabase {
  const thread = createDatabaseThread<ObjectRequest, FoundObjects>({
    script,
    start: url,
    name: 'objects of clients',
    callWaitMs: 5_000,
    mostCalls: 1_000,
  })
  return {
    async call(request) {
      if (url === undefined)
        throw new Error('lists of objects require config.database.url, which is read at start')
      return thread.call(request)
    },
    close: thread.close,
  }
}
