import { setImmediate as nextTick } from 'node:timers/promises'
import type { Clock } from '../../lib/clock.ts'
import type { JsonObject } from '../../lib/json/json.ts'
import { createChangeNotifier } from './change-notifier.ts'
import { createMutex } from './mutex.ts'
import {
  type CommittedRows,
  type DriverEvents,
  pageRows,
  type RewrittenRow,
  type RowChanges,
  type RowDelta,
  type RowDriver,
  type RowKey,
} from './row-driver.ts'
import {
  type ResourceStore,
  type StoreChange,
  type StoreDelta,
  type StoredResource,
  StoreUnavailable,
  type UnreadableResource,
} from './store.ts'
import type { ValueCodec } from './value-codec.ts'

/** Limit for acquiring the lock of all writers, including the queue of this process. */
const lockWaitMs = 10_000
/** Limit for a plan, which runs under the lock. */
const planMs = 60_000
const maxIdentifierBytes = 512
/** Duration of decoding and encoding before yielding. */
const sliceMs = 1

type Coding = {
  readonly codec: ValueCodec
  readonly clock: Clock
  /** Called with the number of records re-encrypted with the current key. */
  readonly onRotated?: ((records: number) => void) | undefined
}

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
  // Deltas are valid only for the same database. Both numbers increase with each replacement.
  let trusted = 0
  let trustedOf = 0
  const readers = createMutex(clock)
  const writers = createMutex(clock)
  const driver = createDriver({
    generation: notifier.observe,
    unavailable(error) {
      notifier.reportOutage(error)
      if (notifier.outage() !== undefined) writers.rejectWaiting(error)
    },
    replaced: () => {
      trusted += 1
    },
  })
  let closed = false

  const sinceTrusted = (since: number | undefined): number | undefined =>
    trusted === trustedOf ? since : undefined

  const assertOpen = () => {
    if (closed) throw new StoreUnavailable('the store of resources is closed', undefined)
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

  let rotation = Promise.resolve()

  /**
   * Encrypts records of previous keys with the current one, in the background. Failures are retried at the
   * next start.
   */
  const rotate = (old: readonly StoredResource[]) => {
    if (old.length === 0) return
    const run = async () => {
      for (let start = 0; start < old.length; start += pageRows) {
        const rows = await rewrittenRows(coding, old.slice(start, start + pageRows))
        assertReachable()
        await writers.run(lockWaitMs, lateWriter, (leftMs) => driver.rewrite(rows, leftMs))
      }
      coding.onRotated?.(old.length)
    }
    rotation = rotation.then(run).catch(() => undefined)
  }

  return {
    async read(since) {
      assertOpen()
      return await readers.run(lockWaitMs, lateReader, async () => {
        const epoch = trusted
        const old: StoredResource[] = []
        const delta = await driver.read(sinceTrusted(since), (rows) => decodeDelta(coding, rows, old))
        rotate(old)
        trustedOf = epoch
        notifier.markRead(delta.generation)
        return delta
      })
    },

    async write(known, plan) {
      assertReachable()
      return await writers.run(lockWaitMs, lateWriter, async (leftMs) => {
        assertReachable()
        const epoch = trusted
        const step: { before?: StoreDelta; own?: OwnChanges | undefined } = {}
        const written = notifier.beginWrite()
        try {
          const committed = await driver.write(sinceTrusted(known), leftMs, async (rows) => {
            step.before = await decodeDelta(coding, rows)
            const planned = await inTime(plan(step.before))
            step.own = await encodeChanges(coding, planned ?? [])
            return step.own?.rows
          })
          if (step.before === undefined)
            throw new StoreUnavailable('the database returned no result', undefined)
          trustedOf = epoch
          const delta = step.own && committed ? withOwn(step.before, step.own, committed) : step.before
          notifier.markRead(delta.generation)
          return delta
        } finally {
          written()
        }
      })
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

function lateWriter(): StoreUnavailable {
  return new StoreUnavailable(`other writes took longer than ${lockWaitMs / 1000} s`, undefined)
}

function lateReader(): StoreUnavailable {
  return new StoreUnavailable(`other reads took longer than ${lockWaitMs / 1000} s`, undefined)
}

/** `old` receives the records encrypted with a previous key. */
async function decodeDelta(
  { codec, clock }: Coding,
  delta: RowDelta,
  old: StoredResource[] = [],
): Promise<StoreDelta> {
  const changed: StoredResource[] = []
  const unreadable: UnreadableResource[] = []
  const yieldPoint = createSlices(clock)
  for await (const page of delta.pages) {
    for (const [kind, id, text, revision, createdAt, updatedAt] of page) {
      const others = yieldPoint()
      if (others) await others
      const decoded = codec.decode(kind, id, text)
      if (decoded.kind === 'value') {
        const record = { kind, id, value: decoded.value, revision, createdAt, updatedAt }
        changed.push(record)
        if (decoded.isOld) old.push(record)
        continue
      }
      const { kind: _, ...rest } = decoded
      unreadable.push({ kind, id, revision, createdAt, updatedAt, ...rest })
    }
  }
  const removed = delta.removed.map(toKey)
  return { changed, unreadable, removed, generation: delta.generation, complete: delta.complete }
}

/** Yields after every slice of work, so that reading 100,000 rows does not block traffic. */
function createSlices(clock: Clock): () => Promise<void> | undefined {
  let startedAt = clock.monotonic()
  return () => {
    if (clock.monotonic() - startedAt < sliceMs) return undefined
    return nextTick().then(() => {
      startedAt = clock.monotonic()
    })
  }
}

/** Limits the duration of a plan, which blocks all writers. */
async function inTime<T>(plan: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(
    () =>
      late.reject(new StoreUnavailable(`the change took longer than ${planMs / 1000} s to check`, undefined)),
    planMs,
  )
  try {
    return await Promise.race([plan, late.promise])
  } finally {
    clearTimeout(timer)
  }
}

function toKey([kind, id]: RowKey): { kind: string; id: string } {
  return { kind, id }
}

function lastOfEach(changes: readonly StoreChange[]): StoreChange[] {
  const last = new Map<string, StoreChange>()
  for (const change of changes) {
    assertIdentifier('kind', change.kind)
    assertIdentifier('id', change.id)
    last.set(JSON.stringify([change.kind, change.id]), change)
  }
  return [...last.values()]
}

/**
 * Identifiers that every database can store and compare. Values need no such limits: their text is escaped.
 */
function assertIdentifier(name: string, text: string): void {
  if (
    text === '' ||
    text.includes('\0') ||
    !text.isWellFormed() ||
    Buffer.byteLength(text) > maxIdentifierBytes
  ) {
    throw new RangeError(
      `the ${name} of a resource must be 1 to ${maxIdentifierBytes} bytes of valid Unicode without NUL`,
    )
  }
}

/** The changes of a plan: rows to write, and the values of their puts in the same order. */
type OwnChanges = { readonly rows: RowChanges; readonly values: readonly JsonObject[] }

async function encodeChanges(
  { codec, clock }: Coding,
  planned: readonly StoreChange[],
): Promise<OwnChanges | undefined> {
  const changes = lastOfEach(planned)
  if (changes.length === 0) return undefined
  const puts = changes.filter((change) => change.op === 'put')
  const yieldPoint = createSlices(clock)
  const encoded: [kind: string, id: string, text: string][] = []
  for (const { kind, id, value } of puts) {
    const others = yieldPoint()
    if (others) await others
    encoded.push([kind, id, codec.encode(kind, id, value)])
  }
  const rows: RowChanges = {
    puts: encoded,
    removes: changes.filter(({ op }) => op === 'remove').map(({ kind, id }) => [kind, id]),
    at: new Date(clock.now()).toISOString(),
  }
  return { rows, values: puts.map(({ value }) => value) }
}

async function rewrittenRows(
  { codec, clock }: Coding,
  records: readonly StoredResource[],
): Promise<RewrittenRow[]> {
  const yieldPoint = createSlices(clock)
  const rows: RewrittenRow[] = []
  for (const { kind, id, value, revision } of records) {
    const others = yieldPoint()
    if (others) await others
    rows.push([kind, id, codec.encode(kind, id, value), revision])
  }
  return rows
}

/** The delta including own changes, equal to a read after the commit. */
function withOwn(before: StoreDelta, { rows, values }: OwnChanges, committed: CommittedRows): StoreDelta {
  const touched = new Map<string, Set<string>>()
  for (const [kind, id] of [...rows.puts, ...rows.removes]) {
    const kinds = touched.get(id)
    if (kinds) kinds.add(kind)
    else touched.set(id, new Set([kind]))
  }
  const isOld = ({ kind, id }: { kind: string; id: string }) => touched.get(id)?.has(kind) !== true
  const put = rows.puts.map(([kind, id], index): StoredResource => {
    const { revision, createdAt } = committed.puts[index] ?? { revision: 1, createdAt: rows.at }
    return { kind, id, value: values[index] ?? {}, revision, createdAt, updatedAt: rows.at }
  })
  // A complete delta needs no removals. In others, a removal without a record repeats an earlier removal,
  // which remains.
  const puts = new Set(rows.puts.map(([kind, id]) => JSON.stringify([kind, id])))
  const wasRemoved = before.removed.filter(({ kind, id }) => !puts.has(JSON.stringify([kind, id])))
  return {
    changed: [...before.changed.filter(isOld), ...put],
    unreadable: before.unreadable.filter(isOld),
    removed: before.complete ? [] : [...wasRemoved, ...committed.removed.map(toKey)],
    generation: committed.generation,
    complete: before.complete,
  }
}
