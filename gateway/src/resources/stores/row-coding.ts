import { setImmediate as nextTick } from 'node:timers/promises'
import type { Clock } from '../../lib/clock.ts'
import type { JsonObject } from '../../lib/json/json.ts'
import type {
  CommittedRows,
  HistoryRow,
  NewHistoryRow,
  RewrittenRow,
  RowChanges,
  RowDelta,
  RowKey,
} from './row-driver.ts'
import type { HistoryRecord, StoreChange, StoreDelta, StoredResource, UnreadableResource } from './store.ts'
import type { ValueCodec } from './value-codec.ts'

/** Encoding of values in rows. */
export type Coding = {
  readonly codec: ValueCodec
  readonly clock: Clock
  /** Called with the number of records re-encrypted with the current key. */
  readonly onRotated?: ((records: number) => void) | undefined
  /** Number of records of the history to retain. */
  readonly historyRows?: number | undefined
}

/** Default of `Coding.historyRows`. */
const defaultHistoryRows = 100_000

const maxIdentifierBytes = 512
/** Duration of decoding and encoding before yielding. */
const sliceMs = 1

/** `old` receives the records encrypted with a previous key. */
export async function decodeDelta(
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
export type OwnChanges = { readonly rows: RowChanges; readonly values: readonly JsonObject[] }

export async function encodeChanges(
  { codec, clock, historyRows = defaultHistoryRows }: Coding,
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
  const history: NewHistoryRow[] = []
  for (const change of changes) {
    const others = yieldPoint()
    if (others) await others
    const row = historyRowOf(change, codec)
    if (row) history.push(row)
  }
  const rows: RowChanges = {
    puts: encoded,
    removes: changes.filter(({ op }) => op === 'remove').map(({ kind, id }) => [kind, id]),
    at: new Date(clock.now()).toISOString(),
    history: history.length === 0 ? undefined : { rows: history, retained: historyRows },
  }
  return { rows, values: puts.map(({ value }) => value) }
}

function historyRowOf(change: StoreChange, codec: ValueCodec): NewHistoryRow | undefined {
  const { kind, id, history } = change
  if (history === undefined) return undefined
  const { op, origin, reverts, principal, address, requestId } = history
  const after = change.op === 'put' ? change.value : undefined
  const [before, now] = codec.encodeVersions(kind, id, [history.before, after])
  const author = principal === undefined ? null : storableText(principal)
  return [
    kind,
    id,
    op,
    origin,
    reverts ?? null,
    author,
    storableText(address),
    storableText(requestId),
    before ?? null,
    now ?? null,
  ]
}

const maxAuthorCharacters = 300

/** Text that every database can store. */
function storableText(text: string): string {
  return text.slice(0, maxAuthorCharacters).replaceAll('\0', '\ufffd').toWellFormed()
}

/** A row of the history; versions of its values are decrypted. */
export function decodeHistory({ codec }: Coding, row: HistoryRow): HistoryRecord {
  const [number, at, revision, kind, id, op, origin, reverts, principal, address, requestId, ...texts] = row
  const [before, after] = texts.map((text) =>
    text === null ? undefined : codec.decodeVersion(kind, id, text),
  )
  return {
    id: number,
    at,
    op: op === 'create' || op === 'delete' ? op : 'update',
    origin: origin === 'import' || origin === 'revert' ? origin : 'write',
    ...(reverts === null ? {} : { reverts }),
    kind,
    resourceId: id,
    revision,
    ...(principal === null ? {} : { principal }),
    address,
    requestId,
    before,
    after,
  }
}

export async function rewrittenRows(
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
export function withOwn(
  before: StoreDelta,
  { rows, values }: OwnChanges,
  committed: CommittedRows,
): StoreDelta {
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
