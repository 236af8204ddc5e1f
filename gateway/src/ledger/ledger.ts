import { setTimeout as delay } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { messageOf } from '../lib/thrown.ts'
import type { Log } from '../telemetry/log.ts'
import type { LedgerMeter } from '../telemetry/metrics/ledger.ts'
import type { LedgerSettings } from './config.ts'
import type { LedgerLines } from './sender.ts'
import type { BudgetUpdate, FromWriter, ToWriter, WriterStart, WriterStatus } from './writer/protocol.ts'
import { spoolPlaceOf } from './writer/spool-place.ts'

/** The ledger of the process: entries of all data planes to the thread that writes them. */
export type Ledger = {
  /** Resolves when the writer runs, before it connects. Rejects if the URL is not valid. */
  readonly ready: Promise<void>
  /** Accepts lines; resolves when they are in the spool. */
  accept(lines: LedgerLines): Promise<void>
  /** Polls totals of budgets four times a second from now on. `listener` receives the updates in order. */
  watchBudgets(listener: (update: BudgetUpdate) => void): void
  /** Last state that the writer reported; undefined before the first one. */
  status(): LedgerStatus | undefined
  /** Writes what waits while the database responds, then ends the thread. The rest is in the spool. */
  close(): Promise<void>
}

/** State of the ledger for the admin API. */
export type LedgerStatus = WriterStatus & { readonly database: 'sqlite' | 'postgres'; readonly spool: string }

export type LedgerOptions = {
  settings: LedgerSettings
  log: Log
  meter: LedgerMeter
  randomUuid(): string
  /** Folder of the system for temporary files. */
  temporaryFolder: string
  /** Program of the thread. */
  threadUrl?: URL
}

/** Source in a checkout, a bundle of its own in the package (scripts/build.ts). */
const writerUrl = import.meta.url.endsWith('.ts')
  ? new URL('./writer/thread.ts', import.meta.url)
  : new URL('./ledger-writer.js', import.meta.url)

const closeWaitMs = 8_000
const restartAfterMs = 1_000

type ThreadState = { kind: 'open'; thread: Worker } | { kind: 'waiting' } | { kind: 'closing' }

/** Lines that the thread has not accepted yet. */
type Unaccepted = { readonly message: Extract<ToWriter, { kind: 'lines' }>; accepted(): void }

/** Starts the writer of the ledger. A failed thread is replaced, and receives what it has not accepted. */
export function openLedger(options: LedgerOptions): Ledger {
  const { settings, log, meter } = options
  const start: WriterStart = {
    settings,
    source: options.randomUuid(),
    spool: spoolPlaceOf(settings, options.temporaryFolder),
  }
  const unaccepted = new Map<number, Unaccepted>()
  const counters = createCounters(meter)
  const listeners: ((update: BudgetUpdate) => void)[] = []
  const ready = Promise.withResolvers<void>()
  const closed = Promise.withResolvers<void>()
  let lastNumber = 0
  let status: WriterStatus | undefined
  let state: ThreadState = { kind: 'waiting' }

  function receive(message: FromWriter): void {
    switch (message.kind) {
      case 'ready':
        ready.resolve()
        return
      case 'invalid':
        ready.reject(new Error(message.message))
        return
      case 'accepted':
        unaccepted.get(message.number)?.accepted()
        unaccepted.delete(message.number)
        return
      case 'budgets':
        for (const listener of listeners) listener(message.update)
        return
      case 'status':
        status = message.status
        counters.report(status)
        return
      case 'log':
        log[message.level](message.fields, message.message)
        return
      case 'closed':
        closed.resolve()
    }
  }

  function launch(): void {
    const thread = startThread(options.threadUrl ?? writerUrl, start, receive, (error) => {
      counters.restarted()
      if (state.kind === 'closing') return closed.resolve()
      state = { kind: 'waiting' }
      log.error({ err: error }, 'ledger writer ended, restarted')
      setTimeout(relaunch, restartAfterMs).unref()
    })
    state = { kind: 'open', thread }
    if (listeners.length > 0) post({ kind: 'watchBudgets' })
    for (const { message } of unaccepted.values()) post(message)
  }

  function relaunch(): void {
    if (state.kind === 'waiting') launch()
  }

  function post(message: ToWriter): void {
    if (state.kind === 'open') state.thread.postMessage(message)
  }

  launch()
  // A start that fails earlier does not wait for it.
  ready.promise.catch(() => undefined)

  return {
    ready: ready.promise,
    accept({ lines, rows }) {
      lastNumber += 1
      const message = { kind: 'lines', number: lastNumber, lines, rows } as const
      const { promise, resolve } = Promise.withResolvers<void>()
      unaccepted.set(lastNumber, { message, accepted: resolve })
      post(message)
      return promise
    },
    watchBudgets(listener) {
      listeners.push(listener)
      post({ kind: 'watchBudgets' })
    },
    status: () => status && { database: settings.kind, spool: start.spool.folder, ...status },
    async close() {
      if (state.kind === 'waiting') launch()
      const thread = state.kind === 'open' ? state.thread : undefined
      post({ kind: 'close' })
      state = { kind: 'closing' }
      // An unresponsive database: the rest is in the spool.
      await Promise.race([closed.promise, delay(closeWaitMs, undefined, { ref: false })])
      await thread?.terminate()
    },
  }
}

function startThread(
  url: URL,
  start: WriterStart,
  receive: (message: FromWriter) => void,
  onEnd: (error: Error) => void,
): Worker {
  const worker = new Worker(url, { workerData: start, execArgv: [], env: {}, name: 'ledger writer' })
  let cause: unknown
  worker.on('message', receive)
  worker.on('error', (error) => {
    cause = error
  })
  worker.on('exit', (code) => {
    const reason = cause === undefined ? `exit code ${code}` : messageOf(cause)
    onEnd(new Error(`the thread of the ledger ended: ${reason}`, { cause }))
  })
  return worker
}

/** Adds the counts of the thread, which start at 0 with each thread, to the metrics. */
function createCounters(meter: LedgerMeter) {
  const none = { written: 0, retried: 0, droppedDetails: 0, droppedRows: 0, damaged: 0 }
  let last = none
  return {
    report(status: WriterStatus) {
      meter.queue(status)
      meter.written(status.written - last.written)
      meter.retried(status.retried - last.retried)
      meter.dropped('details', status.droppedDetails - last.droppedDetails)
      meter.dropped('rows', status.droppedRows - last.droppedRows)
      meter.damaged(status.damaged - last.damaged)
      last = status
    },
    restarted() {
      last = none
    },
  }
}
