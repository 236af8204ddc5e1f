import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createExporter, type ExportResult } from './exporter.ts'

beforeEach(() => {
  vi.useFakeTimers()
})

afterEach(() => {
  vi.useRealTimers()
})

function started(answer: (attempt: number) => ExportResult | Promise<ExportResult>) {
  const sent: number[] = []
  const counts: Record<string, number> = {}
  const count = (name: string, items: number) => {
    counts[name] = (counts[name] ?? 0) + items
  }
  const warnings: string[] = []
  const exporter = createExporter({
    encode: (items) => new Uint8Array(items.length),
    send: async (message) => {
      sent.push(message.byteLength)
      return answer(sent.length)
    },
    meter: {
      sent: (items) => count('sent', items),
      dropped: (reason, items) => count(reason, items),
      retried: () => count('retried', 1),
    },
    clock: { now: () => Date.now(), monotonic: () => Date.now() },
    random: () => 0.5,
    log: { warn: (_, message) => void warnings.push(message) },
    fields: {},
  })
  const add = (items: number) => {
    for (let index = 0; index < items; index++) exporter.add(new Uint8Array(10))
  }
  return { exporter, sent, counts, warnings, add }
}

const accepted: ExportResult = { kind: 'accepted', rejected: 0 }
const unavailable: ExportResult = { kind: 'unavailable', reason: 'status 503' }

describe('exporter', () => {
  it('sends a batch after a second, and a full one at once', async () => {
    const { add, sent, counts } = started(() => accepted)
    add(3)
    await vi.advanceTimersByTimeAsync(999)
    expect(sent).toEqual([])
    await vi.advanceTimersByTimeAsync(1)
    expect(sent).toEqual([3])
    add(512)
    await vi.advanceTimersByTimeAsync(0)
    expect([sent, counts]).toEqual([[3, 512], { sent: 515 }])
  })

  it('repeats a batch with back-off, in order', async () => {
    const { add, sent, counts } = started((attempt) => (attempt < 3 ? unavailable : accepted))
    add(512)
    add(2)
    await vi.advanceTimersByTimeAsync(10_000)
    expect([sent, counts]).toEqual([[512, 512, 512, 2], { retried: 2, sent: 514 }])
  })

  it('drops a batch after five attempts, or at once if it is refused', async () => {
    const failing = started(() => Promise.reject(new Error('connect')))
    failing.add(1)
    await vi.advanceTimersByTimeAsync(60_000)
    expect([failing.sent.length, failing.counts['unavailable']]).toEqual([5, 1])
    const refusing = started(() => ({ kind: 'refused', reason: 'status 400' }))
    refusing.add(2)
    await vi.advanceTimersByTimeAsync(1_000)
    expect([refusing.sent, refusing.counts, refusing.warnings]).toEqual([
      [2],
      { refused: 2 },
      ['telemetry dropped'],
    ])
  })

  it('counts items that the collector rejects', async () => {
    const { add, counts } = started(() => ({ kind: 'accepted', rejected: 1 }))
    add(3)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(counts).toEqual({ sent: 2, rejected: 1 })
  })

  it('drops items beyond the limit while the collector hangs, with one warning', () => {
    const { add, counts, warnings } = started(() => new Promise(() => {}))
    add(10_000)
    expect(counts).toEqual({ queue_full: 10_000 - 8_192 - 512 })
    expect(warnings).toHaveLength(1)
  })

  it('flushes within its time limit', async () => {
    const { exporter, add, sent } = started(() => accepted)
    add(2)
    await exporter.flush()
    expect(sent).toEqual([2])
    const hanging = started(() => new Promise(() => {}))
    hanging.add(1)
    const flushed = hanging.exporter.flush()
    await vi.advanceTimersByTimeAsync(6_000)
    await flushed
  })
})
