import type { LineWriter } from '../../telemetry/line-writer.ts'

/** Lines of a data plane's log, for the writer of the process. */
export type LogBatch = { readonly lines: string; readonly lost: number }

/** Longest delay of a line until it is sent. */
const sendEveryMs = 100
const fullAt = 16 * 1024
/** Characters sent and not yet accepted by the writer of the process, and characters not yet sent. */
const mostWaiting = 4 * 1024 * 1024

/**
 * Line writer of a data plane: sends batches of whole lines to the writer of the process, so that lines of
 * several threads do not interleave. It never waits: lines beyond the limit are lost and counted.
 */
export function createBatchWriter(send: (batch: LogBatch) => Promise<void>): LineWriter {
  let waiting = ''
  let lost = 0
  /** Characters sent and not yet accepted. */
  let sent = 0
  const sending = new Set<Promise<void>>()

  function sendWaiting(): void {
    if (waiting === '' && lost === 0) return
    const batch = { lines: waiting, lost }
    waiting = ''
    lost = 0
    sent += batch.lines.length
    const done = send(batch)
      .catch(() => undefined)
      .then(() => {
        sent -= batch.lines.length
        sending.delete(done)
      })
    sending.add(done)
  }

  const timer = setInterval(sendWaiting, sendEveryMs)
  timer.unref()

  return {
    write(line) {
      if (sent + waiting.length + line.length > mostWaiting) {
        lost += 1
        return
      }
      waiting += line
      if (waiting.length >= fullAt) sendWaiting()
    },
    lose(lines) {
      lost += lines
    },
    async flush() {
      sendWaiting()
      await Promise.all(sending)
    },
  }
}
