import { durationBuckets } from './buckets.ts'
import { type HistogramSlot, type MetricRegistry, observe, type ValueSlot } from './families.ts'

/** Outcome of a check; a label value. */
export type ExtAuthzCheck = 'allowed' | 'denied' | 'failed_open' | 'failed_closed'

/** Meter of the external authorization of one scope. */
export type ExtAuthzMeter = { checked(outcome: ExtAuthzCheck, from: 'service' | 'cache'): void }

/** Meter of the agents of one scope. `method` is a name of the protocol, `other`, `none` or `invalid`. */
export type A2aMeter = { called(method: string): void }

export function createA2aMeters(registry: MetricRegistry): (policy: string) => A2aMeter {
  const calls = registry.counter({
    name: 'tollgate_a2a_calls_total',
    help: 'Calls of agents by method of the A2A protocol.',
    labels: ['policy', 'method'],
  })
  return (policy) => ({
    called(method) {
      calls.slot(policy, method).value += 1
    },
  })
}

export function createExtAuthzMeters(registry: MetricRegistry): (policy: string) => ExtAuthzMeter {
  const checks = registry.counter({
    name: 'tollgate_ext_authz_checks_total',
    help: 'Requests checked by an authorization service, by outcome and origin of the decision.',
    labels: ['policy', 'outcome', 'from'],
  })
  return (policy) => ({
    checked(outcome, from) {
      checks.slot(policy, outcome, from).value += 1
    },
  })
}

/** Phase of a message to or from a processor; a label value. */
export type ExtProcPhase = `${'request' | 'response'}_${'headers' | 'body' | 'trailers'}`

/**
 * Result of external processing: without failure, ended by a response of the processor, continued or refused
 * after a failure, or ended by a disconnect of the client.
 */
export type ExtProcOutcome = 'processed' | 'responded' | 'failed_open' | 'failed_closed' | 'cancelled'

/** Meter of the external processing of one scope. */
export type ExtProcMeter = {
  /** A stream was opened (1) or has ended (-1). */
  streams(change: 1 | -1): void
  finished(outcome: ExtProcOutcome): void
  sent(phase: ExtProcPhase): void
  received(phase: ExtProcPhase | 'immediate' | 'none'): void
  /** A response was awaited. */
  waited(phase: ExtProcPhase, durationMs: number): void
}

export function createExtProcMeters(registry: MetricRegistry): (policy: string) => ExtProcMeter {
  const open = registry.gauge({
    name: 'tollgate_ext_proc_streams_open',
    help: 'Open streams to external processors.',
    labels: ['policy'],
  })
  const outcomes = registry.counter({
    name: 'tollgate_ext_proc_requests_total',
    help: 'Requests of external processing by outcome.',
    labels: ['policy', 'outcome'],
  })
  const messages = registry.counter({
    name: 'tollgate_ext_proc_messages_total',
    help: 'Messages to and from external processors.',
    labels: ['policy', 'direction', 'phase'],
  })
  const waits = registry.histogram(
    {
      name: 'tollgate_ext_proc_wait_seconds',
      help: 'Wait for responses of external processors.',
      labels: ['policy', 'phase'],
    },
    durationBuckets,
  )
  return (policy) => {
    const streams = open.slot(policy)
    const durations = new Map<string, HistogramSlot>()
    const sent = remembered((phase) => messages.slot(policy, 'sent', phase))
    const received = remembered((phase) => messages.slot(policy, 'received', phase))
    return {
      streams(change) {
        streams.value += change
      },
      finished(outcome) {
        outcomes.slot(policy, outcome).value += 1
      },
      sent(phase) {
        sent(phase).value += 1
      },
      received(phase) {
        received(phase).value += 1
      },
      waited(phase, durationMs) {
        let slot = durations.get(phase)
        if (slot === undefined) {
          slot = waits.slot(policy, phase)
          durations.set(phase, slot)
        }
        observe(slot, durationBuckets, durationMs / 1000)
      },
    }
  }
}

function remembered(create: (phase: string) => ValueSlot): (phase: string) => ValueSlot {
  const slots = new Map<string, ValueSlot>()
  return (phase) => {
    const known = slots.get(phase)
    if (known !== undefined) return known
    const slot = create(phase)
    slots.set(phase, slot)
    return slot
  }
}
