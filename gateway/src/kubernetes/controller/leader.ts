import { randomBytes } from 'node:crypto'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../telemetry/log.ts'
import type { ControllerMeter } from '../../telemetry/metrics/controller.ts'
import type { ApiClient, ApiObject } from '../client/client.ts'
import { createDeployer } from '../deployer/deployer.ts'
import type { DeploySettings } from '../deployer/render-input.ts'
import { apiVersionOf, type ReadKind, readKinds } from '../objects/kinds.ts'
import type { ObjectKey } from '../objects/meta.ts'
import type { ObjectStatus } from '../translate/status/object-status.ts'
import { watchDeployed } from './deployed-objects.ts'
import { createDeployments, type DeployedGateway } from './deployments.ts'
import { createEvents, type EventSubject } from './events.ts'
import { refusalsOf } from './status/refusals.ts'
import { createStatusWriter } from './status/status-writer.ts'
import { createWriteRate } from './status/write-rate.ts'
import type { WatchedObjects } from './watching/watched-objects.ts'

/** Work of the one replica that writes. */
export type Leader = {
  /** Writes changed statuses. */
  updateStatuses(statuses: readonly ObjectStatus[]): void
  /** Compares an object with its status. */
  checkStatus(kind: ReadKind, key: ObjectKey): void
  /** Deploys the proxies of a Gateway. */
  deploy(gateway: ObjectKey): void
  /** Writes an event. */
  warn(subject: EventSubject, reason: string, note: string): void
  close(): Promise<void>
}

export type LeaderOptions = {
  readonly client: ApiClient
  readonly namespaces: readonly string[] | undefined
  readonly settings: DeploySettings
  readonly identity: string
  readonly objects: Pick<WatchedObjects, 'latest' | 'entries'>
  find(gateway: ObjectKey): DeployedGateway | undefined
  deployed(gateway: ObjectKey, error: string | undefined): void
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
  readonly meter: ControllerMeter
}

/** For all writes together; one change of 1,000 routes takes 20 s. */
const writes = { perSecond: 50, burst: 200 }
/** Events have a share of their own: they must not delay statuses. */
const eventWrites = { perSecond: 1, burst: 20 }

export function startLeader(options: LeaderOptions): Leader {
  const { clock, log, objects, identity } = options
  const closing = new AbortController()
  // Another replica may lead next: a late write must not replace its writes.
  const client = options.client.until(closing.signal)
  const bounded = { ...options, client }
  const rate = createWriteRate(writes, clock)
  const deployer = createDeployer({ client, settings: options.settings, randomBytes })
  const deployments = createDeployments({ ...options, deployer })
  const deployed = watchDeployed({ ...bounded, changed: deployments.request })
  const events = createEvents({
    client,
    identity,
    rate: createWriteRate(eventWrites, clock),
    clock,
    log,
    signal: closing.signal,
  })
  const writer = createStatusWriter({
    ...bounded,
    ...objects,
    rate,
    written(status, object) {
      const subject = subjectOf(status.kind, object)
      for (const { type, reason, message } of refusalsOf(status))
        events.warn(subject, reason, `${type}: ${message}`)
    },
  })
  return {
    updateStatuses: writer.update,
    checkStatus: writer.check,
    deploy: deployments.request,
    warn: events.warn,
    async close() {
      closing.abort()
      deployed.close()
      await Promise.all([writer.close(), deployments.close()])
    },
  }
}

function subjectOf(kind: ReadKind, { metadata }: ApiObject): EventSubject {
  const { name, namespace, uid, resourceVersion } = metadata
  return {
    apiVersion: apiVersionOf(readKinds[kind]),
    kind,
    metadata: {
      name,
      ...(namespace !== undefined && { namespace: String(namespace) }),
      uid: String(uid),
      resourceVersion: String(resourceVersion),
    },
  }
}
