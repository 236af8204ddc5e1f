import { expect, it } from 'vitest'
import { createLiveMeter, type LiveMeter } from '../../telemetry/live/live-counts.ts'
import type { PlaneObservation } from '../../telemetry/live/observation.ts'
import { createLiveHistory } from './live-history.ts'

function observe(meter: LiveMeter, activeRequests = 0): PlaneObservation {
  return { counts: meter.counts(), activeRequests, conditions: [], connections: {} }
}

it('adds the differences of all data planes', () => {
  const history = createLiveHistory()
  const [one, other] = [createLiveMeter(), createLiveMeter()]
  one.request(200, 10)
  history.add(0, [observe(one), observe(other)])
  expect(history.figures().points).toEqual([])
  for (let index = 0; index < 9; index += 1) one.request(200, 100)
  other.request(503, 1_000)
  other.request(429, 1_000)
  one.tokens(100, 20)
  one.cost(0.5)
  history.add(5_000, [observe(one, 2), observe(other, 1)])
  const { points, now } = history.figures()
  expect(points).toEqual([
    {
      ...{
        time: 5_000,
        requests: 11,
        errors: 1,
        refused: 1,
        inputTokens: 100,
        outputTokens: 20,
        costUsd: 0.5,
      },
      ...{ p50Ms: expect.closeTo(100, -1), p99Ms: expect.closeTo(1_000, -2.4) },
    },
  ])
  expect(now).toMatchObject({
    requestsPerSecond: 11 / 5,
    errorRate: 1 / 11,
    tokensPerMinute: 120 * 12,
    costUsdPerHour: 0.5 * 720,
    activeRequests: 3,
  })
})

it('counts a replaced data plane from its start, and waits for a silent one', () => {
  const history = createLiveHistory()
  const first = createLiveMeter()
  for (let index = 0; index < 5; index += 1) first.request(200, 1)
  history.add(0, [observe(first)])
  history.add(5_000, [undefined])
  first.request(200, 1)
  history.add(10_000, [observe(first)])
  const replacement = createLiveMeter()
  replacement.request(200, 1)
  replacement.request(200, 1)
  history.add(15_000, [observe(replacement)])
  expect(history.figures().points.map(({ requests }) => requests)).toEqual([0, 1, 2])
})

it('retains 15 minutes', () => {
  const history = createLiveHistory()
  const meter = createLiveMeter()
  for (let index = 0; index <= 200; index += 1) history.add(index * 5_000, [observe(meter)])
  const { points, bucketSeconds } = history.figures()
  expect(points.length * bucketSeconds).toBe(900)
  expect(points.at(-1)?.time).toBe(1_000_000)
  expect(history.figures().now).not.toHaveProperty('p50Ms')
})
