import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createMetrics } from '../metrics/metrics.ts'
import { createMetricExport } from './metric-export.ts'

beforeEach(() => {
  vi.useFakeTimers()
})

afterEach(() => {
  vi.useRealTimers()
})

function started(send: () => Promise<void> = async () => {}) {
  const batches: { items: number; isLast: boolean }[] = []
  const warnings: string[] = []
  const metrics = createMetrics()
  metrics.route('a').done(200, 1, undefined)
  const exported = createMetricExport({
    collect: () => metrics.collect(),
    send: ({ items, isLast }) => {
      batches.push({ items: items.length, isLast })
      return send()
    },
    clock: { now: () => Date.now(), monotonic: () => Date.now() },
    log: { warn: (_, message) => void warnings.push(message) },
  })
  return { exported, batches, warnings }
}

it('metrics are exported at each interval, and at the end', async () => {
  const { exported, batches } = started()
  await vi.advanceTimersByTimeAsync(100_000)
  expect(batches).toEqual([])
  exported.use(10_000)
  await vi.advanceTimersByTimeAsync(20_000)
  expect(batches).toEqual([
    { items: expect.any(Number), isLast: false },
    { items: expect.any(Number), isLast: false },
  ])
  expect(batches[0]?.items).toBeGreaterThan(5)
  exported.use(undefined)
  await vi.advanceTimersByTimeAsync(60_000)
  expect(batches).toHaveLength(2)
  exported.use(10_000)
  await exported.close()
  await vi.advanceTimersByTimeAsync(60_000)
  expect(batches.slice(2)).toEqual([{ items: expect.any(Number), isLast: true }])
})

it('an export does not overlap with the next one, and its failure is logged', async () => {
  const hanging = started(() => new Promise(() => {}))
  hanging.exported.use(1_000)
  await vi.advanceTimersByTimeAsync(10_000)
  expect(hanging.batches).toHaveLength(1)
  const closed = hanging.exported.close()
  await vi.advanceTimersByTimeAsync(5_000)
  await closed
  const failing = started(() => Promise.reject(new Error('no data plane')))
  failing.exported.use(1_000)
  await vi.advanceTimersByTimeAsync(2_000)
  expect([failing.batches.length, failing.warnings]).toEqual([
    2,
    ['metrics not exported', 'metrics not exported'],
  ])
})
