import type { Clock } from '../../lib/clock.ts'
import { messageOf } from '../../lib/thrown.ts'
import type { Log } from '../log.ts'
import type { ExportMeter } from './export-meters.ts'

/** Outcome of an export request. */
export type ExportResult =
  /** `rejected` items are invalid for the collector (partial success). */
  | { readonly kind: 'accepted'; readonly rejected: number; readonly reason?: string | undefined }
  /** May be repeated, after at least `afterMs`. */
  | { readonly kind: 'unavailable'; readonly reason: string; readonly afterMs?: number | undefined }
  /** Must not be repeated. */
  | { readonly kind: 'refused'; readonly reason: string }

/** Sends an encoded export request. Rejects if there is no response, which permits a repetition. */
export type SendExport = (message: Uint8Array) => Promise<ExportResult>

/** Queue of encoded items for a collector. */
export type Exporter = {
  /** Enqueues an item. Never waits and never throws: items beyond the limits are dropped and counted. */
  add(item: Uint8Array): void
  /** Sends all items in the queue; resolves after that, or when the time for it has passed. */
  flush(): Promise<void>
}

export type ExporterOptions = {
  encode(items: readonly Uint8Array[]): Uint8Array
  send: SendExport
  meter: ExportMeter
  clock: Clock
  /** A number in [0, 1). */
  random(): number
  log: Pick<Log, 'warn'>
  /** Fields of log lines: signal and collector. */
  fields: object
}

/** Longest delay of an item until it is sent. */
const delayMs = 1_000
const batchItems = 512
/** Receivers with default settings accept 4 MiB. */
const batchBytes = 1024 * 1024
const maxItems = 8_192
const maxBytes = 16 * 1024 * 1024
const maxAttempts = 5
const firstBackOffMs = 500
const maxBackOffMs = 10_000
const flushLimitMs = 3_000
/** Minimum interval between log lines about a collector. */
const quietMs = 30_000

/** Creates a queue that sends batches in the background, one at a time, with retries and a bounded memory. */
export function createExporter(options: ExporterOptions): Exporter {
  const { encode, meter, clock, random } = options
  const report = createReporter(options)
  let waiting: Uint8Array[] = []
  let waitingBytes = 0
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> | undefined
  /** Ends the current back-off. */
  let wake: (() => void) | undefined

  function takeBatch(): Uint8Array[] {
    let bytes = 0
    let count = 0
    for (const item of waiting) {
      if (count === batchItems || (count > 0 && bytes + item.byteLength > batchBytes)) break
      bytes += item.byteLength
      count += 1
    }
    const batch = waiting.slice(0, count)
    waiting = waiting.slice(count)
    waitingBytes -= bytes
    return batch
  }

  function start(): void {
    clearTimeout(timer)
    timer = undefined
    running ??= run().finally(() => {
      running = undefined
    })
  }

  async function run(): Promise<void> {
    while (waiting.length > 0) await sendBatch(takeBatch())
  }

  async function sendBatch(batch: readonly Uint8Array[]): Promise<void> {
    const message = encode(batch)
    for (let attempt = 1; ; attempt++) {
      const result = await attemptOf(options, message)
      if (result.kind === 'accepted') {
        meter.sent(batch.length - result.rejected)
        if (result.rejected > 0) drop('rejected', result.rejected, result.reason ?? '')
        return
      }
      if (result.kind === 'refused') return drop('refused', batch.length, result.reason)
      if (attempt === maxAttempts) return drop('unavailable', batch.length, result.reason)
      meter.retried()
      await pause(Math.max(result.afterMs ?? 0, backOffMs(attempt, random())))
    }
  }

  function drop(reason: 'queue_full' | 'rejected' | 'refused' | 'unavailable', count: number, cause: string) {
    meter.dropped(reason, count)
    report(reason, cause)
  }

  function pause(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timeout)
        wake = undefined
        resolve()
      }
      const timeout = setTimeout(done, Math.min(milliseconds, maxBackOffMs))
      timeout.unref()
      wake = done
    })
  }

  return {
    add(item) {
      if (waiting.length >= maxItems || waitingBytes + item.byteLength > maxBytes) {
        drop('queue_full', 1, 'the collector is slower than the traffic')
        return
      }
      waiting.push(item)
      waitingBytes += item.byteLength
      if (running !== undefined) return
      if (waiting.length >= batchItems || waitingBytes >= batchBytes) start()
      else if (timer === undefined) {
        timer = setTimeout(start, delayMs)
        timer.unref()
      }
    },
    async flush() {
      const endsAt = clock.monotonic() + flushLimitMs
      if (waiting.length > 0) start()
      while (running !== undefined && clock.monotonic() < endsAt) {
        wake?.()
        await within(running, endsAt - clock.monotonic())
      }
    },
  }
}

async function attemptOf({ send }: ExporterOptions, message: Uint8Array): Promise<ExportResult> {
  try {
    return await send(message)
  } catch (error) {
    return { kind: 'unavailable', reason: messageOf(error) }
  }
}

/** Exponential, with up to half of it as jitter. */
function backOffMs(attempt: number, random: number): number {
  return Math.min(maxBackOffMs, firstBackOffMs * 2 ** (attempt - 1)) * (0.75 + random / 2)
}

/** Logs failures of a collector, at most one line in `quietMs`. */
function createReporter({ clock, log, fields }: ExporterOptions): (outcome: string, reason: string) => void {
  let loggedAt = Number.NEGATIVE_INFINITY
  return (outcome, reason) => {
    if (clock.monotonic() - loggedAt < quietMs) return
    loggedAt = clock.monotonic()
    log.warn({ ...fields, outcome, reason: reason.slice(0, 300) }, 'telemetry dropped')
  }
}

/** Resolves with the promise, or after a step of the flush, so that a back-off that begins later ends too. */
async function within(running: Promise<void>, milliseconds: number): Promise<void> {
  let timeout: NodeJS.Timeout | undefined
  const limit = new Promise<void>((resolve) => {
    timeout = setTimeout(resolve, Math.min(flushStepMs, Math.max(0, milliseconds)))
  })
  await Promise.race([running, limit])
  clearTimeout(timeout)
}

const flushStepMs = 100
