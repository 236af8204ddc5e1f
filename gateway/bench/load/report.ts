export type LoadReport = {
  requests: number
  failures: number
  firstFailure: string
  seconds: number
  p50Ms: number
  p99Ms: number
  maxMs: number
  /** One for each group of connections of a `pace` order. */
  groups?: LoadReport[]
}

/** Latencies in ms of successful requests, and the failures. */
export type Observed = { latencies: number[]; failures: number; firstFailure: string }

export const noRequests: LoadReport = {
  requests: 0,
  failures: 0,
  firstFailure: '',
  seconds: 0,
  p50Ms: 0,
  p99Ms: 0,
  maxMs: 0,
}

/** Quantiles of the latencies; `started` is a time of `performance.now`. */
export function reportOf({ latencies, failures, firstFailure }: Observed, started: number): LoadReport {
  const sorted = Float64Array.from(latencies).sort()
  const quantile = (part: number) =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0
  return {
    requests: sorted.length,
    failures,
    firstFailure,
    seconds: (performance.now() - started) / 1000,
    p50Ms: quantile(0.5),
    p99Ms: quantile(0.99),
    maxMs: quantile(1),
  }
}
