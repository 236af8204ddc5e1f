import { isIPv6 } from 'node:net'

export type HostPort = {
  /** A name, an IPv4 address, or an IPv6 address without its brackets. */
  host: string
  port: number
}

const form = /^(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?)):(\d{1,5})$/

/**
 * Parses `host:port`: `localhost:1`, `10.0.0.1:80`, `[::]:15020`. Undefined for anything else; the port is
 * required.
 */
export function parseHostPort(text: string): HostPort | undefined {
  if (text.length > 300) return undefined
  const match = form.exec(text)
  if (match === null) return undefined
  const port = Number(match[3])
  if (port > 65_535) return undefined
  const address = match[1]
  if (address !== undefined) return isIPv6(address) ? { host: address, port } : undefined
  return match[2] === undefined ? undefined : { host: match[2], port }
}

/** The `host:port` form of an address, with brackets where the host is an IPv6 address. */
export function formatHostPort({ host, port }: HostPort): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

/** Whether a host name or address is reachable from this machine only. */
export function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host)
}
