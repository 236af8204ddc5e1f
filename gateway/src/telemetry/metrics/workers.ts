import type { MetricRegistry } from './families.ts'

/** Meter of the data planes of the process. */
export type WorkerMeter = {
  /** Sets the number of data planes. */
  started(count: number): void
  /** Counts a data plane that ended by an error. */
  ended(): void
}

export function createWorkerMeter(registry: MetricRegistry): WorkerMeter {
  const threads = registry.gauge({
    name: 'tollgate_worker_threads',
    help: 'Data planes that serve traffic. With 1 it is the main thread.',
    labels: [],
  })
  const failures = registry.counter({
    name: 'tollgate_worker_failures_total',
    help: 'Data planes that ended by an error and were replaced.',
    labels: [],
  })
  return {
    started(count) {
      threads.slot().value = count
      failures.slot()
    },
    ended() {
      failures.slot().value += 1
    },
  }
}
