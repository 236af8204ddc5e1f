import type { ApiObject } from '../../client/client.ts'
import { proxyName } from '../../deployer/names.ts'
import type { Service } from '../../objects/core.ts'
import type { Gateway } from '../../objects/gateway-api.ts'
import type { ReadKind } from '../../objects/kinds.ts'
import type { ObjectKey } from '../../objects/meta.ts'
import { readObject } from '../../objects/read-object.ts'
import type { ObjectStatus } from '../../translate/status/object-status.ts'
import { programmed } from '../../translate/status/programmed.ts'
import type { Translation } from '../../translate/translate.ts'
import { addressesOf } from '../proxies/addresses.ts'
import type { ProxyStates } from '../proxies/proxy-states.ts'

export type CompletionSources = {
  readonly states: Pick<ProxyStates, 'stateOf'>
  /** Latest version of an object, with its status. */
  latest(kind: ReadKind, key: ObjectKey): ApiObject | undefined
}

/** Adds addresses and `Programmed` to the statuses of Gateways. */
export function completeStatuses(
  { statuses, gateways }: Translation,
  { states, latest }: CompletionSources,
): readonly ObjectStatus[] {
  return statuses.map((status) => {
    if (status.of !== 'gateway') return status
    const { key } = status
    const gateway = read(latest('Gateway', key), 'Gateway')
    const service =
      gateway === undefined ? undefined : read(latest('Service', serviceKey(gateway)), 'Service')
    const addresses =
      gateway === undefined ? { addresses: [], unusableAddresses: [] } : addressesOf(gateway, service)
    return programmed(status, gateways.get(key)?.config, states.stateOf(key, addresses))
  })
}

function serviceKey(gateway: Gateway): ObjectKey {
  return `${gateway.metadata.namespace}/${proxyName(gateway)}`
}

function read(object: ApiObject | undefined, kind: 'Gateway'): Gateway | undefined
function read(object: ApiObject | undefined, kind: 'Service'): Service | undefined
function read(object: ApiObject | undefined, kind: 'Gateway' | 'Service') {
  const outcome = object === undefined ? undefined : readObject(object)
  return outcome?.kind === 'object' && outcome.object.kind === kind ? outcome.object : undefined
}
