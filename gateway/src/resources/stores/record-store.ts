import { DatabaseUnavailable } from '../../database/database-unavailable.ts'
import { createChangeNotifier } from './change-notifier.ts'
import { createMutex } from './mutex.ts'
import {
  type Coding,
  decodeDelta,
  decodeHistory,
  encodeChanges,
  type OwnChanges,
  rewrittenRows,
  withOwn,
} from './row-coding.ts'
import { type DriverEvents, pageRows, type RewrittenRow, type RowDriver } from './row-driver.ts'
import type { ResourceStore, StoreDelta, StoredResource } from './store.ts'

/** Limit for acquiring the lock of all writers, including the queue of this process. */
const lockWaitMs = 10_000
/** Limit for a plan, which runs under the lock. */
const planMs = 60_000

/**
 * Creates a store over one kind of database: encodes values, encrypts secrets, serialises reads and writes,
 * notifies of changes.
 */
export function createRecordStore(
  createDriver: (events: DriverEvents) => RowDriver,
  coding: Coding,
): ResourceStore {
  const { clock } = coding
  const notifier = createChangeNotifier(clock)
  // Deltas are valid only for the same database: the epoch increases with each replacement of it.
  let epoch = 0
  let readEpoch = 0
  const readers = createMutex(clock)
  const writers = createMutex(clock)
  const driver = createDriver({
    generation: notifier.observe,
    unavailable(error) {
      notifier.reportOutage(error)
      if (notifier.outage() !== undefined) writers.rejectWaiting(error)
    },
    replaced: () => {
      epoch += 1
    },
  })
  let closed = false

  const validSince = (since: number | undefined): number | undefined =>
    epoch === readEpoch ? since : undefined

  const assertOpen = () => {
    if (closed) throw new DatabaseUnavailable('the store of resources is closed', undefined)
  }

  /**
   * Writes during an outage fail immediately: waiting would delay all others. Reads detect the end of an
   * outage.
   */
  const assertReachable = () => {
    assertOpen()
    const outage = notifier.outage()
    if (outage !== undefined) throw outage
  }

  const rotate = createRotation(coding, async (rows) => {
    assertReachable()
    await writers.run(lockWaitMs, lateWriter, (leftMs) => driver.rewrite(rows, leftMs))
  })

  return {
    async read(since) {
      assertOpen()
      return await readers.run(lockWaitMs, lateReader, async () => {
        const startEpoch = epoch
        const old: StoredResource[] = []
        const delta = await driver.read(validSince(since), (rows) => decodeDelta(coding, rows, old))
        rotate(old)
        readEpoch = startEpoch
        notifier.markRead(delta.generation)
        return delta
      })
    },

    async write(known, plan) {
      assertReachable()
      return await writers.run(lockWaitMs, lateWriter, async (leftMs) => {
        assertReachable()
        const startEpoch = epoch
        const step: { before?: StoreDelta; own?: OwnChanges | undefined } = {}
        const written = notifier.beginWrite()
        try {
          const committed = await driver.write(validSince(known), leftMs, async (rows) => {
            step.before = await decodeDelta(coding, rows)
            const planned = await inTime(plan(step.before))
            step.own = await encodeChanges(coding, planned ?? [])
            return step.own?.rows
          })
          if (step.before === undefined)
            throw new DatabaseUnavailable('the database returned no result', undefined)
          readEpoch = startEpoch
          const delta = step.own && committed ? withOwn(step.before, step.own, committed) : step.before
          notifier.markRead(delta.generation)
          return delta
        } finally {
          written()
        }
      })
    },

    async history(query) {
      assertReachable()
      const { rows, isLast } = await driver.history(query)
      return { records: rows.map((row) => decodeHistory(coding, row)), isLast }
    },

    watch(watcher) {
      notifier.watch(watcher)
      driver.watch()
    },

    async close() {
      if (closed) return
      closed = true
      notifier.close()
      // A write in progress finishes.
      await writers.run(lockWaitMs, lateWriter, () => Promise.resolve()).catch(() => undefined)
      await driver.close()
    },
  }
}

function lateWriter(): DatabaseUnavailable {
  return new DatabaseUnavailable(`other writes took longer than ${lockWaitMs / 1000} s`, undefined)
}

function lateReader(): DatabaseUnavailable {
  return new DatabaseUnavailable(`other reads took longer than ${lockWaitMs / 1000} s`, undefined)
}

/**
 * Encrypts records of previous keys with the current one, in the background and one batch after another.
 * Failures are retried at the next start.
 */
function createRotation(
  coding: Coding,
  rewrite: (rows: readonly RewrittenRow[]) => Promise<void>,
): (old: readonly StoredResource[]) => void {
  let rotation = Promise.resolve()
  return (old) => {
    if (old.length === 0) return
    const run = async () => {
      for (let start = 0; start < old.length; start += pageRows) {
        await rewrite(await rewrittenRows(coding, old.slice(start, start + pageRows)))
      }
      coding.onRotated?.(old.length)
    }
    rotation = rotation.then(run).catch(() => undefined)
  }
}

/** Limits the duration of a plan, which blocks all writers. */
async function inTime<T>(plan: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(
    () =>
      late.reject(
        new DatabaseUnavailable(`the change took longer than ${planMs / 1000} s to check`, undefined),
      ),
    planMs,
  )
  try {
    return await Promise.race([plan, late.promise])
  } finally {
    clearTimeout(timer)
  }
}
