import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { ExchangeLeases } from '../../../lib/planes/lease-exchange.ts'
import { createLocalMemory } from '../../../lib/planes/memory.ts'
import { consume, isExhausted, type Rate } from '../bucket.ts'
import { createKeyedBuckets } from '../keyed-buckets.ts'
import { createLeaseClient } from './lease-client.ts'
import { createLeases } from './leases.ts'
import { type SharedBucket, settle } from './settle.ts'

// Processes with the real buckets and leases on a simulated database with delays and outages.

const startMs = 1_000_000
const clock = { monotonic: () => Date.now() - startMs + 50_000 }

beforeEach(() => {
  vi.useFakeTimers({ now: startMs })
})

afterEach(() => {
  vi.useRealTimers()
})

type Database = {
  readonly buckets: Map<string, SharedBucket>
  readonly seen: Set<string>
  delayMs: number
  isAway: boolean
}

function createDatabase(): Database {
  return { buckets: new Map(), seen: new Set(), delayMs: 1, isAway: false }
}

function exchangeWith(database: Database, process: string): ExchangeLeases {
  return async (reports) => {
    const { delayMs } = database
    await new Promise((resolve) => setTimeout(resolve, delayMs / 2))
    if (database.isAway) throw new Error('away')
    database.seen.add(process)
    const replies = reports.map((report) => {
      const id = `${report.limit} ${report.key}`
      const settled = settle(database.buckets.get(id), report, process, Date.now())
      database.buckets.set(id, settled.bucket)
      return settled.reply
    })
    await new Promise((resolve) => setTimeout(resolve, delayMs / 2))
    return { replies, processes: database.seen.size }
  }
}

/** A process; `request` returns whether a request is admitted. */
function createProcess(database: Database, name: string, rate: Rate) {
  const client = createLeaseClient(exchangeWith(database, name), clock)
  const leases = createLeases('limit', 'requests', client)
  const buckets = createKeyedBuckets(createLocalMemory(), 'limit', 100, leases)
  const configured = { ...rate, sinceMs: 0 }
  return {
    client,
    request(key: string | undefined = 'k'): boolean {
      const now = clock.monotonic()
      buckets.select(key, configured)
      while (!buckets.lock(configured, now)) buckets.makeRoom(now)
      const admits = !isExhausted(buckets.bucket, configured)
      if (admits) consume(buckets.bucket, configured, 1)
      buckets.unlock()
      buckets.settle(now)
      return admits
    },
  }
}

/** Stated bound: the allowance of one bucket, and one share of the capacity for each process. */
function mostAdmitted({ capacity, refill, intervalMs }: Rate, processes: number, elapsedMs: number): number {
  const refills = Math.floor(elapsedMs / intervalMs) + 1
  return capacity + refills * refill + processes * Math.ceil(capacity / Math.min(processes, 4))
}

const step = fc.record({
  process: fc.nat(4),
  requests: fc.oneof(fc.constantFrom(1, 2, 5), fc.nat(60)),
  waitMs: fc.oneof(fc.nat(20), fc.nat(300), fc.nat(3_000)),
})

describe('a shared limit', () => {
  it('admits at most one bucket and one share for each process, whatever the load and the delays', async () => {
    const property = fc.asyncProperty(
      fc.record({
        processes: fc.integer({ min: 1, max: 5 }),
        capacity: fc.oneof(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 200 })),
        refillShare: fc.double({ min: 0.05, max: 1, noNaN: true }),
        intervalMs: fc.constantFrom(500, 1_000, 10_000, 60_000),
        delayMs: fc.constantFrom(1, 10, 80, 400),
        steps: fc.array(step, { minLength: 1, maxLength: 40 }),
      }),
      async ({ processes, capacity, refillShare, intervalMs, delayMs, steps }) => {
        const rate = { capacity, refill: Math.max(1, Math.floor(capacity * refillShare)), intervalMs }
        const database = { ...createDatabase(), delayMs }
        const all = Array.from({ length: processes }, (_, index) =>
          createProcess(database, `p${index}`, rate),
        )
        const begin = Date.now()
        let admitted = 0
        for (const { process, requests, waitMs } of steps) {
          for (let count = 0; count < requests; count++)
            admitted += Number(all[process % processes]?.request() === true)
          expect(admitted).toBeLessThanOrEqual(mostAdmitted(rate, processes, Date.now() - begin))
          await vi.advanceTimersByTimeAsync(waitMs)
        }
        vi.clearAllTimers()
      },
    )
    await fc.assert(property, { numRuns: 150 })
  })

  it('admits its whole rate over time, to one process and to several', async () => {
    for (const processes of [1, 3]) {
      const rate = { capacity: 60, refill: 60, intervalMs: 1_000 }
      const database = createDatabase()
      const all = Array.from({ length: processes }, (_, index) => createProcess(database, `p${index}`, rate))
      let admitted = 0
      const seconds = 20
      for (let ms = 0; ms < seconds * 1_000; ms += 5) {
        for (const { request } of all) admitted += Number(request()) + Number(request())
        await vi.advanceTimersByTimeAsync(5)
      }
      expect(admitted).toBeGreaterThanOrEqual(seconds * 60 * 0.97)
      expect(admitted).toBeLessThanOrEqual(60 + seconds * 60 + processes * 60)
    }
  })

  it('is exhausted for all processes after one has consumed it', async () => {
    const rate = { capacity: 90, refill: 90, intervalMs: 60_000 }
    const database = createDatabase()
    const all = ['a', 'b', 'c'].map((name) => createProcess(database, name, rate))
    for (const { request } of all) request()
    await vi.advanceTimersByTimeAsync(200)
    let admitted = 3
    for (let count = 0; count < 400; count++) {
      admitted += Number(all[0]?.request() === true)
      await vi.advanceTimersByTimeAsync(10)
    }
    expect(admitted).toBe(90)
    const use = () =>
      all.map(({ request }) => Array.from({ length: 50 }, () => request()).filter(Boolean).length)
    expect(use()).toEqual([0, 3, 3])
    await vi.advanceTimersByTimeAsync(200)
    expect(use()).toEqual([0, 0, 0])
  })

  it('is counted by each process during an outage, and together after it', async () => {
    const rate = { capacity: 10, refill: 10, intervalMs: 60_000 }
    const database = createDatabase()
    const all = ['a', 'b'].map((name) => createProcess(database, name, rate))
    database.isAway = true
    const use = (times: number) =>
      all.map(({ request }) => Array.from({ length: times }, () => request()).filter(Boolean).length)
    use(1)
    await vi.advanceTimersByTimeAsync(100)
    expect(all.map(({ client }) => client.isAway)).toEqual([true, true])
    expect(use(20)).toEqual([9, 9])
    database.isAway = false
    await vi.advanceTimersByTimeAsync(5_000)
    expect(all.map(({ client }) => client.isAway)).toEqual([false, false])
    expect(use(1)).toEqual([0, 0])
    await vi.advanceTimersByTimeAsync(60_000)
    const [one = 0, other = 0] = use(10)
    expect(one + other).toBeGreaterThan(0)
    expect(one + other).toBeLessThanOrEqual(10)
  })

  it('counts alone while the database does not respond for a second', async () => {
    const rate = { capacity: 100, refill: 100, intervalMs: 60_000 }
    const database = { ...createDatabase(), delayMs: 8_000 }
    const process = createProcess(database, 'a', rate)
    const use = () => Array.from({ length: 200 }, () => process.request()).filter(Boolean).length
    expect(use()).toBe(25)
    await vi.advanceTimersByTimeAsync(1_100)
    expect(use()).toBe(75)
  })

  it('causes no exchange for requests within a lease, and none with reports when idle', async () => {
    const rate = { capacity: 100_000, refill: 1, intervalMs: 3_600_000 }
    const database = createDatabase()
    const exchange = vi.fn(exchangeWith(database, 'a'))
    const leases = createLeases('limit', 'requests', createLeaseClient(exchange, clock))
    const buckets = createKeyedBuckets(createLocalMemory(), 'limit', 100, leases)
    const configured = { ...rate, sinceMs: 0 }
    for (let count = 0; count < 2_000; count++) {
      buckets.select('k', configured)
      buckets.lock(configured, clock.monotonic())
      consume(buckets.bucket, configured, 1)
      buckets.unlock()
      buckets.settle(0)
      await vi.advanceTimersByTimeAsync(1)
    }
    expect(exchange.mock.calls.length).toBeLessThan(40)
    await vi.advanceTimersByTimeAsync(1_000)
    exchange.mockClear()
    await vi.advanceTimersByTimeAsync(60_000)
    expect(exchange.mock.calls.every(([reports]) => reports.length === 0)).toBe(true)
    await vi.advanceTimersByTimeAsync(700_000)
    exchange.mockClear()
    await vi.advanceTimersByTimeAsync(60_000)
    expect(exchange).not.toHaveBeenCalled()
  })
})
