import { setTimeout as delay } from 'node:timers/promises'
import { createCollapsed } from './collapse.ts'
import type { LedgerEntry } from './entry.ts'
import { withoutSettlement } from './settlement.ts'
import type { LedgerSink } from './sink.ts'
import { encodeEntry, encodeSum } from './wire.ts'

/** Lines of `wire.ts` from a data plane. */
export type LedgerLines = {
  readonly lines: string
  /** Number of lines. */
  readonly rows: number
}

/** Counts parts of entries that a full queue drops: details (payloads, explanations), or whole rows. */
export type DropMeter = {
  dropped(kind: 'details' | 'rows', count: number): void
}

export type LedgerSender = LedgerSink & {
  /** Sends everything; resolves when the writer has accepted it, or after a time limit. */
  flush(): Promise<void>
  close(): void
}

export type LedgerSenderOptions = {
  /** Resolves when the writer has accepted the lines. */
  send(lines: LedgerLines): Promise<void>
  meter: DropMeter
  limits?: SenderLimits
}

/** Characters that are not yet accepted: above them, details are dropped, or entries are added up. */
export type SenderLimits = { readonly dropDetailsAt: number; readonly collapseAt: number }

const sendEveryMs = 100
/** Beyond it, the thread of the writer does not respond. */
const flushWaitMs = 3_000
const fullAt = 64 * 1024
const defaultLimits: SenderLimits = { dropDetailsAt: 8 * 1024 * 1024, collapseAt: 32 * 1024 * 1024 }
const maxSums = 1_000
const maxCharges = 10_000

/**
 * Ledger of a data plane: sends batches of lines to the writer. It never waits: while the writer does not
 * accept, details are dropped, then entries are added up to sums, which retain every amount.
 */
export function createLedgerSender(options: LedgerSenderOptions): LedgerSender {
  const { send, meter, limits = defaultLimits } = options
  const collapsed = createCollapsed(maxSums, maxCharges)
  const sending = new Set<Promise<void>>()
  const waiting = { lines: '', rows: 0 }
  /** Characters sent and not yet accepted. */
  let sent = 0

  function post(batch: LedgerLines): void {
    sent += batch.lines.length
    const done = send(batch)
      // The process or the data plane ends.
      .catch(() => meter.dropped('rows', batch.rows))
      .then(() => {
        sent -= batch.lines.length
        sending.delete(done)
      })
    sending.add(done)
  }

  function sendWaiting(): void {
    if (waiting.rows > 0) {
      post({ lines: waiting.lines, rows: waiting.rows })
      waiting.lines = ''
      waiting.rows = 0
    }
    if (collapsed.size() > 0 && sent < limits.dropDetailsAt) sendCollapsed()
  }

  function sendCollapsed(): void {
    const sums = collapsed.sums()
    collapsed.clear()
    post({ lines: sums.map(encodeSum).join(''), rows: sums.length })
  }

  function lineOf(entry: LedgerEntry, unaccepted: number): string {
    if (unaccepted < limits.dropDetailsAt || !hasDetails(entry)) return encodeEntry(entry)
    meter.dropped('details', 1)
    return encodeEntry({ ...entry, details: {} })
  }

  const timer = setInterval(sendWaiting, sendEveryMs)
  timer.unref()

  return {
    record(entry) {
      const unaccepted = sent + waiting.lines.length
      if (unaccepted >= limits.collapseAt) {
        // A sum cannot be recognised as a second settlement.
        collapsed.add(withoutSettlement(entry))
        meter.dropped('rows', 1)
        return
      }
      waiting.lines += lineOf(entry, unaccepted)
      waiting.rows += 1
      if (waiting.lines.length >= fullAt) sendWaiting()
    },
    async flush() {
      sendWaiting()
      if (collapsed.size() > 0) sendCollapsed()
      await Promise.race([Promise.all(sending), delay(flushWaitMs, undefined, { ref: false })])
    },
    close: () => clearInterval(timer),
  }
}

/** Whether an entry has parts that are dropped first. */
export function hasDetails({ details: { explanation, request, response } }: LedgerEntry): boolean {
  return explanation !== undefined || request !== undefined || response !== undefined
}
