import { messageOf } from '../../../lib/thrown.ts'
import { type GrpcCall, type GrpcClient, GrpcError } from '../../../net/grpc-client.ts'
import type { Log } from '../../../telemetry/log.ts'
import type { GlobalLimitMeter } from '../../../telemetry/metrics/limits.ts'
import { decodeResponse } from './wire.ts'

/** Queue of token usage reports to the service, sent in the background. */
export type ReportQueue = {
  push(call: GrpcCall, message: Uint8Array): void
  readonly pending: number
}

export type ReportQueueOptions = {
  label: string
  meter: GlobalLimitMeter
  client: Pick<GrpcClient, 'trackPending'>
  log: Log
  /** Maximum number of queued reports. */
  maxWaiting?: number | undefined
}

const maxInFlight = 16
const defaultMaxWaiting = 10_000
const reportDeadlineMs = 5_000
/** Covers a restart of the service, which takes a few seconds. Later reports are lost. */
const retryDelaysMs = [100, 300, 1_000, 3_000]
const deadlineExceeded = 4
const unavailable = 14

type UsageReport = { call: GrpcCall; message: Uint8Array }

/**
 * Sends reports in the order of arrival, a few at a time. Only UNAVAILABLE is retried. After a deadline the
 * outcome is unknown: a service whose store stalls counts the report later, and each retry as well.
 */
export function createReportQueue(options: ReportQueueOptions): ReportQueue {
  const { label, meter, client, log, maxWaiting = defaultMaxWaiting } = options
  let waiting: UsageReport[] = []
  let first = 0
  let inFlight = 0
  let allSent: PromiseWithResolvers<void> | undefined
  /** Losses are logged once until a report succeeds again. The metric counts them. */
  let losing = false

  function lost(outcome: 'unknown' | 'failed' | 'dropped', reason: string): void {
    meter.reported(outcome)
    if (!losing) log.warn({ limit: label, reason }, 'reports of tokens to the rate limit service are lost')
    losing = true
  }

  function start(): void {
    while (inFlight < maxInFlight) {
      const report = waiting[first]
      if (report === undefined) break
      first += 1
      inFlight += 1
      void deliver(report).then(ended)
    }
    if (first < waiting.length && first < 1_000) return
    waiting = waiting.slice(first)
    first = 0
  }

  function ended(): void {
    inFlight -= 1
    meter.pending(-1)
    start()
    if (inFlight > 0) return
    allSent?.resolve()
    allSent = undefined
  }

  async function deliver({ call, message }: UsageReport): Promise<void> {
    for (let attempt = 0; ; attempt += 1) {
      try {
        const { code } = decodeResponse(await call(message, { deadlineMs: reportDeadlineMs }))
        meter.reported(code === 'overLimit' ? 'over_limit' : 'sent')
        losing = false
        return
      } catch (error) {
        const delayMs = statusOf(error) === unavailable ? retryDelaysMs[attempt] : undefined
        if (delayMs === undefined) {
          const outcome = statusOf(error) === deadlineExceeded ? 'unknown' : 'failed'
          return lost(outcome, messageOf(error))
        }
        await new Promise((resolve) => setTimeout(resolve, delayMs))
      }
    }
  }

  return {
    push(call, message) {
      if (waiting.length - first >= maxWaiting) return lost('dropped', `queue full: ${maxWaiting} reports`)
      meter.pending(1)
      waiting.push({ call, message })
      if (allSent === undefined) {
        allSent = Promise.withResolvers()
        client.trackPending(allSent.promise)
      }
      start()
    },
    get pending() {
      return waiting.length - first + inFlight
    },
  }
}

function statusOf(error: unknown): number | undefined {
  return error instanceof GrpcError ? error.status : undefined
}
