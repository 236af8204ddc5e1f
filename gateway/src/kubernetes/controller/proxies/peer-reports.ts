import { setTimeout as delay } from 'node:timers/promises'
import type { Clock } from '../../../lib/clock.ts'
import { isJsonObject, parseJsonObject } from '../../../lib/json/json.ts'
import { messageOf } from '../../../lib/thrown.ts'
import type { ApiClient, ApiObject } from '../../client/client.ts'
import { leaseKind } from '../../client/requests/other-kinds.ts'
import type { ListWatch } from '../../client/watch/list-watch.ts'
import { createObjectStore } from '../../client/watch/object-store.ts'
import { apiVersionOf } from '../../objects/kinds.ts'
import type { ObjectKey } from '../../objects/meta.ts'
import { createDebounce } from '../debounce.ts'
import { type WatchPlaceOptions, watchPlace } from '../watching/watch-place.ts'

/** State of the proxies of a Gateway that are connected to one replica. */
export type ProxyReport = {
  /** Latest generation of the Gateway that one of them serves. */
  readonly acknowledgedGeneration: number | undefined
  /** Reasons of those that refuse the latest configuration. */
  readonly errors: readonly string[]
}

/**
 * Exchange of acknowledgements between replicas: proxies connect to any of them, and only the leader writes
 * statuses. Each other replica writes its report to a Lease of its own, which expires with the replica.
 */
export type PeerReports = {
  /** Reports of other replicas about a Gateway. */
  reportsOf(gateway: ObjectKey): readonly ProxyReport[]
  /** Writes the own report soon, if it differs from the last one. */
  update(): void
  /** Removes the own report. */
  close(): Promise<void>
}

export type PeerReportsOptions = WatchPlaceOptions & {
  readonly client: ApiClient
  readonly namespace: string
  /** Name of this replica. */
  readonly identity: string
  isLeader(): boolean
  /** The own report, without Gateways that have no proxies here. */
  ownReport(): ReadonlyMap<ObjectKey, ProxyReport>
  /** Called after reports of other replicas change or expire. */
  changed(): void
}

const label = 'tollgate.dev/report'
const labelValue = 'proxies'
const annotation = 'tollgate.dev/proxies'
/** Limit of all annotations of an object is 256 KiB. */
const maxLength = 200_000
const renewMs = 15_000
const expiryMs = 50_000
/** Reports of replicas that ended without removing theirs. */
const removeAfterMs = 600_000
const writeTimes = { quietMs: 100, maxMs: 500 }

type PeerReport = {
  readonly gateways: ReadonlyMap<ObjectKey, ProxyReport>
  /** Local time of its last change. */
  readonly at: number
}

export function startPeerReports(options: PeerReportsOptions): PeerReports {
  const { client, namespace, clock, log, changed } = options
  const name = leaseName(options.identity)
  const place = { kind: leaseKind, namespace, name }
  const closing = new AbortController()
  const peers = new Map<string, PeerReport>()
  let written: string | undefined
  const debounce = createDebounce(writeTimes, clock, () => void write(false))

  async function write(isRenewal: boolean): Promise<void> {
    const text = options.isLeader() ? undefined : textOf(options.ownReport())
    if (closing.signal.aborted || (text === written && (text === undefined || !isRenewal))) return
    try {
      if (text === undefined) await client.remove(place)
      else await client.apply(leaseKind, leaseOf({ name, namespace, text, clock }), 'tollgate-controller')
      written = text
    } catch (error) {
      if (!closing.signal.aborted) log.warn({ error: messageOf(error) }, 'report about proxies not written')
    }
  }

  async function renew(): Promise<void> {
    while (!closing.signal.aborted) {
      await delay(renewMs, undefined, { signal: closing.signal }).catch(() => undefined)
      await write(true)
      removeExpired()
    }
  }

  function removeExpired(): void {
    const now = clock.monotonic()
    if ([...peers.values()].some(({ at }) => now - at > expiryMs)) changed()
    if (!options.isLeader()) return
    for (const [peer, { at }] of peers)
      if (now - at > removeAfterMs)
        client.remove({ ...place, name: peer }).catch((error: unknown) => {
          log.debug({ error: messageOf(error) }, 'expired report not removed')
        })
  }

  const watch = watchReports(options, (peer, lease) => {
    if (peer === name) return
    if (lease === undefined) peers.delete(peer)
    else peers.set(peer, { gateways: readReport(lease), at: clock.monotonic() })
    changed()
  })
  const renewing = renew()

  return {
    reportsOf(gateway) {
      const now = clock.monotonic()
      return [...peers.values()].flatMap(({ gateways, at }) =>
        now - at > expiryMs ? [] : (gateways.get(gateway) ?? []),
      )
    },
    update: debounce.request,
    async close() {
      closing.abort()
      debounce.close()
      watch.close()
      await renewing
      // Otherwise it expires.
      if (written !== undefined) await client.remove(place).catch(() => undefined)
    },
  }
}

function watchReports(
  options: PeerReportsOptions,
  changed: (name: string, lease: ApiObject | undefined) => void,
): ListWatch {
  const store = createObjectStore(
    { apiVersion: apiVersionOf(leaseKind), kind: 'Lease' },
    ({ before, after }) => {
      const name = (after ?? before)?.metadata.name
      if (name !== undefined) changed(name, after)
    },
  )
  const { namespace } = options
  const labelSelector = `${label}=${labelValue}`
  return watchPlace(options, { kindName: 'Lease', kind: leaseKind, namespace, store, labelSelector })
}

/** The name of a Lease must be a DNS name. */
function leaseName(identity: string): string {
  const text = identity.toLowerCase().replace(/[^a-z0-9.-]/g, '-')
  return `tollgate-proxies.${text.slice(0, 200)}`.replace(/[^a-z0-9]+$/, '')
}

type LeaseContent = {
  readonly name: string
  readonly namespace: string
  readonly text: string
  readonly clock: Clock
}

function leaseOf({ name, namespace, text, clock }: LeaseContent) {
  return {
    apiVersion: apiVersionOf(leaseKind),
    kind: 'Lease',
    metadata: { name, namespace, labels: { [label]: labelValue }, annotations: { [annotation]: text } },
    spec: { renewTime: new Date(clock.now()).toISOString().replace('Z', '000Z') },
  }
}

/** Undefined for a replica without proxies. Without errors, and then in part, if it exceeds the limit. */
function textOf(report: ReadonlyMap<ObjectKey, ProxyReport>): string | undefined {
  if (report.size === 0) return undefined
  const text = encode(report)
  if (Buffer.byteLength(text) <= maxLength) return text
  const short = new Map<ObjectKey, ProxyReport>()
  let length = 0
  for (const [key, { acknowledgedGeneration }] of report) {
    const entry = { acknowledgedGeneration, errors: [] }
    length += encode(new Map([[key, entry]])).length
    if (length > maxLength) break
    short.set(key, entry)
  }
  return encode(short)
}

function encode(report: ReadonlyMap<ObjectKey, ProxyReport>): string {
  const entries = [...report].map(([key, { acknowledgedGeneration, errors }]) => [
    key,
    { generation: acknowledgedGeneration ?? null, errors },
  ])
  return JSON.stringify(Object.fromEntries(entries))
}

function readReport({ metadata }: ApiObject): ReadonlyMap<ObjectKey, ProxyReport> {
  const { annotations } = metadata
  const text = isJsonObject(annotations) ? annotations[annotation] : undefined
  const report = typeof text === 'string' ? parseJsonObject(text) : undefined
  return new Map(
    Object.entries(report ?? {}).flatMap(([key, value]): [ObjectKey, ProxyReport][] => {
      if (!isJsonObject(value)) return []
      const { generation, errors } = value
      const texts = Array.isArray(errors) ? errors.filter((error) => typeof error === 'string') : []
      const acknowledgedGeneration = typeof generation === 'number' ? generation : undefined
      return [[key, { acknowledgedGeneration, errors: texts }]]
    }),
  )
}
