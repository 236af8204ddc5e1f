import { hostnameMistake, normaliseHostname } from '../../../pipeline/routing/hostnames.ts'
import type { GatewayListener } from '../../objects/gateway-api.ts'
import type { RouteKind } from '../plan.ts'

export type ListenerProtocol = 'HTTP' | 'HTTPS' | 'TLS' | 'TCP'

const protocols: readonly string[] = ['HTTP', 'HTTPS', 'TLS', 'TCP'] satisfies ListenerProtocol[]

/** The protocol of a listener; undefined if it is not supported. */
export function protocolOf({ protocol }: GatewayListener): ListenerProtocol | undefined {
  return protocols.includes(protocol) ? (protocol as ListenerProtocol) : undefined
}

export function isPassthrough({ protocol, tls }: GatewayListener): boolean {
  return protocol === 'TLS' && tls?.mode === 'Passthrough'
}

/** Kinds of routes that a protocol carries. */
export function kindsOfProtocol(listener: GatewayListener): readonly RouteKind[] {
  switch (protocolOf(listener)) {
    case 'HTTP':
    case 'HTTPS':
      return ['HTTPRoute', 'GRPCRoute']
    case 'TLS':
      return isPassthrough(listener) ? ['TLSRoute'] : ['TLSRoute', 'TCPRoute']
    case 'TCP':
      return ['TCPRoute']
    case undefined:
      return []
  }
}

/** Ports that the proxies and the controller use themselves. */
const reservedPorts: ReadonlyMap<number, string> = new Map([
  [15_000, 'administration'],
  [15_012, 'the configuration stream'],
  [15_020, 'metrics'],
  [15_021, 'readiness'],
])

export function reservedPortMistake(port: number): string | undefined {
  const use = reservedPorts.get(port)
  return use && `port ${port} is reserved for ${use} of the proxies: use another port`
}

/** Normalised hostname of a listener; undefined for all hosts. */
export function hostnameOf({ hostname }: GatewayListener): string | undefined {
  return hostname === undefined || hostname === '' ? undefined : normaliseHostname(hostname)
}

/**
 * The mistake in fields that depend on the protocol; undefined if there is none. The API server refuses
 * most of them; manifests have no API server.
 */
export function protocolMistake(listener: GatewayListener): string | undefined {
  const { hostname, tls } = listener
  const protocol = protocolOf(listener)
  if (protocol === 'TCP' && hostnameOf(listener) !== undefined)
    return 'hostname must be empty for protocol TCP'
  const mistake = hostname === undefined || hostname === '' ? undefined : hostnameMistake(hostname)
  if (mistake !== undefined) return mistake.startsWith('hostname') ? mistake : `hostname: ${mistake}`
  if (protocol === 'HTTP' || protocol === 'TCP') {
    return tls === undefined ? undefined : `tls must not be set for protocol ${protocol}`
  }
  if (protocol === undefined) return undefined
  const mode = tls?.mode ?? 'Terminate'
  if (mode !== 'Terminate' && mode !== 'Passthrough') {
    return `tls.mode must be Terminate or Passthrough, got "${mode}"`
  }
  if (protocol === 'HTTPS' && mode === 'Passthrough') return 'tls.mode must be Terminate for protocol HTTPS'
  if (mode === 'Passthrough') return undefined
  const certificates = tls?.certificateRefs?.length ?? 0
  if (certificates === 0) return 'tls.certificateRefs must refer to a Secret'
  if (certificates > 1) return `tls.certificateRefs must have one entry, got ${certificates}`
  return undefined
}
