import { assertSqlitePath } from '../../../database/url.ts'
import type { Clock } from '../../../lib/clock.ts'
import { createRecordStore } from '../record-store.ts'
import type { DriverEvents, RowChanges, RowDelta, RowDriver, StoredRow } from '../row-driver.ts'
import type { ResourceStore } from '../store.ts'
import {
  createValueCodec,
  type EncryptionSettings,
  readEncryptionKeys,
  type SecretPaths,
} from '../value-codec.ts'
import { createSqliteClient } from './client.ts'
import type { SqliteHead, SqliteThreadSettings, SqliteTransaction } from './protocol.ts'

/** Throws if a key of `EncryptionSettings` is not valid. */
export type SqliteStoreOptions = EncryptionSettings & {
  /** The file; it and its folder are created for the current user only. */
  path: string
  secretPaths: SecretPaths
  clock: Clock
  /** Called with the number of records re-encrypted with the current key. */
  onRotated?: (records: number) => void
  historyRows?: number | undefined
  /** Interval of polling for writes of other processes. */
  pollMs?: number
}

/**
 * Store of resources in a SQLite file, which processes of one machine may share. Opens the file on first use.
 */
export function createSqliteStore(options: SqliteStoreOptions): ResourceStore {
  const { path, secretPaths, clock, pollMs = 250, onRotated, historyRows } = options
  assertSqlitePath(path, 'config.database.url')
  const codec = createValueCodec(readEncryptionKeys(options), secretPaths)
  return createRecordStore((events) => createDriver({ path, pollMs }, events), {
    codec,
    clock,
    onRotated,
    historyRows,
  })
}

function createDriver(settings: SqliteThreadSettings, events: DriverEvents): RowDriver {
  const { request, watch, close } = createSqliteClient(settings, events)

  async function* pages(transaction: SqliteTransaction): AsyncGenerator<readonly StoredRow[]> {
    for (let isLast = false; !isLast; ) {
      const page = await request({ op: 'page', transaction })
      isLast = page.isLast
      yield page.rows
    }
  }

  const deltaOf = (head: SqliteHead, transaction: SqliteTransaction): RowDelta => ({
    ...head,
    pages: pages(transaction),
  })

  return {
    async read(since, use) {
      return await use(deltaOf(await request({ op: 'read', since }), 'read'))
    },
    async write(since, waitMs, use) {
      const head = await request({ op: 'begin', since, waitMs })
      let changes: RowChanges | undefined
      try {
        changes = await use(deltaOf(head, 'write'))
      } catch (error) {
        await request({ op: 'rollback' }).catch(() => undefined)
        throw error
      }
      if (changes !== undefined) return await request({ op: 'commit', changes })
      await request({ op: 'rollback' })
      return undefined
    },
    history: (query) => request({ op: 'history', query }),
    rewrite: (rows, waitMs) => request({ op: 'rewrite', rows, waitMs }),
    watch,
    close,
  }
}
