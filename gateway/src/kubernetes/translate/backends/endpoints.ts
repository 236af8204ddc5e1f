import { formatHostPort } from '../../../lib/address/host-port.ts'
import { type EndpointConfig, maxEndpoints } from '../../../upstream/config.ts'
import type { Endpoint, EndpointPort, EndpointSlice, Service, ServicePort } from '../../objects/core.ts'

type AddressType = 'IPv4' | 'IPv6' | 'FQDN'

/**
 * Merges the EndpointSlices of a Service for one of its ports: `host:port` of each ready endpoint, sorted and
 * without duplicates. Without ready endpoints, those that terminate and still serve are used, as kube-proxy
 * does. A Service of both IP families uses the first family that has endpoints, in its own order. Host names
 * (`FQDN`) are ignored, except the name of the Service itself: they lead to other places (CVE-2021-25740).
 */
export function mergeEndpoints(
  service: Service,
  port: ServicePort,
  slices: readonly EndpointSlice[],
): readonly EndpointConfig[] {
  const types = addressTypesOf(service)
  for (const accepts of [isReady, isServing]) {
    for (const type of types) {
      const hosts = hostsOf({ service, port, slices }, type, accepts)
      if (hosts.size > 0)
        return [...hosts]
          .sort()
          .slice(0, maxEndpoints)
          .map((host) => ({ host }))
    }
  }
  return []
}

function hostsOf(
  { service, port, slices }: { service: Service; port: ServicePort; slices: readonly EndpointSlice[] },
  type: AddressType,
  accepts: (endpoint: Endpoint) => boolean,
): Set<string> {
  const hosts = new Set<string>()
  const ownName = `${service.metadata.name}.${service.metadata.namespace}.svc`
  for (const { addressType, endpoints = [], ports = [] } of slices) {
    if (addressType !== type) continue
    const numbers = ports.flatMap((candidate) => (isPort(candidate, port) ? [candidate.port ?? 0] : []))
    for (const endpoint of endpoints) {
      // Consumers use the first address only: the others are equivalent.
      const address = endpoint.addresses?.[0]
      if (address === undefined || !accepts(endpoint)) continue
      if (type === 'FQDN' && address !== ownName) continue
      for (const number of numbers) hosts.add(formatHostPort({ host: address, port: number }))
    }
  }
  return hosts
}

/** Ports of slices have the name of the port of the Service; an unnamed port has the empty name. */
function isPort({ name = '', protocol = 'TCP', port }: EndpointPort, wanted: ServicePort): boolean {
  return port !== undefined && name === (wanted.name ?? '') && protocol === 'TCP'
}

function isReady({ conditions }: Endpoint): boolean {
  return conditions?.ready !== false
}

function isServing({ conditions }: Endpoint): boolean {
  return conditions?.serving !== false && conditions?.terminating === true
}

function addressTypesOf({ spec: { ipFamilies, clusterIP } }: Service): readonly AddressType[] {
  const isFirst6 = ipFamilies?.[0] === 'IPv6' || (ipFamilies === undefined && clusterIP?.includes(':'))
  return isFirst6 ? ['IPv6', 'IPv4', 'FQDN'] : ['IPv4', 'IPv6', 'FQDN']
}
