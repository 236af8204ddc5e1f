import { firstHeader } from '../net/headers.ts'
import type { Reply } from '../net/send.ts'
import { refuse } from '../pipeline/errors.ts'
import type { Exchange } from '../pipeline/exchange.ts'
import type { Policy } from '../pipeline/policy.ts'

export type OriginOptions = {
  /** Origins that may use the address besides its own: `cors.allowOrigins`. */
  isAllowed: (origin: string) => boolean
  /** The address is open to programs on this machine only. */
  isLoopback: boolean
  /** Further hosts that are the gateway's, with the port where it is not the usual one: that of `resourceMetadata.resource`. */
  hosts: readonly string[]
}

/**
 * Keeps foreign web pages out (MCP 2025-11-25, "Security Warning" of Streamable HTTP): a present `Origin` must be
 * allowed, the gateway's own, or on loopback where the gateway is. A page whose name was made to resolve to this machine
 * (DNS rebinding) has an origin of its own that equals the host, so on loopback the host must be a local name, too.
 */
export function compileOrigin({ isAllowed, isLoopback, hosts }: OriginOptions): Policy {
  const own: ReadonlySet<string> = new Set(hosts.map((host) => host.toLowerCase()))
  return {
    name: 'origin',
    onRequest(exchange) {
      const { headers, host } = exchange.facts.request
      if (isLoopback && !isLocal(host) && !own.has(host.toLowerCase())) return refused(exchange, 'host')
      const origin = firstHeader(headers, 'origin')
      if (origin === undefined || isAllowed(origin)) return undefined
      const originHost = hostOf(origin)
      if (originHost === undefined) return refused(exchange, 'origin')
      const isOwn = originHost === host.toLowerCase() || own.has(originHost)
      return isOwn || (isLoopback && isLocal(originHost)) ? undefined : refused(exchange, 'origin')
    },
  }
}

/** Host and port of an origin. Its scheme says nothing here: in front of the gateway TLS may end. */
function hostOf(origin: string): string | undefined {
  return /^https?:\/\/([^/?#@\s]+)$/i.exec(origin)?.[1]?.toLowerCase()
}

const localHost = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i

function isLocal(host: string): boolean {
  return localHost.test(host)
}

function refused(exchange: Exchange, what: 'host' | 'origin'): Reply {
  return refuse(exchange, { status: 403, code: `${what}_not_allowed`, message: `${what} not allowed` })
}
