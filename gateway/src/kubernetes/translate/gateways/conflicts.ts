import { intersectHostnames } from '../../../pipeline/routing/hostnames.ts'
import type { GatewayListener } from '../../objects/gateway-api.ts'
import { hostnameOf, isPassthrough, protocolOf } from './protocols.ts'

/** The reason why a listener and others of its port exclude each other; all of them are refused. */
export type Conflict = {
  readonly reason: 'ProtocolConflict' | 'HostnameConflict'
  readonly message: string
}

/**
 * The conflicts among listeners, by index. Listeners of one port have one protocol and TLS mode, and each
 * has another hostname. Listeners of protocols that are not supported open no port.
 */
export function findConflicts(listeners: readonly GatewayListener[]): ReadonlyMap<number, Conflict> {
  const conflicts = new Map<number, Conflict>()
  for (const neighbours of byPort(listeners).values()) {
    for (const [index, listener] of neighbours) {
      const others = neighbours.filter(([other]) => other !== index).map(([, other]) => other)
      const conflict = conflictOf(listener, others)
      if (conflict !== undefined) conflicts.set(index, conflict)
    }
  }
  return conflicts
}

type Indexed = readonly [index: number, listener: GatewayListener]

function byPort(listeners: readonly GatewayListener[]): Map<number, Indexed[]> {
  const ports = new Map<number, Indexed[]>()
  for (const entry of listeners.entries()) {
    const [, listener] = entry
    if (protocolOf(listener) === undefined) continue
    const known = ports.get(listener.port)
    if (known === undefined) ports.set(listener.port, [entry])
    else known.push(entry)
  }
  return ports
}

function conflictOf(listener: GatewayListener, others: readonly GatewayListener[]): Conflict | undefined {
  const { port } = listener
  const transport = transportOf(listener)
  const foreign = others.filter((other) => transportOf(other) !== transport)
  if (foreign.length > 0) {
    const found = foreign.map((other) => `${other.name} (${transportOf(other)})`)
    return {
      reason: 'ProtocolConflict',
      message: `listeners of port ${port} must have one protocol: this one has ${transport}, others ${found.join(', ')}`,
    }
  }
  const hostname = hostnameOf(listener)
  const same = others.filter((other) => hostnameOf(other) === hostname).map(({ name }) => name)
  if (same.length === 0) return undefined
  const shared = hostname === undefined ? 'no hostname' : `hostname ${hostname}`
  return {
    reason: 'HostnameConflict',
    message: `listeners of port ${port} must have different hostnames: ${same.join(', ')} has ${shared} too`,
  }
}

function transportOf(listener: GatewayListener): string {
  return isPassthrough(listener) ? 'TLS passthrough' : listener.protocol
}

/** Names of the HTTPS listeners of the same port whose hostnames have hosts in common with `listener`. */
export function overlappingListeners(
  listener: GatewayListener,
  listeners: readonly GatewayListener[],
): readonly string[] {
  if (listener.protocol !== 'HTTPS') return []
  return listeners
    .filter(
      (other) =>
        other !== listener &&
        other.port === listener.port &&
        other.protocol === 'HTTPS' &&
        intersectHostnames(hostnameOf(listener), hostnameOf(other)) !== undefined,
    )
    .map(({ name }) => name)
}
