import { afterEach, expect, it, vi } from 'vitest'
import { amountsOf, ledgerEntry } from '../../test/fixtures/ledger.ts'
import type { LedgerEntry } from './entry.ts'
import { createLedgerSender, type LedgerLines } from './sender.ts'
import type { UsageSum } from './usage-sum.ts'
import { decodeLines } from './wire.ts'

afterEach(() => void vi.useRealTimers())

function world(limits?: { dropDetailsAt: number; collapseAt: number }) {
  vi.useFakeTimers()
  const batches: LedgerLines[] = []
  const dropped = { details: 0, rows: 0 }
  const accepting = { now: Promise.withResolvers<void>() }
  const sender = createLedgerSender({
    async send(lines) {
      batches.push(lines)
      await accepting.now.promise
    },
    meter: {
      dropped(kind, count) {
        dropped[kind] += count
      },
    },
    ...(limits === undefined ? {} : { limits }),
  })
  return { sender, batches, dropped, accept: () => accepting.now.resolve() }
}

function contentOf(batches: readonly LedgerLines[]): { entries: LedgerEntry[]; sums: UsageSum[] } {
  const records = batches.flatMap(({ lines }) => decodeLines(Buffer.from(lines)).records)
  return {
    entries: records.flatMap((record) => (record.kind === 'entry' ? [record.entry] : [])),
    sums: records.flatMap((record) => (record.kind === 'sum' ? [record.sum] : [])),
  }
}

it('sends a batch after 100 ms, and earlier if it is full', () => {
  const { sender, batches } = world()
  sender.record(ledgerEntry())
  sender.record(ledgerEntry())
  expect(batches).toHaveLength(0)
  vi.advanceTimersByTime(100)
  expect(batches).toMatchObject([{ rows: 2 }])
  sender.record(ledgerEntry({ details: { request: 'x'.repeat(64 * 1024) } }))
  expect(batches).toHaveLength(2)
})

it('drops details, then rows, while the writer does not accept, and retains every amount', async () => {
  const { sender, batches, dropped, accept } = world({ dropDetailsAt: 50_000, collapseAt: 100_000 })
  const entries = Array.from({ length: 1_000 }, (_, index) =>
    ledgerEntry({ status: index % 2 === 0 ? 200 : 429, details: { request: 'secret text' } }),
  )
  for (const entry of entries) {
    sender.record(entry)
    vi.advanceTimersByTime(1)
  }
  expect(dropped.details).toBeGreaterThan(0)
  expect(dropped.rows).toBeGreaterThan(500)
  const before = contentOf(batches)
  expect(before.entries.at(0)?.details.request).toBe('secret text')
  expect(before.entries.at(-1)?.details).toEqual({})
  expect(batches.reduce((sum, { lines }) => sum + lines.length, 0)).toBeLessThan(110_000)
  accept()
  vi.useRealTimers()
  await sender.flush()
  const content = contentOf(batches)
  expect(content.entries.length + dropped.rows).toBe(1_000)
  expect(amountsOf(content)).toEqual(amountsOf({ entries, sums: [] }))
})

it('flushes what waits', async () => {
  const { sender, batches, accept } = world()
  sender.record(ledgerEntry())
  accept()
  await sender.flush()
  expect(contentOf(batches).entries).toHaveLength(1)
})
