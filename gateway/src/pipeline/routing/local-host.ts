import { isIPv4 } from 'node:net'
import { normaliseHost } from './hostnames.ts'

const loopbackHost = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/

/**
 * Top-level names that public DNS does not delegate: RFC 6761, RFC 6762, RFC 8375, the private-use name
 * `internal`, and `svc` of Kubernetes.
 */
const privateSuffix = /\.(?:localhost|local|internal|home\.arpa|svc|test)$/

/** Whether a host, with or without port, is a loopback name or address. */
export function isLoopbackName(host: string): boolean {
  return loopbackHost.test(normaliseHost(host))
}

/**
 * Whether a host, with or without port, is safe from DNS rebinding: an address, a name without dots, or a
 * name outside public DNS.
 */
export function isLocalHost(host: string): boolean {
  const name = normaliseHost(host)
  if (name === '') return false
  if (!name.includes('.') || isIPv4(name) || name.startsWith('[')) return true
  return privateSuffix.test(name)
}
