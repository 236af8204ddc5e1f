import { createApiClient } from '../kubernetes/client/client.ts'
import { createElection } from '../kubernetes/client/election.ts'
import { startController } from '../kubernetes/controller/controller.ts'
import { systemClock } from '../lib/clock.ts'
import type { ProcessLog } from '../telemetry/log.ts'
import { createControllerMeter } from '../telemetry/metrics/controller.ts'
import { createMetricRegistry } from '../telemetry/metrics/families.ts'
import { openApiAccess } from './api-access.ts'
import type { ControllerSettings } from './controller-options.ts'

export type ControllerApp = {
  /** Ends the work of the leader, releases the lease and closes everything. */
  stop(): Promise<void>
}

const leaseName = 'tollgate-controller'
const defaultNamespace = 'tollgate-system'

/** Starts a controller. Throws `AccessError`, or the error of an address that cannot be opened. */
export async function startControllerApp(
  settings: ControllerSettings,
  env: Readonly<Record<string, string | undefined>>,
  log: ProcessLog,
): Promise<ControllerApp> {
  log.setLevel(settings.logLevel)
  const clock = systemClock
  const access = openApiAccess(settings.kubeconfig, env, clock)
  const client = createApiClient(access)
  const registry = createMetricRegistry()
  const meter = createControllerMeter(registry)
  const controller = startController({
    client,
    namespaces: settings.watchNamespaces,
    clock,
    random: Math.random,
    log,
    meter,
  })
  const election = createElection({
    client,
    namespace: settings.namespace ?? access.namespace ?? defaultNamespace,
    name: leaseName,
    identity: settings.identity,
    clock,
    random: Math.random,
    elected(signal) {
      log.info({ identity: settings.identity }, 'controller elected')
      meter.leader(true)
      signal.addEventListener('abort', () => meter.leader(false), { once: true })
      controller.lead(signal)
    },
    lost: (reason) => log.warn({ reason }, 'controller leadership lost'),
    failed: (error) => log.warn({ error: error.message }, 'lease request failed'),
  })
  return {
    async stop() {
      await election.close()
      await controller.close()
      client.close()
      await log.flush()
    },
  }
}
