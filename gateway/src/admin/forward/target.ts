import { isIP } from 'node:net'
import {
  type ListenerAddress,
  type ListeningConfig,
  listenerAddresses,
  reachableAddress,
} from '../../config/listener-addresses.ts'
import { formatHostPort } from '../../lib/address/host-port.ts'
import type { UpstreamConnection } from '../../net/http-client/send.ts'
import { type Refusal, refusal } from '../../resources/change/change.ts'

/** Listener that a request is forwarded to. */
export type ForwardTarget = {
  readonly kind: 'target'
  readonly origin: string
  readonly host: string
  readonly connection: UpstreamConnection | undefined
}

/** A name, an IPv4 address or a bracketed IPv6 address, with or without a port. */
const hostForm = /^(\[[0-9a-f:.]{2,45}\]|[a-z0-9_](?:[a-z0-9._-]{0,251}[a-z0-9_])?)(?::\d{1,5})?$/i

/** Finds the listener of a gateway in the active configuration. `host` is the requested `Host`. */
export function forwardTarget(
  config: ListeningConfig,
  gateway: string,
  host: string | undefined,
): ForwardTarget | Refusal {
  if (host !== undefined && !hostForm.test(host))
    return refusal(400, 'x-forward-host must be a host, with or without a port')
  const own = listenerAddresses(config).filter((listener) => listener.gateway === gateway)
  const [first] = own
  if (first === undefined) return refusal(404, `no gateway has the name ${gateway.slice(0, 200)}`)
  const listeners = own.filter(({ protocol }) => protocol === 'HTTP' || protocol === 'HTTPS')
  if (listeners.length === 0) return refusal(400, `${gateway} carries no HTTP: use a TCP client`)
  const address = formatHostPort({ host: reachableAddress(first.address), port: first.port })
  const chosen = host ?? defaultHost(listeners) ?? address
  if (!listeners.some(({ tls }) => tls))
    return { kind: 'target', origin: `http://${address}`, host: chosen, connection: undefined }
  return { kind: 'target', origin: `https://${address}`, host: chosen, connection: tlsTo(chosen) }
}

/** The host of the first listener with an exact one, unless a listener has every host. */
function defaultHost(listeners: readonly ListenerAddress[]): string | undefined {
  if (listeners.some(({ hostname }) => hostname === undefined)) return undefined
  return listeners.find(({ hostname }) => hostname?.includes('*') === false)?.hostname
}

/**
 * The certificate is not checked: the address is one on which this process listens, and the name of the
 * certificate need not be the requested one.
 */
function tlsTo(host: string): UpstreamConnection {
  const name = host.replace(/:\d+$/, '').toLowerCase()
  const isName = isIP(name.replace(/^\[|\]$/g, '')) === 0
  const serverName = isName ? name : undefined
  return { key: `forward ${serverName ?? ''}`, tls: { serverName, insecure: 'any' } }
}
