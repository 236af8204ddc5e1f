import type { Config } from '../../config/schema.ts'
import type { Clock } from '../../lib/clock.ts'
import { messageOf } from '../../lib/thrown.ts'
import type { Log } from '../../telemetry/log.ts'
import type { ControllerMeter } from '../../telemetry/metrics/controller.ts'
import type { ApiClient } from '../client/client.ts'
import type { ObjectChange } from '../client/watch/object-store.ts'
import type { DeploySettings } from '../deployer/render-input.ts'
import type { Gateway } from '../objects/gateway-api.ts'
import type { ReadKind } from '../objects/kinds.ts'
import type { ObjectKey } from '../objects/meta.ts'
import { emptyObjectSet, type ObjectSet } from '../objects/object-set.ts'
import type { ConfigPublisher } from '../stream/server/publisher.ts'
import { createTranslator, type Translation } from '../translate/translate.ts'
import { createDebounce } from './debounce.ts'
import { findDeployed } from './find-deployed.ts'
import { type Leader, startLeader } from './leader.ts'
import { startPeerReports } from './proxies/peer-reports.ts'
import { createProxyStates } from './proxies/proxy-states.ts'
import { completeStatuses } from './status/complete-statuses.ts'
import { watchObjects } from './watching/watched-objects.ts'

export type ControllerOptions = {
  readonly client: ApiClient
  /** Namespaces to read; undefined for all. */
  readonly namespaces: readonly string[] | undefined
  readonly publisher: ConfigPublisher
  /** Facts for the deployment of proxies. */
  readonly settings: DeploySettings
  /** Namespace of the controller. */
  readonly namespace: string
  /** Name of this replica. */
  readonly identity: string
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
  readonly meter: ControllerMeter
}

/** Objects of the API server, translated and published by every replica. */
export type Controller = {
  /** Parts that are not ready. */
  pending(): readonly string[]
  /** Deploys proxies and writes statuses until the signal. */
  lead(signal: AbortSignal): void
  /** Called after a proxy connects, acknowledges, refuses or disconnects. */
  proxiesChanged(): void
  findGateway(key: ObjectKey): Gateway | undefined
  close(): Promise<void>
}

/** A change is visible after 10 ms; a stream of changes is translated once in a second. */
const translateTimes = { quietMs: 10, maxMs: 1_000 }
/** A rolling update of proxies is one change of a status. */
const statusTimes = { quietMs: 20, maxMs: 500 }

const noAddresses = { addresses: [], unusableAddresses: [] }

type Current = { readonly objects: ObjectSet; readonly translation: Translation }

/** Starts to read the cluster. Nothing is published or written before all kinds are complete. */
export function startController(options: ControllerOptions): Controller {
  const { log, clock, meter, publisher } = options
  const translate = createTranslator()
  const states = createProxyStates({
    proxies: publisher.proxies,
    peers: (gateway) => peers.reportsOf(gateway),
  })
  let current: Current = {
    objects: emptyObjectSet(),
    translation: { gateways: new Map(), invalidGateways: new Set(), statuses: [] },
  }
  /** Gateways with a channel; one that became invalid keeps its last configuration. */
  const published = new Set<ObjectKey>()
  let state: 'reading' | 'translated' | 'closed' = 'reading'
  let leader: Leader | undefined

  const translation = createDebounce(translateTimes, clock, () => {
    const before = current
    const next = translateNow()
    if (next === undefined || state === 'closed') return
    current = next
    state = 'translated'
    publishChanges(before)
    requestDeployments(before)
    statuses.request()
  })

  const statuses = createDebounce(statusTimes, clock, () => {
    if (state !== 'translated') return
    peers.update()
    if (leader === undefined) return
    leader.updateStatuses(completeStatuses(current.translation, { states, latest: objects.latest }))
    warnOfProxies(leader)
  })

  function warnOfProxies({ warn }: Leader): void {
    for (const [key, gateway] of current.objects.Gateway) {
      const { errors, deploymentError } = states.stateOf(key, noAddresses)
      for (const error of errors) warn(gateway, 'ConfigurationRefused', error)
      if (deploymentError !== undefined) warn(gateway, 'DeploymentFailed', deploymentError)
    }
  }

  /** Undefined after a defect: proxies and statuses remain as they are. */
  function translateNow(): Current | undefined {
    const startedAt = clock.monotonic()
    try {
      const snapshot = objects.snapshot()
      return { objects: snapshot, translation: translate(snapshot) }
    } catch (error) {
      log.error({ err: error }, 'kubernetes objects not translated')
      return undefined
    } finally {
      const durationMs = clock.monotonic() - startedAt
      meter.translated(durationMs)
      log.debug({ durationMs: Math.round(durationMs) }, 'kubernetes translation ended')
    }
  }

  function publishChanges(before: Current): void {
    for (const [key, { config }] of current.translation.gateways) {
      const generation = generationOf(current, key)
      const isSame = before.translation.gateways.get(key)?.config === config
      if (!isSame || generation !== generationOf(before, key)) publish(key, config, generation)
    }
    for (const key of published) {
      if (current.translation.gateways.has(key) || current.translation.invalidGateways.has(key)) continue
      published.delete(key)
      publisher.remove(key)
      states.remove(key)
    }
  }

  function publish(key: ObjectKey, config: Config, generation: number): void {
    published.add(key)
    publisher.publish(key, config).then(
      (version) => {
        if (!published.has(key)) return
        states.published(key, version, generation)
        log.debug({ gateway: key, version, generation }, 'configuration published')
        statuses.request()
      },
      (error: unknown) => log.error({ gateway: key, error: messageOf(error) }, 'configuration not published'),
    )
  }

  function requestDeployments(before: Current): void {
    for (const [key, gateway] of current.objects.Gateway) {
      const parameters = current.translation.gateways.get(key)?.parameters
      const isSame =
        before.objects.Gateway.get(key) === gateway &&
        before.translation.gateways.get(key)?.parameters === parameters
      if (!isSame || before.objects.GatewayClass !== current.objects.GatewayClass) leader?.deploy(key)
    }
  }

  function changed(kind: ReadKind, { key, isStatusOnly }: ObjectChange): void {
    leader?.checkStatus(kind, key)
    if (!isStatusOnly && state === 'translated') translation.request()
    // The address of the proxies.
    else if (kind === 'Service') statuses.request()
  }

  const peers = startPeerReports({
    ...options,
    isLeader: () => leader !== undefined,
    ownReport: states.ownReport,
    changed: () => statuses.request(),
  })
  const objects = watchObjects({ ...options, changed })
  objects.synced.then(() => {
    log.info({}, 'kubernetes objects complete')
    if (state === 'reading') translation.request()
  })

  return {
    pending: () => (state === 'translated' ? [] : ['objects', ...objects.pending()]),
    lead(signal) {
      const started = startLeader({
        ...options,
        objects,
        find: (key) => findDeployed(current.objects, current.translation, key),
        deployed(key, error) {
          states.deployed(key, error)
          statuses.request()
        },
      })
      leader = started
      for (const key of current.objects.Gateway.keys()) started.deploy(key)
      statuses.request()
      signal.addEventListener('abort', () => {
        if (leader === started) leader = undefined
        // The next leader reads the report of this replica.
        statuses.request()
        started.close()
      })
    },
    proxiesChanged: statuses.request,
    findGateway: (key) => current.objects.Gateway.get(key),
    async close() {
      state = 'closed'
      translation.close()
      statuses.close()
      objects.close()
      await peers.close()
      await leader?.close()
    },
  }
}

function generationOf({ objects }: Current, key: ObjectKey): number {
  return objects.Gateway.get(key)?.metadata.generation ?? 0
}
