import { parseHostPort } from '../../../lib/address/host-port.ts'
import type { Backend } from '../../../pipeline/policy.ts'
import { refuseMcp } from './error-responses.ts'

const localHosts: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '::1'])

/**
 * Protects an endpoint on this machine from pages of other sites whose name resolves to it (DNS rebinding):
 * refuses every `host` and `origin` but loopback ones.
 */
export function localOnly(backend: Backend): Backend {
  return (exchange) => {
    const { host, headers } = exchange.facts.request
    if (isLocalHost(host) && isLocalOrigin(headers['origin'])) return backend(exchange)
    const message = 'host and origin must be localhost, 127.0.0.1 or [::1]'
    return refuseMcp(exchange, { status: 403, reason: 'dns rebinding', message })
  }
}

function isLocalHost(host: string): boolean {
  const name = parseHostPort(host)?.host ?? host.replace(/^\[(.*)\]$/, '$1')
  return localHosts.has(name.toLowerCase())
}

/** An absent origin is that of a client other than a browser. Several origins are ambiguous. */
function isLocalOrigin(origin: string | readonly string[] | undefined): boolean {
  if (origin === undefined) return true
  if (typeof origin !== 'string' || !/^https?:\/\/[^/?#@\s,]+$/i.test(origin)) return false
  return isLocalHost(origin.slice(origin.indexOf('//') + 2))
}
