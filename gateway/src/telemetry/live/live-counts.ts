import { bucketOf, sketchBuckets } from './sketch.ts'

/** Totals of a data plane since its start: plain data. */
export type LiveCounts = {
  readonly requests: number
  /** Responses with status 5xx. */
  readonly errors: number
  /** Responses with status 4xx. */
  readonly refused: number
  readonly inputTokens: number
  readonly outputTokens: number
  readonly costUsd: number
  /** Durations of requests, as a sketch. */
  readonly durations: readonly number[]
}

/** Counters of all routes and models together. */
export type LiveMeter = {
  request(status: number, durationMs: number): void
  tokens(input: number, output: number): void
  /** Adds US dollars. */
  cost(usd: number): void
  counts(): LiveCounts
}

/** Creates the counters: a request costs two additions and a logarithm. */
export function createLiveMeter(): LiveMeter {
  const durations = new Array<number>(sketchBuckets).fill(0)
  const totals = { requests: 0, errors: 0, refused: 0, inputTokens: 0, outputTokens: 0, costUsd: 0 }
  return {
    request(status, durationMs) {
      totals.requests += 1
      if (status >= 500) totals.errors += 1
      else if (status >= 400) totals.refused += 1
      const index = bucketOf(durationMs)
      durations[index] = (durations[index] ?? 0) + 1
    },
    tokens(input, output) {
      totals.inputTokens += input
      totals.outputTokens += output
    },
    cost(usd) {
      totals.costUsd += usd
    },
    counts: () => ({ ...totals, durations: [...durations] }),
  }
}
