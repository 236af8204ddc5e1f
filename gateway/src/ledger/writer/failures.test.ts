import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, it, vi } from 'vitest'
import { amountsOf, ledgerEntry } from '../../../test/fixtures/ledger.ts'
import { createMemoryLedgerStore, type WriteOutcome } from '../../../test/fixtures/ledger-store.ts'
import type { LedgerEntry } from '../entry.ts'
import { encodeEntry } from '../wire.ts'
import { createWriter, type Writer } from './writer.ts'

// Random sequences of traffic, failures of the database, and ends of threads and processes.

type Step =
  | { kind: 'traffic'; entries: number }
  | { kind: 'outcomes'; outcomes: WriteOutcome[] }
  | { kind: 'database'; isDown: boolean }
  | { kind: 'time'; ms: number }
  | { kind: 'end'; of: 'thread' | 'process' | 'gracefully' }

const outcome = fc.constantFrom<WriteOutcome>('ok', 'down', 'unknown', 'refused')
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('traffic' as const),
      entries: fc.integer({ min: 1, max: 400 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('outcomes' as const),
      outcomes: fc.array(outcome, { maxLength: 4 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('database' as const), isDown: fc.boolean() }) },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('time' as const), ms: fc.integer({ min: 1, max: 3_000 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('end' as const),
      of: fc.constantFrom('thread' as const, 'process' as const, 'gracefully' as const),
    }),
  },
)

type Run = { writer: Writer; source: string; number: number }

async function play(steps: readonly Step[], folder: string) {
  const store = createMemoryLedgerStore()
  const sent: LedgerEntry[] = []
  let outcomes: WriteOutcome[] = []
  store.outcome = () => outcomes.shift() ?? 'ok'
  let starts = 0
  let pid = 0

  const open = (source: string): Writer => {
    starts += 1
    const ownPid = pid
    return createWriter({
      settings: { kind: 'sqlite', maxQueue: 1_000, retentionMs: 1_000, usageRetentionMs: 2_000 },
      store,
      source,
      incarnation: `i${starts}`,
      spool: { folder, prefix: 'db' },
      owner: { host: 'test', pid },
      uid: undefined,
      isRunning: (other) => other === pid && other !== ownPid,
      now: () => 1_000_000,
      monotonic: () => performance.now(),
      random: () => 0.5,
      send() {},
    })
  }
  const start = (): Run => {
    pid += 1
    const source = `${String(pid).padStart(8, '0')}-0000-4000-8000-000000000000`
    return { writer: open(source), source, number: 0 }
  }
  let run = start()

  for (const next of steps) {
    switch (next.kind) {
      case 'traffic': {
        const entries = Array.from({ length: next.entries }, (_, index) =>
          ledgerEntry({
            id: `${sent.length + index}`,
            keyId: `key-${index % 5}`,
            charges: [
              { budget: 'llm/a', value: `v${index % 3}`, windowStart: 0, windowEnd: 2_000_000, amount: 7 },
            ],
            details: { request: 'text' },
          }),
        )
        sent.push(...entries)
        run.number += 1
        const lines = entries.map(encodeEntry).join('')
        run.writer.receive({ kind: 'lines', number: run.number, lines, rows: entries.length })
        break
      }
      case 'outcomes':
        outcomes = [...next.outcomes]
        break
      case 'database':
        store.isDown = next.isDown
        break
      case 'time':
        await vi.advanceTimersByTimeAsync(next.ms)
        break
      case 'end': {
        if (next.of === 'gracefully') run.writer.receive({ kind: 'close' })
        await vi.advanceTimersByTimeAsync(next.of === 'gracefully' ? 10 : 0)
        vi.clearAllTimers()
        if (next.of === 'thread') run.writer = open(run.source)
        else run = start()
      }
    }
  }
  store.isDown = false
  outcomes = []
  await vi.advanceTimersByTimeAsync(60_000)
  run.writer.receive({ kind: 'close' })
  await vi.advanceTimersByTimeAsync(100)
  vi.clearAllTimers()
  return { store, sent }
}

it('counts every entry once, after any sequence of failures and ends', async () => {
  vi.useFakeTimers()
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 25 }), async (steps) => {
      const folder = mkdtempSync(join(tmpdir(), 'spool-'))
      try {
        const { store, sent } = await play(steps, folder)
        expect(amountsOf(store)).toEqual(amountsOf({ entries: sent, sums: [] }))
        expect(new Set(store.entries.map(({ id }) => id)).size).toBe(store.entries.length)
      } finally {
        vi.clearAllTimers()
        rmSync(folder, { recursive: true, force: true })
      }
    }),
    { numRuns: 60 },
  )
  vi.useRealTimers()
}, 60_000)
