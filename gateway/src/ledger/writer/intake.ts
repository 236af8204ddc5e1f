import { messageOf } from '../../lib/thrown.ts'
import { type Collapsed, createCollapsed } from '../collapse.ts'
import { hasDetails, type LedgerLines } from '../sender.ts'
import { withoutSettlement } from '../settlement.ts'
import { decodeLines, encodeEntry, encodeSum } from '../wire.ts'
import type { Journal, StoredPayload } from './journal.ts'
import type { RecordHead } from './record-format.ts'
import type { QueuedRecord, RecordQueue } from './record-queue.ts'

/** Bounds of what waits for the database. */
export type IntakeLimits = {
  /** Rows. */
  readonly rows: number
  /** Bytes of the spool. */
  readonly spoolBytes: number
  /** Bytes in memory, while the spool is not writable. */
  readonly memoryBytes: number
}

/** Counts of the intake since its creation. */
export type IntakeCounts = { droppedDetails: number; droppedRows: number; damaged: number }

/** Receives lines of data planes: stores them in the journal, and bounds what waits. */
export type Intake = {
  /** Accepts the lines of a number. Never throws. Numbers that were accepted before are ignored. */
  accept(number: number, lines: LedgerLines): void
  /** Error of the spool; undefined if it is writable. */
  spoolError(): string | undefined
  readonly counts: IntakeCounts
}

export type IntakeOptions = {
  queue: RecordQueue
  /** Numbers up to it were accepted by an earlier thread. */
  lastNumber: number
  journal: Journal
  limits: IntakeLimits
  /** Bytes of the spool files of other processes that this one writes. */
  otherBytes(): number
  monotonic(): number
  onSpool(error: string | undefined): void
}

/** Entries that were added up, because the queue is full: the last record of the queue. */
type Tail = {
  readonly collapsed: Collapsed
  readonly first: number
  number: number
  stored: StoredPayload[]
  /** Bytes of the spool after the last compaction. */
  compactedBytes: number
}

type Spool = { kind: 'writable' } | { kind: 'failed'; error: string; retryAt: number }

const spoolRetryMs = 5_000
const maxSums = 2_000
const maxCharges = 50_000
const compactAtBytes = 4 * 1024 * 1024

/**
 * Creates the intake. From half of a limit, details of entries are dropped. From the limit, entries are added
 * up to sums of a bounded number, in memory and in the journal, so that every amount is retained.
 */
export function createIntake(options: IntakeOptions): Intake {
  const { queue, journal, limits, monotonic, onSpool } = options
  const counts: IntakeCounts = { droppedDetails: 0, droppedRows: 0, damaged: 0 }
  let { lastNumber } = options
  let tail: Tail | undefined
  let spool: Spool = { kind: 'writable' }

  /** Fill of the fullest limit: 1 is full. */
  function pressure(): number {
    return Math.max(
      queue.rows() / limits.rows,
      (journal.bytes() + options.otherBytes()) / limits.spoolBytes,
      queue.memoryBytes() / limits.memoryBytes,
    )
  }

  /** Appends to the journal, or retains the payload in memory if that fails. */
  function store(head: RecordHead, payload: Buffer): { payload: StoredPayload; isStored: boolean } {
    if (spool.kind === 'failed' && monotonic() < spool.retryAt) return inMemory(payload)
    try {
      const stored = journal.append(head, payload)
      if (spool.kind === 'failed') onSpool(undefined)
      spool = { kind: 'writable' }
      return { payload: stored, isStored: true }
    } catch (error) {
      const message = messageOf(error)
      if (spool.kind === 'writable') onSpool(message)
      spool = { kind: 'failed', error: message, retryAt: monotonic() + spoolRetryMs }
      return inMemory(payload)
    }
  }

  function push(number: number, { lines, rows }: LedgerLines): void {
    const head = { first: number, number, rows }
    const { payload, isStored } = store(head, Buffer.from(lines))
    queue.push({ ...head, ...payload, isStored })
  }

  function collapse(number: number, { lines }: LedgerLines): void {
    const added = createCollapsed(maxSums, maxCharges)
    const { records, invalid } = decodeLines(Buffer.from(lines))
    counts.damaged += invalid
    for (const record of records) {
      if (record.kind === 'sum') added.addSum(record.sum)
      else added.add(withoutSettlement(record.entry))
      if (record.kind === 'entry') counts.droppedRows += 1
    }
    if (tail === undefined) {
      tail = {
        collapsed: createCollapsed(maxSums, maxCharges),
        first: number,
        number,
        stored: [],
        compactedBytes: 0,
      }
      queue.push(recordOf(tail))
    }
    for (const sum of added.sums()) tail.collapsed.addSum(sum)
    tail.number = number
    const head = { first: number, number, rows: added.size() }
    tail.stored.push(store(head, payloadOf(added)).payload)
    compact(tail)
  }

  /** Replaces the records of the tail in the journal by one, so that an outage needs bounded space. */
  function compact(grown: Tail): void {
    const bytes = grown.stored.reduce((sum, { size }) => sum + size, 0)
    if (bytes < compactAtBytes + 2 * grown.compactedBytes) return
    const { first, number, collapsed } = grown
    const { payload, isStored } = store({ first, number, rows: collapsed.size() }, payloadOf(collapsed))
    // The records in the spool survive the process.
    if (!isStored) return
    const replaced = grown.stored
    grown.stored = [payload]
    grown.compactedBytes = payload.size
    for (const { remove } of replaced) remove()
  }

  function recordOf(added: Tail): QueuedRecord {
    return {
      first: added.first,
      get number() {
        return added.number
      },
      get rows() {
        return added.collapsed.size()
      },
      get size() {
        return added.compactedBytes
      },
      isStored: true,
      read: () => payloadOf(added.collapsed),
      remove() {
        for (const { remove } of added.stored) remove()
      },
      seal() {
        if (tail === added) tail = undefined
      },
    }
  }

  return {
    accept(number, batch) {
      if (number <= lastNumber) return
      lastNumber = number
      const fill = pressure()
      if (fill >= 1) return collapse(number, batch)
      // Later records follow the tail.
      tail = undefined
      push(number, fill >= 0.5 ? withoutDetails(batch, counts) : batch)
    },
    spoolError: () => (spool.kind === 'failed' ? spool.error : undefined),
    counts,
  }
}

function inMemory(payload: Buffer): { payload: StoredPayload; isStored: boolean } {
  return { payload: { size: payload.length, read: () => payload, remove() {} }, isStored: false }
}

function payloadOf(collapsed: Collapsed): Buffer {
  return Buffer.from(collapsed.sums().map(encodeSum).join(''))
}

function withoutDetails({ lines, rows }: LedgerLines, counts: IntakeCounts): LedgerLines {
  const { records, invalid } = decodeLines(Buffer.from(lines))
  counts.damaged += invalid
  const stripped = records.map((record) => {
    if (record.kind === 'sum') return encodeSum(record.sum)
    if (hasDetails(record.entry)) counts.droppedDetails += 1
    return encodeEntry({ ...record.entry, details: {} })
  })
  return { lines: stripped.join(''), rows: Math.min(rows, stripped.length) }
}
