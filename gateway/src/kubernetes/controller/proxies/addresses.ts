import { isIP } from 'node:net'
import type { Service } from '../../objects/core.ts'
import type { Gateway } from '../../objects/gateway-api.ts'
import type { Addresses } from './proxy-states.ts'

/** Addresses of a Gateway, from the Service of its proxies; none before the Service has one. */
export function addressesOf(gateway: Gateway, service: Service | undefined): Addresses {
  const values = [...new Set(service === undefined ? [] : assignedValues(service))]
  const requested = (gateway.spec.addresses ?? []).flatMap(({ value }) => value ?? [])
  return {
    addresses: values.map((value) => ({ type: isIP(value) === 0 ? 'Hostname' : 'IPAddress', value })),
    unusableAddresses: requested.filter((value) => !values.includes(value)),
  }
}

function assignedValues({ spec, status }: Service): string[] {
  if (spec.type === 'LoadBalancer')
    return (status?.loadBalancer?.ingress ?? []).flatMap(({ ip, hostname }) => ip ?? hostname ?? [])
  const own = spec.clusterIPs ?? (spec.clusterIP === undefined ? [] : [spec.clusterIP])
  return own.filter((address) => isIP(address) !== 0)
}
