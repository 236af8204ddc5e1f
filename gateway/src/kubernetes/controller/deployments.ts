import { messageOf } from '../../lib/thrown.ts'
import type { Log } from '../../telemetry/log.ts'
import type { ControllerMeter } from '../../telemetry/metrics/controller.ts'
import { createKeyedQueue } from '../client/keyed-queue.ts'
import type { Deployer } from '../deployer/deployer.ts'
import type { Gateway } from '../objects/gateway-api.ts'
import type { ObjectKey } from '../objects/meta.ts'
import type { GatewayParametersSpec } from '../own-kinds/gateway-parameters.ts'

/** A Gateway with its proxies. */
export type DeployedGateway = { readonly gateway: Gateway } & (
  | { readonly kind: 'own'; readonly parameters: GatewayParametersSpec }
  /** Of another controller now. */
  | { readonly kind: 'foreign' }
)

/** Deploys the proxies of Gateways in the background, with a back-off for each Gateway. */
export type Deployments = {
  /** Compares the objects of a Gateway with the API server, and changes them. */
  request(gateway: ObjectKey): void
  close(): Promise<void>
}

export type DeploymentsOptions = {
  readonly deployer: Deployer
  /** Undefined for a Gateway whose objects remain as they are. */
  find(gateway: ObjectKey): DeployedGateway | undefined
  /** Called with the error of a deployment; undefined for success. */
  deployed(gateway: ObjectKey, error: string | undefined): void
  readonly random: () => number
  readonly log: Log
  readonly meter: ControllerMeter
}

const concurrency = 4
const backOff = { minMs: 500, maxMs: 60_000 }

export function createDeployments(options: DeploymentsOptions): Deployments {
  const { deployer, find, deployed, log, meter } = options
  let isClosed = false
  const queue = createKeyedQueue({
    concurrency,
    backOff,
    random: options.random,
    async work(key) {
      meter.queued('deployment', queue.size)
      const found = find(key)
      if (found === undefined) return
      const outcome =
        found.kind === 'own'
          ? await deployer.deploy(found.gateway, found.parameters)
          : await deployer.withdraw(found.gateway)
      if (isClosed) return
      deployed(key, outcome.kind === 'failed' ? outcome.message : undefined)
      if (outcome.kind === 'failed') throw new Error(outcome.message)
    },
    failed(gateway, error, retryMs) {
      log.warn({ gateway, error: messageOf(error), retryMs: Math.round(retryMs) }, 'deployment failed')
    },
  })
  return {
    request: queue.add,
    close() {
      isClosed = true
      return queue.close()
    },
  }
}
