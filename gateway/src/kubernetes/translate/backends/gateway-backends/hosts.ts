import { isIP } from 'node:net'
import { formatHostPort, type HostPort, parseHostPort } from '../../../../lib/address/host-port.ts'
import { addressScope } from '../../../../lib/address/scope.ts'
import { isMetadataAddress } from '../../../../net/egress/metadata-addresses.ts'
import type { Path } from '../../../../schema/path.ts'
import { reportBroken, reportMistake, type Translation } from './findings.ts'

/**
 * Returns `host:port` of a server of a GatewayBackend. Reports hosts of the proxy itself, link-local
 * addresses, and names of Services of other namespaces without ReferenceGrant: a DNS name must not replace a
 * permission.
 */
export function translateHost(address: HostPort, path: Path, translation: Translation): string {
  const text = formatHostPort(address)
  const host = address.host.toLowerCase()
  const mistake = parseHostPort(text) === undefined ? notHost : mistakeOf(host)
  if (mistake !== undefined) {
    reportMistake(translation, path, mistake)
    return text
  }
  const service = serviceOf(host, translation)
  const { lookups } = translation
  if (service !== undefined && !lookups.permits({ group: '', kind: 'Service', ...service })) {
    const message = `${host} is Service ${service.namespace}/${service.name}, and no ReferenceGrant in namespace ${service.namespace} permits GatewayBackends of namespace ${lookups.namespace}`
    reportBroken(translation, path, { reason: 'RefNotPermitted', message })
  }
  return text
}

const notHost = 'must be a DNS name or an IP address'

function mistakeOf(host: string): string | undefined {
  if (host === 'localhost' || host.endsWith('.localhost')) return ownHost
  if (isIP(host) === 0) {
    // Resolvers read `127.1` and `0x7f.0.0.1` as addresses.
    if (/(?:^|\.)(?:\d+|0x[\da-f]*)$/.test(host)) return notHost
    return host.includes('.') ? undefined : 'must be a fully qualified name: use backendRef for a Service'
  }
  if (addressScope(host) === 'loopback' || /^(?:0\.|::$)/.test(host)) return ownHost
  return isMetadataAddress(host) ? 'must not be a link-local or metadata address' : undefined
}

const ownHost = 'must not be the proxy itself: containers of its Pod are not backends'

/**
 * The Service of a DNS name: `<name>.<namespace>.svc` and `.svc.cluster.local`, with names of Pods before.
 * Search domains of Pods also resolve `<name>.<namespace>`, and `.svc` with the domain of the cluster.
 */
function serviceOf(
  host: string,
  { lookups }: Translation,
): { readonly name: string; readonly namespace: string } | undefined {
  const labels = host.split('.')
  const at = labels.lastIndexOf('svc')
  const [name, namespace] = at >= 2 ? labels.slice(at - 2, at) : labels.length === 2 ? labels : []
  if (name === undefined || namespace === undefined) return undefined
  const domain = labels.slice(at + 1).join('.')
  const isCertain = at >= 2 && (domain === '' || domain === 'cluster.local')
  return isCertain || lookups.hasNamespace(namespace) ? { name, namespace } : undefined
}
