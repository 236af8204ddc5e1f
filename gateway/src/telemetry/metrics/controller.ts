import { type MetricRegistry, observe } from './families.ts'

export type WatchFailure = 'connection' | 'not_found' | 'forbidden' | 'throttled' | 'expired' | 'other'
export type WriteOutcome = 'written' | 'unchanged' | 'conflict' | 'failed'

/** Meter of a Kubernetes controller. */
export type ControllerMeter = {
  objects(kind: string, count: number): void
  watchFailed(kind: string, reason: WatchFailure): void
  translated(durationMs: number): void
  status(outcome: WriteOutcome): void
  /** Sets the number of keys that wait in a queue. */
  queued(queue: string, count: number): void
  leader(isLeader: boolean): void
}

const translateBoundaries = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]

export function createControllerMeter(registry: MetricRegistry): ControllerMeter {
  const objects = registry.gauge({
    name: 'tollgate_controller_objects',
    help: 'Objects of the API server by kind.',
    labels: ['kind'],
  })
  const watchFailures = registry.counter({
    name: 'tollgate_controller_watch_failures_total',
    help: 'Failed lists and watches by kind and reason. All are retried.',
    labels: ['kind', 'reason'],
  })
  const translations = registry
    .histogram(
      {
        name: 'tollgate_controller_translate_duration_seconds',
        help: 'Time of a translation of all objects into configurations.',
        labels: [],
      },
      translateBoundaries,
    )
    .slot()
  const statuses = registry.counter({
    name: 'tollgate_controller_status_writes_total',
    help: 'Statuses by outcome: written, unchanged, conflict (retried), failed (retried).',
    labels: ['outcome'],
  })
  const queues = registry.gauge({
    name: 'tollgate_controller_queue_length',
    help: 'Objects that wait for a write.',
    labels: ['queue'],
  })
  const leader = registry
    .gauge({ name: 'tollgate_controller_leader', help: '1 in the leader, 0 in other replicas.', labels: [] })
    .slot()
  return {
    objects(kind, count) {
      objects.slot(kind).value = count
    },
    watchFailed(kind, reason) {
      watchFailures.slot(kind, reason).value += 1
    },
    translated(durationMs) {
      observe(translations, translateBoundaries, durationMs / 1_000)
    },
    status(outcome) {
      statuses.slot(outcome).value += 1
    },
    queued(queue, count) {
      queues.slot(queue).value = count
    },
    leader(isLeader) {
      leader.value = isLeader ? 1 : 0
    },
  }
}
