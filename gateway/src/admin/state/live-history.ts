import type { LiveCounts } from '../../telemetry/live/live-counts.ts'
import type { PlaneObservation } from '../../telemetry/live/observation.ts'
import { quantileOf, sketchBuckets } from '../../telemetry/live/sketch.ts'

/** Figures of one interval. */
export type LivePoint = {
  /** End of the interval, milliseconds since the epoch. */
  readonly time: number
  readonly requests: number
  /** Status 5xx. */
  readonly errors: number
  /** Status 4xx. */
  readonly refused: number
  readonly p50Ms?: number
  readonly p99Ms?: number
  readonly inputTokens: number
  readonly outputTokens: number
  readonly costUsd: number
}

export type LiveFigures = {
  readonly bucketSeconds: number
  /** Oldest first; at most 15 minutes. */
  readonly points: readonly LivePoint[]
  readonly now: {
    readonly requestsPerSecond: number
    /** Part of the requests with status 5xx, from 0 to 1. */
    readonly errorRate: number
    readonly p50Ms?: number
    readonly p99Ms?: number
    readonly tokensPerMinute: number
    readonly costUsdPerHour: number
    readonly activeRequests: number
  }
}

export const sampleMs = 5_000
/** 15 minutes. */
const maxPoints = 180
/** Points for the current rate of requests: 15 seconds. */
const rateSamples = 3
/** Points for the current quantiles and tokens: one minute. */
const currentSamples = 12

const zero: LiveCounts = {
  ...{ requests: 0, errors: 0, refused: 0, inputTokens: 0, outputTokens: 0, costUsd: 0 },
  durations: [],
}

/** History of the figures of all data planes together, from samples of their totals. */
export type LiveHistory = {
  add(time: number, observations: readonly (PlaneObservation | undefined)[]): void
  figures(): LiveFigures
}

export function createLiveHistory(): LiveHistory {
  const points: LivePoint[] = []
  /** Sketches of the latest points. */
  const recent: (readonly number[])[] = []
  /** Totals at the previous sample, by data plane. */
  const previous = new Map<number, LiveCounts>()
  let activeRequests = 0

  function take(plane: number, counts: LiveCounts): LiveCounts {
    const before = previous.get(plane) ?? zero
    previous.set(plane, counts)
    // A replaced data plane starts again at 0.
    return counts.requests < before.requests ? counts : difference(counts, before)
  }

  return {
    add(time, observations) {
      const isFirst = previous.size === 0
      const parts = observations.flatMap((observed, plane) =>
        observed ? [take(plane, observed.counts)] : [],
      )
      activeRequests = observations.reduce((sum, observed) => sum + (observed?.activeRequests ?? 0), 0)
      // Totals before the first sample have no time.
      if (isFirst) return
      const { durations, ...figures } = parts.reduce(sum, zero)
      points.push({ time, ...figures, ...quantiles(durations) })
      recent.push(durations)
      if (points.length > maxPoints) points.shift()
      if (recent.length > currentSamples) recent.shift()
    },
    figures: () => ({
      bucketSeconds: sampleMs / 1_000,
      points,
      now: { ...currentFigures(points), ...quantiles(merged(recent)), activeRequests },
    }),
  }
}

function currentFigures(points: readonly LivePoint[]) {
  const rate = total(points.slice(-rateSamples))
  const minute = points.slice(-currentSamples)
  const { inputTokens, outputTokens, ...lastMinute } = total(minute)
  const hours = (points.length * sampleMs) / 3_600_000
  return {
    requestsPerSecond: perSecond(rate.requests, Math.min(points.length, rateSamples)),
    errorRate: lastMinute.requests === 0 ? 0 : lastMinute.errors / lastMinute.requests,
    tokensPerMinute: 60 * perSecond(inputTokens + outputTokens, minute.length),
    costUsdPerHour: hours === 0 ? 0 : total(points).costUsd / hours,
  }
}

function perSecond(count: number, samples: number): number {
  return samples === 0 ? 0 : count / ((samples * sampleMs) / 1_000)
}

function total(points: readonly LivePoint[]): Omit<LiveCounts, 'durations'> {
  return points.reduce<LiveCounts>((all, point) => sum(all, { ...point, durations: [] }), zero)
}

function quantiles(durations: readonly number[]): Pick<LivePoint, 'p50Ms' | 'p99Ms'> {
  const [p50Ms, p99Ms] = [quantileOf(durations, 0.5), quantileOf(durations, 0.99)]
  return p50Ms === undefined || p99Ms === undefined ? {} : { p50Ms: rounded(p50Ms), p99Ms: rounded(p99Ms) }
}

function rounded(ms: number): number {
  return Number(ms.toPrecision(3))
}

function merged(sketches: readonly (readonly number[])[]): number[] {
  const counts = new Array<number>(sketchBuckets).fill(0)
  for (const sketch of sketches)
    for (const [index, count] of sketch.entries()) counts[index] = (counts[index] ?? 0) + count
  return counts
}

function sum(one: LiveCounts, other: LiveCounts): LiveCounts {
  return combined(one, other, (a, b) => a + b)
}

function difference(one: LiveCounts, other: LiveCounts): LiveCounts {
  return combined(one, other, (a, b) => Math.max(0, a - b))
}

function combined(one: LiveCounts, other: LiveCounts, by: (a: number, b: number) => number): LiveCounts {
  const [longer, shorter] =
    one.durations.length >= other.durations.length
      ? [one.durations, other.durations]
      : [other.durations, one.durations]
  const isSwapped = longer !== one.durations
  return {
    requests: by(one.requests, other.requests),
    errors: by(one.errors, other.errors),
    refused: by(one.refused, other.refused),
    inputTokens: by(one.inputTokens, other.inputTokens),
    outputTokens: by(one.outputTokens, other.outputTokens),
    costUsd: by(one.costUsd, other.costUsd),
    durations: longer.map((count, index) => {
      const another = shorter[index] ?? 0
      return isSwapped ? by(another, count) : by(count, another)
    }),
  }
}
