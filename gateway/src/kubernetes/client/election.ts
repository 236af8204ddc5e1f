import { setTimeout as delay } from 'node:timers/promises'
import type { Clock } from '../../lib/clock.ts'
import { isJsonObject, type JsonObject } from '../../lib/json/json.ts'
import type { ApiClient, ApiObject } from './client.ts'
import { ApiError, hasStatus } from './requests/api-error.ts'
import { leaseKind } from './requests/other-kinds.ts'

export type ElectionOptions = {
  readonly client: Pick<ApiClient, 'until'>
  readonly namespace: string
  /** Name of the Lease. */
  readonly name: string
  /** Name of this candidate, unique among all. */
  readonly identity: string
  readonly clock: Clock
  readonly random: () => number
  readonly times?: ElectionTimes
  /** Starts the work of the leader; the signal ends it at once. */
  elected(signal: AbortSignal): void
  /** Called when leadership ends other than by `close`. */
  lost(reason: string): void
  failed(error: ApiError): void
}

export type ElectionTimes = {
  /** Other candidates take over a lease that did not change for this time. */
  readonly leaseMs: number
  /** A leader that cannot renew its lease for this time stops. Shorter than `leaseMs`. */
  readonly renewMs: number
  readonly retryMs: number
}

/** Times of the controllers of Kubernetes. */
const defaultTimes: ElectionTimes = { leaseMs: 15_000, renewMs: 10_000, retryMs: 2_000 }

/** Leader election by a Lease. */
export type Election = {
  readonly isLeader: boolean
  /** Stops the work of the leader and releases the lease. */
  close(): Promise<void>
}

/** Last observed lease of another candidate, with the local time of its last change. */
type Observed = { readonly version: string; readonly since: number }

type Leadership = { readonly ending: AbortController; timer: NodeJS.Timeout }

/**
 * Takes part in an election until it is closed. Times of other machines are never compared: a lease expires
 * `leaseMs` after the last change observed here. A leader counts its own time from before the request.
 */
export function createElection(options: ElectionOptions): Election {
  const { namespace, name, identity, clock, times = defaultTimes } = options
  const place = { kind: leaseKind, namespace, name }
  const closing = new AbortController()
  const client = options.client.until(closing.signal)
  let leadership: Leadership | undefined
  /** The lease as this candidate wrote it. */
  let own: ApiObject | undefined
  let observed: Observed | undefined

  function endLeadership(reason: string | undefined): void {
    if (leadership === undefined) return
    clearTimeout(leadership.timer)
    leadership.ending.abort()
    leadership = undefined
    if (reason !== undefined) options.lost(reason)
  }

  function extendLeadership(requestedAt: number): void {
    const remainingMs = requestedAt + times.renewMs - clock.monotonic()
    if (remainingMs <= 0) {
      endLeadership('lease renewed too late')
      return
    }
    const timer = setTimeout(() => endLeadership('lease not renewed in time'), remainingMs)
    if (leadership !== undefined) {
      clearTimeout(leadership.timer)
      leadership.timer = timer
      return
    }
    leadership = { ending: new AbortController(), timer }
    options.elected(leadership.ending.signal)
  }

  async function write(lease: ApiObject | undefined): Promise<void> {
    const requestedAt = clock.monotonic()
    const spec = ownSpec(lease, { identity, leaseMs: times.leaseMs, now: clock.now() })
    if (lease === undefined) {
      const body = { ...leaseType, metadata: { name, namespace }, spec }
      await client.create(leaseKind, body, namespace)
      own = undefined
    } else {
      own = await client.replace(place, { ...lease, spec })
    }
    // `close` can come first; it releases the lease.
    if (!closing.signal.aborted) extendLeadership(requestedAt)
  }

  /** Whether another candidate has the lease. */
  function isTaken(lease: ApiObject): boolean {
    const { holderIdentity } = specOf(lease)
    const version = String(lease.metadata['resourceVersion'])
    if (observed?.version !== version) observed = { version, since: clock.monotonic() }
    if (holderIdentity === identity || holderIdentity === '' || holderIdentity === undefined) return false
    return clock.monotonic() - observed.since < leaseMsOf(lease, times.leaseMs)
  }

  async function attempt(): Promise<void> {
    const lease = own ?? (await client.get(place))
    if (lease !== undefined && lease !== own && isTaken(lease)) {
      endLeadership('lease taken by another candidate')
      return
    }
    try {
      await write(lease)
    } catch (error) {
      own = undefined
      if (!hasStatus(error, 409)) throw error
    }
  }

  async function run(): Promise<void> {
    const { signal } = closing
    while (!signal.aborted) {
      await attempt().catch((error: unknown) => {
        if (!signal.aborted) options.failed(asApiError(error))
      })
      const waitMs = times.retryMs * (leadership === undefined ? 1 + options.random() / 5 : 1)
      await delay(waitMs, undefined, { signal }).catch(() => undefined)
    }
  }

  async function release(): Promise<void> {
    // A shutdown does not wait for an API server that does not respond.
    const bounded = options.client.until(AbortSignal.timeout(times.retryMs))
    const lease = await bounded.get(place)
    if (lease === undefined || specOf(lease)['holderIdentity'] !== identity) return
    const spec = { ...specOf(lease), holderIdentity: '', leaseDurationSeconds: 1 }
    await bounded.replace(place, { ...lease, spec })
  }

  const running = run()
  return {
    get isLeader() {
      return leadership !== undefined
    },
    async close() {
      const wasLeader = leadership !== undefined
      endLeadership(undefined)
      closing.abort()
      await running
      // Otherwise the lease expires.
      if (wasLeader) await release().catch((error: unknown) => options.failed(asApiError(error)))
    },
  }
}

const leaseType = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' }

function ownSpec(
  lease: ApiObject | undefined,
  { identity, leaseMs, now }: { identity: string; leaseMs: number; now: number },
): JsonObject {
  const before = lease === undefined ? {} : specOf(lease)
  const isOwn = before['holderIdentity'] === identity
  // MicroTime requires six digits.
  const time = new Date(now).toISOString().replace('Z', '000Z')
  const transitions = Number(before['leaseTransitions'] ?? 0)
  return {
    holderIdentity: identity,
    leaseDurationSeconds: Math.ceil(leaseMs / 1_000),
    acquireTime: isOwn ? (before['acquireTime'] ?? time) : time,
    renewTime: time,
    leaseTransitions: isOwn || lease === undefined ? transitions : transitions + 1,
  }
}

function specOf(lease: ApiObject): JsonObject {
  return isJsonObject(lease['spec']) ? lease['spec'] : {}
}

/** The life time that the holder requested, at least the own one. */
function leaseMsOf(lease: ApiObject, ownMs: number): number {
  const seconds = specOf(lease)['leaseDurationSeconds']
  return typeof seconds === 'number' ? Math.max(ownMs, seconds * 1_000) : ownMs
}

function asApiError(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError({ status: 0 }, String(error), { cause: error })
}
