import { chmodSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { amountsOf, ledgerEntries, ledgerEntry } from '../../../test/fixtures/ledger.ts'
import { createMemoryLedgerStore, type MemoryLedgerStore } from '../../../test/fixtures/ledger-store.ts'
import type { LedgerEntry } from '../entry.ts'
import { encodeEntry } from '../wire.ts'
import type { BudgetUpdate, FromWriter, WriterStatus } from './protocol.ts'
import { createWriter, type Writer } from './writer.ts'

let folder = ''
beforeEach(() => {
  vi.useFakeTimers()
  folder = mkdtempSync(join(tmpdir(), 'spool-'))
})
afterEach(() => {
  vi.useRealTimers()
  rmSync(folder, { recursive: true, force: true })
})

const sources = {
  one: '11111111-1111-4111-8111-111111111111',
  two: '22222222-2222-4222-8222-222222222222',
}

type World = {
  writer: Writer
  /** Sends entries as one batch of lines. */
  record(...entries: LedgerEntry[]): void
  messages: FromWriter[]
  status(): WriterStatus | undefined
  updates(): BudgetUpdate[]
  logged(): string[]
  close(): Promise<void>
}

let incarnations = 0

function start(
  store: MemoryLedgerStore,
  { source = sources.one, maxQueue = 200_000, pid = 1, ended = [1] } = {},
): World {
  const messages: FromWriter[] = []
  incarnations += 1
  const writer = createWriter({
    settings: { kind: 'sqlite', maxQueue, retentionMs: 1_000, usageRetentionMs: 2_000 },
    store,
    source,
    incarnation: `i${incarnations}`,
    spool: { folder, prefix: 'db' },
    owner: { host: 'test', pid },
    uid: undefined,
    isRunning: (other) => !ended.includes(other),
    now: () => 1_000_000,
    monotonic: () => performance.now(),
    random: () => 0.5,
    send: (message) => void messages.push(message),
  })
  let number = 0
  return {
    writer,
    record(...entries) {
      number += 1
      const lines = entries.map(encodeEntry).join('')
      writer.receive({ kind: 'lines', number, lines, rows: entries.length })
    },
    messages,
    status: () => messages.findLast((message) => message.kind === 'status')?.status,
    updates: () => messages.flatMap((message) => (message.kind === 'budgets' ? [message.update] : [])),
    logged: () => messages.flatMap((message) => (message.kind === 'log' ? [message.message] : [])),
    async close() {
      writer.receive({ kind: 'close' })
      await vi.advanceTimersByTimeAsync(1)
    },
  }
}

function charged(amount: number): LedgerEntry {
  return ledgerEntry({
    charges: [{ budget: 'llm/a', value: 'x', windowStart: 0, windowEnd: 2_000_000, amount }],
  })
}

describe('the writer', () => {
  it('accepts lines, writes them, and empties the spool', async () => {
    const store = createMemoryLedgerStore()
    const { record, messages, close } = start(store)
    record(ledgerEntry({ id: 'a' }), ledgerEntry({ id: 'b' }))
    expect(messages).toContainEqual({ kind: 'accepted', number: 1 })
    await vi.advanceTimersByTimeAsync(200)
    expect(store.entries.map(({ id }) => id)).toEqual(['a', 'b'])
    await close()
    expect(readdirSync(folder)).toEqual([])
  })

  it('combines batches during an outage, and writes each entry once', async () => {
    const store = createMemoryLedgerStore()
    store.isDown = true
    const { record, status, logged } = start(store)
    for (let index = 0; index < 50; index += 1) record(ledgerEntry({ id: `e${index}` }))
    await vi.advanceTimersByTimeAsync(20_000)
    expect(status()).toMatchObject({ connected: false, lastError: 'the database is down', queuedRows: 50 })
    store.isDown = false
    await vi.advanceTimersByTimeAsync(10_000)
    expect(store.entries).toHaveLength(50)
    expect(store.batches).toHaveLength(1)
    expect(status()).toMatchObject({ connected: true, queuedRows: 0, written: 50 })
    expect(logged()).toEqual([
      'ledger database unavailable, entries are spooled',
      'ledger database available again',
    ])
  })

  it('counts a batch once whose commit was not confirmed, also when more records follow', async () => {
    const store = createMemoryLedgerStore()
    const { record, updates, status } = start(store)
    let attempts = 0
    store.outcome = () => {
      attempts += 1
      return attempts === 1 ? 'unknown' : 'ok'
    }
    record(charged(1))
    await vi.advanceTimersByTimeAsync(200)
    record(charged(2))
    await vi.advanceTimersByTimeAsync(5_000)
    expect(store.entries).toHaveLength(2)
    expect(
      updates()
        .flatMap(({ confirmed }) => confirmed)
        .reduce((sum, { amount }) => sum + amount, 0),
    ).toBe(3)
    expect(updates().at(-1)?.totals).toMatchObject([{ used: 3n }])
    expect(status()).toMatchObject({ retried: 1 })
  })

  it('writes fewer rows at once after an error, and more again later', async () => {
    const store = createMemoryLedgerStore()
    store.isDown = true
    const { record } = start(store)
    const rows = (count: number) => Array.from({ length: count }, () => ledgerEntry())
    for (let index = 0; index < 60; index += 1) record(...rows(50))
    store.outcome = ({ entries }) => (entries.length > 500 ? 'down' : 'ok')
    store.isDown = false
    await vi.advanceTimersByTimeAsync(120_000)
    expect(store.entries).toHaveLength(3_000)
    store.outcome = () => 'ok'
    for (let index = 0; index < 200; index += 1) record(...rows(50))
    await vi.advanceTimersByTimeAsync(10_000)
    expect(Math.max(...store.batches.map(({ entries }) => entries.length))).toBe(2_500)
  })

  it('reports totals of other replicas, once budgets are watched', async () => {
    const store = createMemoryLedgerStore()
    const { writer, updates } = start(store)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(updates()).toEqual([])
    writer.receive({ kind: 'watchBudgets' })
    await store.write({ source: 'other', first: 1, number: 1, entries: [charged(5)], sums: [] })
    await vi.advanceTimersByTimeAsync(300)
    expect(updates().at(-1)).toMatchObject({ totals: [{ used: 5n }], confirmed: [] })
  })

  it('removes what is older than its retention', async () => {
    const store = createMemoryLedgerStore()
    start(store)
    await vi.advanceTimersByTimeAsync(7_000)
    expect(store.calls).toContain('pruneRequests')
    expect(store.calls).toContain('pruneUsage')
  })

  it.each(['sums', 'withoutDetails'])('writes a refused batch in a simpler form: %s', async (form) => {
    const store = createMemoryLedgerStore()
    const { record, status } = start(store)
    store.outcome = ({ entries }) => {
      const isRefused = form === 'sums' ? entries.length > 0 : entries.some(({ details }) => details.request)
      return isRefused ? 'refused' : 'ok'
    }
    record(ledgerEntry({ id: 'bad', details: { request: 'x' } }))
    await vi.advanceTimersByTimeAsync(10_000)
    expect(amountsOf(store)).toEqual(amountsOf({ entries: [ledgerEntry()], sums: [] }))
    expect(status()).toMatchObject(form === 'sums' ? { droppedRows: 1 } : { droppedDetails: 1 })
    record(ledgerEntry({ id: 'good' }))
    store.outcome = () => 'ok'
    await vi.advanceTimersByTimeAsync(1_000)
    expect(store.entries.at(-1)?.id).toBe('good')
  })
})

describe('pressure', () => {
  it('drops details from half of the queue, and collapses rows beyond it, with exact amounts', async () => {
    const store = createMemoryLedgerStore()
    store.isDown = true
    const { record, status } = start(store, { maxQueue: 1_000 })
    const entries = fc.sample(ledgerEntries, { numRuns: 3_000, seed: 7 })
    for (let at = 0; at < entries.length; at += 50) record(...entries.slice(at, at + 50))
    await vi.advanceTimersByTimeAsync(1_000)
    const during = status()
    expect(during?.droppedDetails).toBeGreaterThan(0)
    expect(during?.droppedRows).toBe(2_000)
    store.isDown = false
    await vi.advanceTimersByTimeAsync(20_000)
    expect(store.entries).toHaveLength(1_000)
    expect(amountsOf(store)).toEqual(amountsOf({ entries, sums: [] }))
    expect(status()).toMatchObject({ queuedRows: 0, spoolBytes: 0 })
  })

  it('needs bounded space during a long outage', async () => {
    const store = createMemoryLedgerStore()
    store.isDown = true
    const { record, status } = start(store, { maxQueue: 1_000 })
    const batch = Array.from({ length: 1_000 }, (_, index) => ledgerEntry({ keyId: `k${index}` }))
    for (let index = 0; index < 100; index += 1) record(...batch)
    await vi.advanceTimersByTimeAsync(1_000)
    // One batch of rows, and the sums of 99 others: 50 MB without compaction.
    expect(status()?.spoolBytes).toBeLessThan(20_000_000)
    store.isDown = false
    await vi.advanceTimersByTimeAsync(20_000)
    expect(amountsOf(store).requests).toBe(100_000)
  })
})

describe('an end of the process', () => {
  it('leaves the rest in the spool for the next one, which writes it once', async () => {
    const entries = fc.sample(ledgerEntries, { numRuns: 3_000, seed: 8 })
    const store = createMemoryLedgerStore()
    store.isDown = true
    const first = start(store, { maxQueue: 1_000 })
    for (let at = 0; at < entries.length; at += 50) first.record(...entries.slice(at, at + 50))
    await vi.advanceTimersByTimeAsync(100)
    // Killed: its timers end, its files remain.
    vi.clearAllTimers()
    store.isDown = false
    const second = start(store, { source: sources.two, pid: 2 })
    await vi.advanceTimersByTimeAsync(20_000)
    expect(amountsOf(store)).toEqual(amountsOf({ entries, sums: [] }))
    expect(second.logged()).toContain('ledger spool of an ended process found')
    await second.close()
    expect(readdirSync(folder)).toEqual([])
  })

  it('counts once what was committed before the end, in any combination of records', async () => {
    const store = createMemoryLedgerStore()
    const first = start(store)
    for (let index = 0; index < 10; index += 1) first.record(charged(1))
    // Commits, but the process ends before it knows.
    store.outcome = () => 'unknown'
    await vi.advanceTimersByTimeAsync(150)
    for (let index = 0; index < 10; index += 1) first.record(charged(1))
    vi.clearAllTimers()
    store.outcome = () => 'ok'
    const second = start(store, { source: sources.two, pid: 2 })
    await vi.advanceTimersByTimeAsync(10_000)
    expect(store.entries).toHaveLength(20)
    // These charges are not part of the unconfirmed ones of this process.
    expect(second.updates().flatMap(({ confirmed }) => confirmed)).toEqual([])
  })

  it('of the thread only: the next thread continues, and ignores numbers that it has', async () => {
    const store = createMemoryLedgerStore()
    store.isDown = true
    const first = start(store)
    first.record(charged(1))
    first.record(charged(2))
    vi.clearAllTimers()
    store.isDown = false
    const second = start(store)
    second.record(charged(1))
    second.record(charged(2))
    second.record(charged(4))
    await vi.advanceTimersByTimeAsync(5_000)
    expect(amountsOf(store).charges).toEqual(new Map([['["llm/a","x",0]', 7n]]))
    expect(second.updates().flatMap(({ confirmed }) => confirmed)).toMatchObject([{ amount: 7 }])
  })

  it('does not take the spool of a running process', async () => {
    const store = createMemoryLedgerStore()
    store.isDown = true
    start(store, { pid: 1 }).record(charged(1))
    const second = start(store, { source: sources.two, pid: 2, ended: [] })
    await vi.advanceTimersByTimeAsync(5_000)
    expect(second.logged()).not.toContain('ledger spool of an ended process found')
  })

  it('skips damaged records, counts them, and writes the others', async () => {
    writeFileSync(join(folder, `db-${sources.one}-x-00000001.spool`), 'not a spool file')
    const store = createMemoryLedgerStore()
    const { record } = start(store, { source: sources.two, pid: 2 })
    record(charged(1))
    await vi.advanceTimersByTimeAsync(5_000)
    expect(store.entries).toHaveLength(1)
    expect(readdirSync(folder).filter((name) => name.includes(sources.one))).toEqual([])
  })
})

describe('a spool folder that is not usable', () => {
  it('leaves entries in memory, collapses them beyond the limit, and loses no amount', async () => {
    rmSync(folder, { recursive: true })
    writeFileSync(folder, 'a file')
    const store = createMemoryLedgerStore()
    store.isDown = true
    const { record, status, logged } = start(store)
    const entries = Array.from({ length: 80 }, () =>
      ledgerEntry({ details: { request: 'x'.repeat(1024 * 1024) } }),
    )
    for (const entry of entries) record(entry)
    for (let index = 0; index < 200; index += 1) record(ledgerEntry())
    await vi.advanceTimersByTimeAsync(1_000)
    expect(status()?.spoolError).toContain('ENOTDIR')
    expect(logged()).toContain('ledger spool not writable, entries are in memory only')
    expect(status()?.droppedDetails).toBeGreaterThan(10)
    store.isDown = false
    await vi.advanceTimersByTimeAsync(10_000)
    expect(amountsOf(store).requests).toBe(280)
  })

  it('is used again once it is writable', async () => {
    const store = createMemoryLedgerStore()
    store.isDown = true
    rmSync(folder, { recursive: true })
    writeFileSync(folder, 'a file')
    const { record, status, logged } = start(store)
    record(ledgerEntry())
    rmSync(folder)
    await vi.advanceTimersByTimeAsync(6_000)
    record(ledgerEntry())
    await vi.advanceTimersByTimeAsync(600)
    expect(status()).toMatchObject({ spoolError: undefined, queuedRows: 2 })
    expect(logged()).toContain('ledger spool writable again')
  })

  it('is refused if other users can write to it', async () => {
    chmodSync(folder, 0o777)
    const store = createMemoryLedgerStore()
    const messages: FromWriter[] = []
    const uid = process.getuid?.()
    createWriter({
      settings: { kind: 'sqlite', maxQueue: 1_000, retentionMs: 1, usageRetentionMs: 1 },
      store,
      source: sources.one,
      incarnation: 'i',
      spool: { folder, prefix: 'db' },
      owner: { host: 'test', pid: 1 },
      uid,
      isRunning: () => false,
      now: () => 0,
      monotonic: () => performance.now(),
      random: () => 0.5,
      send: (message) => void messages.push(message),
    })
    expect(messages).toMatchObject([{ kind: 'log', message: 'ledger spool folder not usable' }])
  })
})
