import type { Orphans } from './orphans.ts'
import { createRecordQueue, type RecordQueue } from './record-queue.ts'

/** Queues of this process and of ended ones, in turn. */
export type Sources = {
  /** The queue to write next: of this process and of an ended one alternately. */
  next(): RecordQueue | undefined
  /** Searches for spool files of ended processes. Throws if the folder cannot be read. */
  search(): void
  /** Rows of ended processes, as far as their files are open. */
  otherRows(): number
  /** Bytes of the open files of ended processes. */
  otherBytes(): number
}

export type SourcesOptions = {
  own: RecordQueue
  orphans: Orphans
  onFound(source: string, rows: number): void
  onDamaged(records: number): void
}

/** Files of one ended process are open at a time. */
type Adopted = { readonly queue: RecordQueue; readonly bytes: number }

export function createSources({ own, orphans, onFound, onDamaged }: SourcesOptions): Sources {
  let waiting: string[] = []
  let adopted: Adopted | undefined
  let ownIsNext = true

  function open(source: string): Adopted {
    const { records, damaged, bytes } = orphans.open(source)
    const queue = createRecordQueue(source)
    for (const record of records) queue.push({ ...record, isStored: true })
    if (damaged > 0) onDamaged(damaged)
    if (records.length > 0) onFound(source, queue.rows())
    return { queue, bytes }
  }

  function adopt(): void {
    if (adopted !== undefined && adopted.queue.records().length > 0) return
    if (adopted !== undefined) orphans.forget(adopted.queue.source)
    const source = waiting.shift()
    adopted = source === undefined ? undefined : open(source)
  }

  return {
    next() {
      adopt()
      const other = adopted?.queue
      ownIsNext = !ownIsNext
      const order = ownIsNext ? [own, other] : [other, own]
      return order.find((queue) => queue !== undefined && queue.records().length > 0)
    },
    search() {
      const open = adopted?.queue.source
      waiting = orphans.find().filter((source) => source !== open)
    },
    otherRows: () => adopted?.queue.rows() ?? 0,
    otherBytes: () => adopted?.bytes ?? 0,
  }
}
