import type { ObjectKey } from '../objects/meta.ts'
import type { ObjectSet } from '../objects/object-set.ts'
import { controllerName } from '../translate/controller-name.ts'
import type { Translation } from '../translate/translate.ts'
import type { DeployedGateway } from './deployments.ts'

/**
 * The Gateway of a key as it is to be deployed. Undefined leaves its objects as they are: those of a Gateway
 * with broken parameters, or without class, continue to serve.
 */
export function findDeployed(
  objects: ObjectSet,
  { gateways }: Translation,
  key: ObjectKey,
): DeployedGateway | undefined {
  const gateway = objects.Gateway.get(key)
  if (gateway === undefined || gateway.metadata.deletionTimestamp !== undefined) return undefined
  const translated = gateways.get(key)
  if (translated !== undefined) {
    const { parameters } = translated
    return parameters === undefined ? undefined : { kind: 'own', gateway, parameters }
  }
  const gatewayClass = objects.GatewayClass.get(gateway.spec.gatewayClassName)
  if (gatewayClass === undefined || gatewayClass.spec.controllerName === controllerName) return undefined
  return { kind: 'foreign', gateway }
}
