import { createApiClient } from '../../kubernetes/client/client.ts'
import { createElection } from '../../kubernetes/client/election.ts'
import { startController } from '../../kubernetes/controller/controller.ts'
import { createPublisher } from '../../kubernetes/stream/server/publisher.ts'
import { systemClock } from '../../lib/clock.ts'
import { createYieldPoint } from '../../lib/scheduling/yielding.ts'
import type { ProcessLog } from '../../telemetry/log.ts'
import { createControllerMeter } from '../../telemetry/metrics/controller.ts'
import { createMetricRegistry } from '../../telemetry/metrics/families.ts'
import { openApiAccess } from './api-access.ts'
import type { ControllerSettings } from './options.ts'
import { openControllerServers } from './servers.ts'
import { awaitAuthority, defaultStreamUrl, openControllerStream } from './stream.ts'

export type ControllerApp = {
  /** Ends the work of the leader, releases the lease and closes everything. */
  stop(): Promise<void>
}

export type ControllerAppOptions = {
  readonly settings: ControllerSettings
  readonly env: Readonly<Record<string, string | undefined>>
  readonly version: string
  readonly log: ProcessLog
}

const leaseName = 'tollgate-controller'
const defaultNamespace = 'tollgate-system'

/**
 * Starts a controller. Throws `AccessError`, or the error of an address that cannot be opened. An API server
 * that does not respond delays readiness.
 */
export async function startControllerApp(options: ControllerAppOptions): Promise<ControllerApp> {
  const { settings, env, version, log } = options
  log.setLevel(settings.logLevel)
  const clock = systemClock
  const access = openApiAccess(settings.kubeconfig, env, clock)
  const client = createApiClient(access)
  const registry = createMetricRegistry()
  const meter = createControllerMeter(registry)
  const namespace = settings.namespace ?? access.namespace ?? defaultNamespace
  const url = settings.controllerUrl ?? defaultStreamUrl(namespace)
  const { identity } = settings
  const closing = new AbortController()
  const ends: (() => unknown)[] = [client.close]
  let pending: () => readonly string[] = () => ['authority']

  const servers = await openControllerServers({ ...settings, clock, registry, pending: () => pending() })
  ends.push(servers.close)

  async function start(): Promise<void> {
    const authority = await awaitAuthority(client, namespace, { clock, log, signal: closing.signal })
    const publisher = createPublisher({
      yieldPoint: createYieldPoint(clock),
      onProxyChange: () => controller.proxiesChanged(),
    })
    const controller = startController({
      client,
      namespaces: settings.watchNamespaces,
      publisher,
      settings: {
        image: settings.proxyImage ?? `tollgate:${version}`,
        controllerUrl: url,
        caBundle: authority.certificate,
        version,
      },
      namespace,
      identity,
      clock,
      random: Math.random,
      log,
      meter,
    })
    ends.push(controller.close)
    pending = controller.pending
    const { findGateway } = controller
    const { listen } = settings
    const place = { namespace, url, listen }
    const stream = await openControllerStream({
      ...place,
      client,
      publisher,
      authority,
      findGateway,
      clock,
      log,
    })
    ends.push(stream.close)
    const election = createElection({
      client,
      namespace,
      name: leaseName,
      identity,
      clock,
      random: Math.random,
      elected(signal) {
        log.info({ identity }, 'controller elected')
        meter.leader(true)
        signal.addEventListener('abort', () => meter.leader(false), { once: true })
        controller.lead(signal)
      },
      lost: (reason) => log.warn({ reason }, 'controller leadership lost'),
      failed: (error) => log.warn({ error: error.message }, 'lease request failed'),
    })
    ends.push(election.close)
    log.info({ version, namespace, identity, port: stream.port }, 'controller started')
  }

  async function stop(): Promise<void> {
    closing.abort()
    pending = () => ['shutdown']
    await started.catch(() => undefined)
    // In reverse: the leader stops before its stream and its client.
    for (const end of ends.reverse()) await end()
    await log.flush()
  }

  const started = start()
  try {
    // Reachable or not: an outage of the API server is not a reason to exit.
    await started
  } catch (error) {
    if (!closing.signal.aborted) {
      await stop()
      throw error
    }
  }
  return { stop }
}
