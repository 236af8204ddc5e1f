import { parseDuration } from '../../lib/duration.ts'
import { parseHostPort } from '../../lib/host-port.ts'
import type { UpstreamConnection, UpstreamTls } from '../../net/send.ts'
import { createDialTls, type DialTls } from '../../net/tcp-dial.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { TcpTarget } from './carry.ts'
import type { BackendTlsConfig, TcpBackendConfig, TcpRouteConfig } from './config.ts'

/** An entry of `backends` that has a host, as far as TCP needs to know it. */
export type NamedHost = {
  readonly host: string
  readonly port: number
  readonly connection: UpstreamConnection | undefined
}

const defaultConnectTimeoutMs = 10_000

/**
 * The backends of a route. What a backend says itself comes first, then what the entry it names says, then the route.
 * Throws when a file cannot be read or used, and when there is no such entry.
 */
export function compileTcpTargets(
  route: TcpRouteConfig,
  named: (name: string) => NamedHost | undefined,
  context: CompileContext,
): TcpTarget[] {
  return route.backends.map((backend) => {
    const { host, port, connection } = addressOf(backend, named)
    const { backendTLS, tcp } = backend.policies ?? {}
    const timeoutMs = tcp?.connectTimeout === undefined ? undefined : parseDuration(tcp.connectTimeout)
    return {
      name: backend.host ?? backend.backend.slice(1),
      weight: backend.weight ?? 1,
      dial: {
        host,
        port,
        tls:
          (backendTLS && compileBackendTls(backendTLS, context)) ??
          (connection?.tls && prepared(connection.tls, context)) ??
          (route.policies?.backendTLS && compileBackendTls(route.policies.backendTLS, context)),
        timeoutMs: timeoutMs ?? connection?.connectTimeoutMs ?? defaultConnectTimeoutMs,
      },
    }
  })
}

function addressOf(backend: TcpBackendConfig, named: (name: string) => NamedHost | undefined): NamedHost {
  if (backend.host !== undefined) {
    const address = parseHostPort(backend.host)
    if (address === undefined) throw new Error(`not a host and port: "${backend.host}"`)
    return { ...address, connection: undefined }
  }
  const found = named(backend.backend.slice(1))
  if (found === undefined) throw new Error(`there is no backend with a host named "${backend.backend}"`)
  return found
}

function compileBackendTls(config: BackendTlsConfig, context: CompileContext): DialTls {
  return context.memo(config, 'tcp backendTLS', () => {
    const read = (path: string | undefined) => (path === undefined ? undefined : context.readFile(path))
    const { cert, key, root, hostname, insecure, insecureHost } = config
    try {
      return createDialTls({
        ca: read(root),
        cert: read(cert),
        key: read(key),
        serverName: hostname,
        insecure: insecure === true ? 'any' : insecureHost === true ? 'any-name' : undefined,
      })
    } catch (cause) {
      const files = [cert, key, root].filter((file) => file !== undefined).join(', ')
      const reason = cause instanceof Error ? cause.message : String(cause)
      throw new Error(`backendTLS cannot be used with ${files}: ${reason}`, { cause })
    }
  })
}

function prepared(tls: UpstreamTls, context: CompileContext): DialTls {
  return context.memo(tls, 'tcp tls', () => createDialTls(tls))
}
