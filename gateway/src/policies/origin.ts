import { addressScope } from '../lib/address/scope.ts'
import { firstHeader } from '../net/http/headers.ts'
import type { Reply } from '../net/http-client/send.ts'
import { refuse } from '../pipeline/errors.ts'
import type { Exchange } from '../pipeline/exchange.ts'
import type { Policy } from '../pipeline/policy.ts'
import { isLocalHost, isLoopbackName } from '../pipeline/routing/local-host.ts'

export type OriginOptions = {
  /** Whether `cors.allowOrigins` has the origin. */
  isAllowed: (origin: string) => boolean
  /** Every origin is allowed. */
  allowsAny: boolean
  /** The listener accepts loopback connections only. */
  isLoopback: boolean
  /** No credential is required, so that a page can send requests on behalf of its user. */
  isOpen: boolean
  /** Whether a host is configured for the route; undefined if every host is. */
  isConfiguredHost: ((host: string) => boolean) | undefined
  /** Further hosts of the gateway, with a non-default port: that of `resourceMetadata.resource`. */
  hosts: readonly string[]
}

/**
 * Refuses requests of foreign web pages (MCP 2025-11-25, "Security Warning" of Streamable HTTP). An `Origin`
 * must be allowed, the gateway's own, or on loopback if the client is. With DNS rebinding the origin of a
 * foreign page equals the host, so the host is checked too: for clients on loopback or a private network
 * without a required credential, and on loopback listeners. TLS needs no host check, because a browser
 * verifies the name.
 */
export function compileOrigin(options: OriginOptions): Policy {
  const { isAllowed, allowsAny, isLoopback, isOpen, isConfiguredHost } = options
  const own: ReadonlySet<string> = new Set(options.hosts.map((host) => host.toLowerCase()))
  // Requests of a route have few hosts: 0.03 us with the last one cached, 0.28 us without.
  let lastServed: string | undefined
  return {
    name: 'origin',
    onRequest(exchange) {
      const { headers, host } = exchange.facts.request
      if (!mayName(exchange, host)) return refused(exchange, 'host', hostAdvice)
      const origin = firstHeader(headers, 'origin')
      if (origin === undefined) {
        // Browsers send no origin with GET of images, links and forms, but the site of the page.
        const isForeign = isOpen && !allowsAny && firstHeader(headers, 'sec-fetch-site') === 'cross-site'
        return isForeign ? refused(exchange, 'site') : undefined
      }
      if (isOpen && exchange.body !== undefined && headers['content-type'] === undefined)
        return refuseUntyped(exchange)
      return isAllowed(origin) || isOwn(exchange, origin, host) ? undefined : refused(exchange, 'origin')
    },
    explain(exchange) {
      const { headers, host } = exchange.facts.request
      const origin = firstHeader(headers, 'origin')
      const permitted = origin !== undefined && (isAllowed(origin) || isOwn(exchange, origin, host))
      return {
        host: mayName(exchange, host) ? 'allowed' : 'not allowed',
        ...(origin !== undefined && { origin: permitted ? 'allowed' : 'not allowed' }),
      }
    },
  }

  function mayName(exchange: Exchange, host: string): boolean {
    // Browsers always send a host; health checks in HTTP/1.0 do not.
    if (isConfiguredHost === undefined || host === '') return true
    if (isLoopback) return isLoopbackName(host) || isConfigured(host)
    if (!isOpen || exchange.facts.request.scheme === 'https') return true
    return scopeOf(exchange) === 'public' || isServed(host)
  }

  function isServed(host: string): boolean {
    if (host === lastServed) return true
    const served = isLocalHost(host) || isConfigured(host)
    if (served) lastServed = host
    return served
  }

  function isConfigured(host: string): boolean {
    return own.has(host.toLowerCase()) || isConfiguredHost?.(host) === true
  }

  function isOwn(exchange: Exchange, origin: string, host: string): boolean {
    const originHost = hostOf(origin)
    if (originHost === undefined) return false
    if (originHost === host.toLowerCase() || own.has(originHost)) return true
    if (!isLoopbackName(originHost)) return false
    return isLoopback || (isLoopbackName(host) && scopeOf(exchange) === 'loopback')
  }
}

/** Address scope of the peer, or of the address that a trusted proxy reports. */
function scopeOf({ peer, connection, facts }: Exchange) {
  return peer === undefined ? connection.peerScope : addressScope(facts.source.address)
}

/** Host and port of an origin. The scheme is ignored, because TLS may terminate before the gateway. */
function hostOf(origin: string): string | undefined {
  return /^https?:\/\/([^/?#@\s]+)$/i.exec(origin)?.[1]?.toLowerCase()
}

const hostAdvice = ': frontendPolicies.http.allowedHosts names further ones'

function refused(exchange: Exchange, subject: 'host' | 'origin' | 'site', advice = ''): Reply {
  const message = `${subject} not allowed${advice}`
  return refuse(exchange, { status: 403, code: `${subject}_not_allowed`, message })
}

/** Browsers send bodies without a type cross-site without a preflight (Fetch standard, "simple requests"). */
function refuseUntyped(exchange: Exchange): Reply {
  const message = 'content-type is required in requests of web pages'
  return refuse(exchange, { status: 415, code: 'content_type_required', message })
}
