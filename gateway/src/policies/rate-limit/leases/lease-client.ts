import type { Clock } from '../../../lib/clock.ts'
import type { ExchangeLeases, LeaseReply, LeaseReport } from '../../../lib/planes/lease-exchange.ts'

/** A report of a source, and the application of its reply. */
export type PendingReport = {
  readonly report: LeaseReport
  /** `sentMs` is the time of the report. */
  apply(reply: LeaseReply, sentMs: number): void
  /** The report was not accepted. */
  restore(): void
}

/** Limit with leases. */
export type LeaseSource = {
  /** Due reports, at most a number; they are not collected again before their outcome. */
  collect(nowMs: number, most: number): PendingReport[]
  /** Whether there is anything to report later. */
  isPending(): boolean
}

/** Exchanges reports of a data plane for leases, in the background. */
export type LeaseClient = {
  /** Number of processes that use the database, as last reported. */
  readonly processes: number
  /** Without the database, each process counts the whole limit by itself. */
  readonly isAway: boolean
  /** Requests an exchange soon. */
  wake(source: LeaseSource): void
  /** Requests the number of processes now, and repeatedly while limits are in use. */
  start(): void
}

/** Delay of an exchange after the request that makes it due: requests of a burst share one. */
const wakeMs = 5
/** Delay of the next exchange during an outage. */
const retryMs = 1_000
/** Duration of an exchange after which the database counts as away. */
const slowMs = 1_000
const maxReports = 500
/** Interval of requests for the number of processes, and time without requests after which it ends. */
const countMs = 2_000
const unusedMs = 600_000
/** Assumption before the first response. */
const assumedProcesses = 4

export function createLeaseClient(exchange: ExchangeLeases, clock: Pick<Clock, 'monotonic'>): LeaseClient {
  const active = new Set<LeaseSource>()
  const state = { processes: assumedProcesses, isAway: false }
  let timer: NodeJS.Timeout | undefined
  let isExchanging = false
  let usedAt = 0
  let countedAt = Number.NEGATIVE_INFINITY

  function schedule(ms: number): void {
    if (timer !== undefined || isExchanging) return
    timer = setTimeout(() => {
      timer = undefined
      void run()
    }, ms)
    timer.unref()
  }

  /** Replaces a later exchange. */
  function hurry(): void {
    if (state.isAway && timer !== undefined) return
    clearTimeout(timer)
    timer = undefined
    schedule(state.isAway ? retryMs : wakeMs)
  }

  async function run(): Promise<void> {
    const sentMs = Math.floor(clock.monotonic())
    const pending = collectAll(sentMs)
    const isDue = sentMs - countedAt >= countMs
    if (pending.length > 0 || isDue) await send(pending, sentMs)
    if (active.size > 0) schedule(state.isAway ? retryMs : wakeMs)
    else if (sentMs - usedAt < unusedMs) schedule(countMs)
  }

  function collectAll(nowMs: number): PendingReport[] {
    const pending: PendingReport[] = []
    for (const source of active) {
      pending.push(...source.collect(nowMs, maxReports - pending.length))
      if (!source.isPending()) active.delete(source)
    }
    return pending
  }

  async function send(pending: readonly PendingReport[], sentMs: number): Promise<void> {
    isExchanging = true
    countedAt = sentMs
    const slow = setTimeout(() => {
      state.isAway = true
    }, slowMs)
    try {
      const { replies, processes } = await exchange(pending.map(({ report }) => report))
      state.processes = Math.max(1, processes)
      state.isAway = false
      for (const [index, { apply, restore }] of pending.entries()) {
        const reply = replies[index]
        if (reply === undefined) restore()
        else apply(reply, sentMs)
      }
    } catch {
      // The main thread reports the outage.
      state.isAway = true
      for (const { restore } of pending) restore()
    } finally {
      clearTimeout(slow)
      isExchanging = false
    }
  }

  return {
    get processes() {
      return state.processes
    },
    get isAway() {
      return state.isAway
    },
    wake(source) {
      const isNew = !active.has(source)
      active.add(source)
      usedAt = clock.monotonic()
      if (isNew || timer === undefined) hurry()
    },
    start() {
      usedAt = clock.monotonic()
      hurry()
    },
  }
}
