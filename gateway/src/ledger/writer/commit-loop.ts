import { setImmediate as immediate } from 'node:timers/promises'
import { messageOf } from '../../lib/thrown.ts'
import type { LedgerStore } from '../store/store.ts'
import type { Outage } from './outage.ts'
import type { BudgetUpdate } from './protocol.ts'
import type { RecordQueue } from './record-queue.ts'
import type { Retention } from './retention.ts'
import type { Sources } from './sources.ts'

export type CommitLoop = {
  /** Ends the wait for records. */
  wake(): void
  /** Polls totals of budgets from now on. */
  watchBudgets(): void
  /** Writes what waits while the database responds; resolves when the loop has ended. */
  close(): Promise<void>
}

export type CommitLoopOptions = {
  store: LedgerStore
  sources: Sources
  commit(queue: RecordQueue): Promise<void>
  retention: Retention
  outage: Outage
  now(): number
  monotonic(): number
  onBudgets(update: BudgetUpdate): void
  /** Searches for the spool of ended processes, and updates the heartbeat. */
  keepHouse(): void
}

/** Small commits are this far apart, so that entries of all data planes are combined. */
const betweenWritesMs = 100
const fullRows = 500
const budgetPollMs = 250
const housekeepingMs = 2_000
const idleMs = 1_000
/** Time for the rest at `close`. */
const closeMs = 5_000

/** Starts the loop that commits records: the only user of the store, one operation at a time. */
export function startCommitLoop(options: CommitLoopOptions): CommitLoop {
  const { store, sources, retention, outage, now, monotonic, onBudgets } = options
  const signal = createSignal()
  const due = { write: 0, poll: Number.POSITIVE_INFINITY, housekeeping: 0, close: Number.POSITIVE_INFINITY }
  let isOpen = false
  let since: number | undefined

  async function poll(): Promise<void> {
    const polled = await store.budgetTotals(since, now())
    since = polled.since
    due.poll = monotonic() + budgetPollMs
    // Without totals too: it shows that the database responds.
    onBudgets({ totals: polled.totals, confirmed: [] })
  }

  /** Milliseconds until the next step. */
  async function step(): Promise<number> {
    if (!isOpen) await store.open()
    isOpen = true
    const isClosing = due.close < Number.POSITIVE_INFINITY
    const queue = sources.next()
    const isFull = queue !== undefined && queue.rows() >= fullRows
    if (queue !== undefined && (isFull || isClosing || monotonic() >= due.write)) {
      due.write = monotonic() + betweenWritesMs
      await options.commit(queue)
    }
    outage.succeeded()
    if (isClosing) return 0
    if (monotonic() >= due.poll) await poll()
    if (retention.dueInMs() <= 0 && !isFull) await retention.step()
    if (isFull) return 0
    const untilWrite = queue === undefined ? idleMs : due.write - monotonic()
    return Math.min(untilWrite, due.poll - monotonic(), retention.dueInMs(), idleMs)
  }

  async function run(): Promise<void> {
    for (;;) {
      if (monotonic() >= due.housekeeping) {
        due.housekeeping = monotonic() + housekeepingMs
        options.keepHouse()
      }
      if (monotonic() >= due.close) return
      if (due.close < Number.POSITIVE_INFINITY && sources.next() === undefined) return
      try {
        const waitMs = await step()
        if (waitMs > 0) await signal.wait(waitMs)
        // Statements of SQLite block: lines that have arrived meanwhile are spooled first.
        else await immediate()
      } catch (error) {
        isOpen = false
        since = undefined
        const pauseMs = outage.failed(messageOf(error))
        // The rest is in the spool, and written after the next start.
        if (due.close < Number.POSITIVE_INFINITY) return
        await signal.pause(pauseMs)
      }
    }
  }

  const running = run()

  return {
    wake: signal.wake,
    watchBudgets() {
      due.poll = Math.min(due.poll, monotonic())
      signal.wake()
    },
    async close() {
      due.close = Math.min(due.close, monotonic() + closeMs)
      signal.close()
      await running
    },
  }
}

/** Waits that end early. */
function createSignal() {
  let resolve = () => {}
  let kind: 'none' | 'wait' | 'pause' = 'none'
  let isClosing = false

  function start(next: 'wait' | 'pause', ms: number): Promise<void> {
    if (isClosing) return Promise.resolve()
    const { promise, resolve: end } = Promise.withResolvers<void>()
    const timer = setTimeout(end, ms)
    kind = next
    resolve = () => {
      clearTimeout(timer)
      kind = 'none'
      end()
    }
    return promise
  }

  return {
    /** Resolves after a time, or at `wake`. */
    wait: (ms: number) => start('wait', ms),
    /** Resolves after a time, or at `close`. */
    pause: (ms: number) => start('pause', ms),
    wake() {
      if (kind === 'wait') resolve()
    },
    close() {
      isClosing = true
      resolve()
    },
  }
}
