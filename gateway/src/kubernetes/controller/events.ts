import type { Clock } from '../../lib/clock.ts'
import { messageOf } from '../../lib/thrown.ts'
import type { Log } from '../../telemetry/log.ts'
import type { ApiClient } from '../client/client.ts'
import { eventKind } from '../client/requests/other-kinds.ts'
import type { ObjectMeta } from '../objects/meta.ts'
import { controllerName } from '../translate/controller-name.ts'
import type { WriteRate } from './status/write-rate.ts'

/** Object of an event. */
export type EventSubject = {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: ObjectMeta
}

/** Writes events of objects. */
export type Events = {
  /** Writes a warning, once in ten minutes for the same text. Dropped while many others wait. */
  warn(subject: EventSubject, reason: string, note: string): void
}

export type EventsOptions = {
  readonly client: Pick<ApiClient, 'create'>
  /** Name of this replica. */
  readonly identity: string
  readonly rate: WriteRate
  readonly clock: Clock
  readonly log: Log
  readonly signal: AbortSignal
}

const repeatMs = 600_000
const maxNotes = 1_000
/** Events that wait for the rate; proxies send any number of different errors. */
const maxPending = 100
/** Limit of the API. */
const maxNoteLength = 1_024

export function createEvents({ client, identity, rate, clock, log, signal }: EventsOptions): Events {
  /** Times of the last events by object and text. */
  const written = new Map<string, number>()
  let pending = 0

  function isRepeated(id: string): boolean {
    const now = clock.monotonic()
    const last = written.get(id)
    if (last !== undefined && now - last < repeatMs) return true
    written.delete(id)
    written.set(id, now)
    const [oldest] = written.keys()
    if (written.size > maxNotes && oldest !== undefined) written.delete(oldest)
    return false
  }

  async function write(subject: EventSubject, reason: string, note: string): Promise<void> {
    const { apiVersion, kind, metadata } = subject
    await rate.acquire(signal)
    // Events of cluster-scoped objects belong to the default namespace.
    const { namespace = 'default', name, uid, resourceVersion } = metadata
    const eventTime = new Date(clock.now()).toISOString().replace('Z', '000Z')
    const event = {
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { generateName: `${name}-`, namespace },
      eventTime,
      type: 'Warning',
      reason,
      action: 'Configure',
      note,
      regarding: { apiVersion, kind, namespace: metadata.namespace, name, uid, resourceVersion },
      reportingController: controllerName,
      reportingInstance: identity.slice(0, 128),
    }
    await client.create(eventKind, event, namespace)
  }

  return {
    warn(subject, reason, text) {
      const note = text.slice(0, maxNoteLength)
      if (pending >= maxPending || isRepeated(`${subject.metadata.uid} ${reason} ${note}`)) return
      pending += 1
      write(subject, reason, note)
        .catch((error: unknown) => {
          if (!signal.aborted) log.warn({ reason, error: messageOf(error) }, 'event not written')
        })
        .finally(() => {
          pending -= 1
        })
    },
  }
}
