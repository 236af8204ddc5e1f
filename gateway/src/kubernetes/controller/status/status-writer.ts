import { isDeepStrictEqual } from 'node:util'
import type { Clock } from '../../../lib/clock.ts'
import type { JsonObject } from '../../../lib/json/json.ts'
import { messageOf } from '../../../lib/thrown.ts'
import type { Log } from '../../../telemetry/log.ts'
import type { ControllerMeter } from '../../../telemetry/metrics/controller.ts'
import type { ApiClient, ApiObject } from '../../client/client.ts'
import { createKeyedQueue } from '../../client/keyed-queue.ts'
import { hasStatus } from '../../client/requests/api-error.ts'
import { type ReadKind, readKinds } from '../../objects/kinds.ts'
import type { ObjectKey } from '../../objects/meta.ts'
import type { ObjectStatus } from '../../translate/status/object-status.ts'
import { mergeStatus, withoutOwnEntries } from './merge-status.ts'
import { createRepairDelays } from './repair-delays.ts'
import type { WriteRate } from './write-rate.ts'

/** The only writer of statuses. */
export type StatusWriter = {
  /** Replaces the computed statuses. */
  update(statuses: readonly ObjectStatus[]): void
  /** Compares an object with its computed status, after a change of the object. */
  check(kind: ReadKind, key: ObjectKey): void
  close(): Promise<void>
}

export type StatusWriterOptions = {
  readonly client: Pick<ApiClient, 'get' | 'replace'>
  /** All objects that watches have reported. */
  entries(): Iterable<readonly [ReadKind, ObjectKey]>
  /** Latest version of an object that a watch has reported. */
  latest(kind: ReadKind, key: ObjectKey): ApiObject | undefined
  /** Called after a write, with the object before it. */
  written(status: ObjectStatus, object: ApiObject): void
  readonly rate: WriteRate
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
  readonly meter: ControllerMeter
}

const concurrency = 8
const maxConflicts = 5

/** Result of a write, newer than the watch as long as the watch reports the version before. */
type Written = { readonly before: string; readonly object: ApiObject }

/**
 * Creates the writer. A status is written only if it differs from the object's. Entries of other controllers
 * remain. If something else replaces a status again and again, writes of the same status slow down.
 */
export function createStatusWriter(options: StatusWriterOptions): StatusWriter {
  const { client, latest, clock, log, meter } = options
  const closing = new AbortController()
  const statuses = new Map<string, ObjectStatus>()
  const written = new Map<string, Written>()
  let isReady = false
  const repairs = createRepairDelays(clock, (id) => queue.add(id))
  const queue = createKeyedQueue({
    work: reconcile,
    concurrency,
    random: options.random,
    failed(id, error, retryMs) {
      meter.status('failed')
      log.warn({ object: id, error: messageOf(error), retryMs: Math.round(retryMs) }, 'status write failed')
    },
  })

  function current(id: string, kind: ReadKind, key: ObjectKey): ApiObject | undefined {
    const watched = latest(kind, key)
    const own = written.get(id)
    if (own === undefined) return watched
    if (watched?.metadata['resourceVersion'] === own.before) return own.object
    written.delete(id)
    return watched
  }

  async function write(id: string, live: ApiObject, status: JsonObject): Promise<void> {
    await options.rate.acquire(closing.signal)
    const { kind, key } = partsOf(id)
    const { namespace, name, uid, resourceVersion } = live.metadata
    const metadata = { name, ...(namespace !== undefined && { namespace }), uid, resourceVersion }
    const { apiVersion } = live
    const object = await client.replace(
      { ...placeOf(kind, key), subresource: 'status' },
      { apiVersion, kind, metadata, status },
    )
    meter.status('written')
    written.set(id, { before: String(resourceVersion), object })
  }

  function statusFor(id: string, live: ApiObject): JsonObject | undefined {
    const computed = statuses.get(id)
    if (computed === undefined) return withoutOwnEntries(live['status'])
    const next = mergeStatus(live['status'], computed, rfc3339(clock.now()))
    return isDeepStrictEqual(next, live['status']) ? undefined : next
  }

  async function reconcile(id: string): Promise<void> {
    meter.queued('status', queue.size)
    const { kind, key } = partsOf(id)
    let live = current(id, kind, key)
    for (let conflicts = 0; live !== undefined; conflicts++) {
      const next = statusFor(id, live)
      if (next === undefined) {
        meter.status('unchanged')
        return
      }
      if (conflicts === 0 && repairs.mustWait(id, statuses.get(id))) return
      try {
        await write(id, live, next)
        const status = statuses.get(id)
        repairs.written(id, status)
        if (status !== undefined) options.written(status, live)
        return
      } catch (error) {
        if (closing.signal.aborted || hasStatus(error, 404)) return
        if (!hasStatus(error, 409) || conflicts === maxConflicts) throw error
        meter.status('conflict')
        written.delete(id)
        live = await client.get(placeOf(kind, key))
      }
    }
  }

  function check(kind: ReadKind, key: ObjectKey): void {
    const id = idOf(kind, key)
    const live = latest(kind, key)
    if (live === undefined) {
      written.delete(id)
      repairs.forget(id)
      return
    }
    // Before the first update every entry would seem to be obsolete.
    if (isReady && (statuses.has(id) || withoutOwnEntries(live['status']) !== undefined)) queue.add(id)
  }

  return {
    check,
    update(next) {
      const before = new Map(statuses)
      statuses.clear()
      for (const status of next) {
        const id = idOf(status.kind, status.key)
        const known = before.get(id)
        before.delete(id)
        const isSame = known === status || isDeepStrictEqual(known, status)
        statuses.set(id, isSame && known !== undefined ? known : status)
        if (!isSame) queue.add(id)
      }
      // Objects that no longer concern this controller lose its entries.
      for (const id of before.keys()) queue.add(id)
      if (isReady) return
      isReady = true
      for (const [kind, key] of options.entries()) check(kind, key)
    },
    async close() {
      closing.abort()
      repairs.close()
      await queue.close()
    },
  }
}

function idOf(kind: ReadKind, key: ObjectKey): string {
  return `${kind}/${key}`
}

function partsOf(id: string): { kind: ReadKind; key: ObjectKey } {
  const slash = id.indexOf('/')
  // Written by `idOf`.
  return { kind: id.slice(0, slash) as ReadKind, key: id.slice(slash + 1) }
}

function placeOf(kind: ReadKind, key: ObjectKey) {
  const slash = key.indexOf('/')
  return slash < 0
    ? { kind: readKinds[kind], name: key }
    : { kind: readKinds[kind], namespace: key.slice(0, slash), name: key.slice(slash + 1) }
}

/** Seconds, as the API server writes times. */
function rfc3339(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`
}
