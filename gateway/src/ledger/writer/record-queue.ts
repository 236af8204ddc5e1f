import type { StoredRecord } from './journal.ts'

/** A record that waits for the database. */
export type QueuedRecord = StoredRecord & {
  /** Whether the record is in a spool file. */
  readonly isStored: boolean
  /** Called before the record is read for a write: it must not change afterwards. */
  seal?(): void
}

/** Consecutive records of one source, to be written together. */
export type QueuedBatch = {
  readonly source: string
  readonly first: number
  readonly number: number
  readonly records: readonly QueuedRecord[]
}

export type BatchLimits = { readonly rows: number; readonly bytes: number }

/** Records of one source in the order of their numbers. */
export type RecordQueue = {
  readonly source: string
  push(record: QueuedRecord): void
  /** The oldest records up to the limits, at least one. They remain in the queue. Undefined if empty. */
  peek(limits: BatchLimits): QueuedBatch | undefined
  /** Removes the records up to a number. */
  confirm(last: number): void
  records(): readonly QueuedRecord[]
  /** Lines that wait. */
  rows(): number
  /** Bytes of records that are in memory only. */
  memoryBytes(): number
}

export function createRecordQueue(source: string): RecordQueue {
  let records: QueuedRecord[] = []
  const fixed = { rows: 0, memoryBytes: 0 }
  /** Records that grow until they are sealed: few, and not part of `fixed`. */
  const growing = new Set<QueuedRecord>()

  function count(record: QueuedRecord, sign: 1 | -1): void {
    if (record.seal !== undefined) {
      if (sign === 1) growing.add(record)
      else growing.delete(record)
      return
    }
    fixed.rows += sign * record.rows
    if (!record.isStored) fixed.memoryBytes += sign * record.size
  }

  return {
    source,
    push(record) {
      records.push(record)
      count(record, 1)
    },
    peek(limits) {
      const batch: QueuedRecord[] = []
      let rows = 0
      let bytes = 0
      for (const record of records) {
        if (batch.length > 0 && (rows + record.rows > limits.rows || bytes + record.size > limits.bytes))
          break
        record.seal?.()
        batch.push(record)
        rows += record.rows
        bytes += record.size
      }
      const first = batch[0]
      const last = batch.at(-1)
      if (first === undefined || last === undefined) return undefined
      return { source, first: first.first, number: last.number, records: batch }
    },
    confirm(last) {
      const end = records.findIndex(({ number }) => number > last)
      const confirmed = end < 0 ? records : records.slice(0, end)
      records = end < 0 ? [] : records.slice(end)
      for (const record of confirmed) {
        count(record, -1)
        record.remove()
      }
    },
    records: () => records,
    rows: () => [...growing].reduce((sum, { rows }) => sum + rows, fixed.rows),
    memoryBytes: () => fixed.memoryBytes,
  }
}
