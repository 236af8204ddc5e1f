import type { Clock } from '../../../../lib/clock.ts'
import type { CachedRow, CachedRows, FoundRow } from '../../../../lib/planes/cached-rows.ts'
import type { DatabaseCacheMeter } from '../../../../telemetry/metrics/llm.ts'
import type { StoredResponse } from '../store.ts'
import { openResponse, type RowScope, rowKeysOf, sealResponse } from './sealed-response.ts'

/** Responses of all processes, in the database. Its failures are misses. */
export type SharedResponses = {
  /** Resolves within a bounded time. */
  read(digest: string, scope: RowScope): Promise<StoredResponse | undefined>
  /** Writes in the background; drops the response beyond the limits. */
  write(digest: string, response: StoredResponse, options: RowScope & { readonly ttlMs: number }): void
}

export type SharedResponsesOptions = {
  readonly rows: CachedRows
  readonly clock: Clock
  readonly meter: DatabaseCacheMeter
}

/** A call waits for a lookup up to this time; then the provider is faster. */
const readWaitMs = 500
/** Time without lookups after a failed one: calls do not wait during an outage. */
const pauseMs = 1_000
/** Lookups and writes of a data plane in progress. */
const maxReads = 512
const maxWrites = 1_000
const maxWriteBytes = 32 * 1024 * 1024

/** Creates the access of a data plane to the database of the cache. */
export function createSharedResponses({ rows, clock, meter }: SharedResponsesOptions): SharedResponses {
  const writing = { count: 0, bytes: 0 }
  let reading = 0
  let pausedUntil = 0

  async function find(row: string): Promise<FoundRow | undefined> {
    if (clock.monotonic() < pausedUntil || reading === maxReads) {
      meter.read('skipped')
      return undefined
    }
    reading += 1
    const found = rows.read(row).finally(() => {
      reading -= 1
    })
    try {
      const result = await within(found, readWaitMs)
      meter.read(result === undefined ? 'miss' : 'hit')
      return result
    } catch {
      // The main thread reports the outage.
      pausedUntil = clock.monotonic() + pauseMs
      meter.read('failed')
      return undefined
    }
  }

  async function send(row: CachedRow): Promise<void> {
    const size = row.content.byteLength
    writing.count += 1
    writing.bytes += size
    try {
      await rows.write(row)
      meter.wrote('stored')
    } catch {
      meter.wrote('failed')
    } finally {
      writing.count -= 1
      writing.bytes -= size
    }
  }

  return {
    async read(digest, scope) {
      const keys = rowKeysOf(digest, scope)
      const found = await find(keys.row)
      const content = found && openResponse(keys.content, found.content)
      return content && { ...content, storedAt: clock.monotonic() - found.ageMs }
    },
    write(digest, response, { ttlMs, ...scope }) {
      if (writing.count === maxWrites || writing.bytes + response.body.byteLength > maxWriteBytes) {
        meter.wrote('dropped')
        return
      }
      const keys = rowKeysOf(digest, scope)
      const storedAt = clock.now()
      void send({ key: keys.row, content: sealResponse(keys.content, response), storedAt, ttlMs })
    },
  }
}

/** The result of work; rejects after a time limit. */
async function within<T>(work: Promise<T>, ms: number): Promise<T> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error('the database does not respond')), ms)
  try {
    return await Promise.race([work, late.promise])
  } finally {
    clearTimeout(timer)
    // A failure after the time limit has been reported.
    work.catch(() => undefined)
  }
}
