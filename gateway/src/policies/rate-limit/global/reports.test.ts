import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { fixtureContext } from '../../../../test/fixtures/pipeline.ts'
import { type GrpcCall, GrpcError } from '../../../net/grpc-client.ts'
import { createReportQueue } from './reports.ts'

const message = Uint8Array.of(1)
const fine: GrpcCall = async () => new Uint8Array()

function queue(maxWaiting?: number) {
  const { metrics, decisions } = fixtureContext()
  const warnings: unknown[] = []
  const held: Promise<unknown>[] = []
  const silent = () => {}
  const reports = createReportQueue({
    label: 'l',
    meter: metrics.globalLimit('l'),
    client: { trackPending: (work) => void held.push(work) },
    log: {
      debug: silent,
      info: silent,
      error: silent,
      audit: silent,
      warn: (fields) => void warnings.push(fields),
    },
    maxWaiting,
  })
  return { reports, decisions, warnings, held }
}

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

describe('reports', () => {
  it('are sent immediately, and the process waits for them', async () => {
    const { reports, decisions, held } = queue()
    reports.push(fine, message)
    expect(reports.pending).toBe(1)
    await Promise.all(held)
    expect([reports.pending, held.length, decisions.get('l report sent')]).toEqual([0, 1, 1])
  })

  it('are sent again when the service is away for a moment', async () => {
    const { reports, decisions, warnings } = queue()
    let calls = 0
    reports.push(async () => {
      calls += 1
      if (calls < 4) throw new GrpcError(14, 'connection refused')
      return new Uint8Array()
    }, message)
    await vi.advanceTimersByTimeAsync(1_400)
    expect([calls, decisions.get('l report sent'), warnings.length]).toEqual([4, 1, 0])
  })

  it('are dropped after some seconds, counted, and logged once', async () => {
    const { reports, decisions, warnings } = queue()
    const away: GrpcCall = async () => {
      throw new GrpcError(14, 'connection refused')
    }
    for (let index = 0; index < 3; index++) reports.push(away, message)
    await vi.advanceTimersByTimeAsync(5_000)
    expect([reports.pending, decisions.get('l report failed')]).toEqual([0, 3])
    expect(warnings).toEqual([{ limit: 'l', reason: 'connection refused' }])
    reports.push(fine, message)
    await vi.advanceTimersByTimeAsync(0)
    reports.push(away, message)
    await vi.advanceTimersByTimeAsync(5_000)
    expect(warnings).toHaveLength(2)
  })

  it('are not sent again where that changes nothing, or counts twice', async () => {
    const { reports, decisions } = queue()
    const call = vi.fn<GrpcCall>()
    call.mockRejectedValueOnce(new GrpcError(12, 'unimplemented'))
    call.mockResolvedValueOnce(Uint8Array.of(0x12, 0x7f))
    reports.push(call, message)
    reports.push(call, message)
    await vi.advanceTimersByTimeAsync(60_000)
    expect([call.mock.calls.length, decisions.get('l report failed')]).toEqual([2, 2])
  })

  it('are not sent again after a deadline, because the service may have counted them', async () => {
    const { reports, decisions } = queue()
    const call = vi.fn<GrpcCall>(async () => {
      throw new GrpcError(4, 'deadline exceeded')
    })
    reports.push(call, message)
    await vi.advanceTimersByTimeAsync(60_000)
    expect([call.mock.calls.length, decisions.get('l report unknown')]).toEqual([1, 1])
  })

  it('are counted apart when the service answers that the limit is exceeded', async () => {
    const { reports, decisions } = queue()
    reports.push(async () => Uint8Array.of(8, 2), message)
    await vi.advanceTimersByTimeAsync(0)
    expect(decisions).toEqual(new Map([['l report over_limit', 1]]))
  })

  it('go out a few at a time, in order, and are dropped beyond a bound', async () => {
    const { reports, decisions } = queue(10)
    const waiting: (() => void)[] = []
    const sent: number[] = []
    const slow: GrpcCall = (bytes) => {
      sent.push(bytes[0] ?? -1)
      return new Promise((resolve) => waiting.push(() => resolve(new Uint8Array())))
    }
    for (let index = 0; index < 30; index++) reports.push(slow, Uint8Array.of(index))
    expect([waiting.length, reports.pending, decisions.get('l report dropped')]).toEqual([16, 26, 4])
    while (reports.pending > 0) {
      waiting.shift()?.()
      await vi.advanceTimersByTimeAsync(0)
    }
    expect(sent).toEqual(Array.from({ length: 26 }, (_, index) => index))
  })
})
