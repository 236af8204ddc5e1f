import { messageOf } from '../../lib/thrown.ts'
import type { UpstreamTls } from '../../net/http-client/send.ts'
import { createDialTls, type DialTls } from '../../net/tcp/dial.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import { findBackend, type NamedBackend } from '../../upstream/config.ts'
import { compileDestination, missingBackend } from '../../upstream/destination.ts'
import type { TcpRouteConfig } from './config.ts'
import type { TcpTarget } from './forward.ts'

const defaultConnectTimeoutMs = 10_000

/**
 * Compiles the backends of a route. Policies of the backend precede those of the referenced entry of
 * `backends`, then those of the route. Throws on an unknown entry and on an unreadable or invalid file.
 */
export function compileTcpTargets(
  route: TcpRouteConfig,
  backends: readonly NamedBackend[],
  context: CompileContext,
): TcpTarget[] {
  return route.backends.map((backend) => {
    const named = backend.backend === undefined ? undefined : findBackend(backend.backend, backends)
    const host = backend.host ?? named?.host
    if (host === undefined) throw new Error(missingBackend(backend.backend ?? '', named))
    const destination = compileDestination(
      {
        host,
        node: named ?? backend,
        name: named?.name,
        policies: [backend.policies, named?.policies, route.policies],
      },
      context,
    )
    const { name, port, connection, health } = destination
    return {
      name,
      weight: backend.weight ?? 1,
      health,
      dial: {
        host: destination.host,
        port,
        tls: connection.tls && compileDialTls(connection.tls, name, context),
        timeoutMs: connection.connectTimeoutMs ?? defaultConnectTimeoutMs,
        egress: context.egress.of(named ?? backend),
      },
    }
  })
}

function compileDialTls(tls: UpstreamTls, backend: string, context: CompileContext): DialTls {
  return context.cached(tls, 'tcp dial', () => {
    try {
      return createDialTls(tls)
    } catch (cause) {
      const reason = messageOf(cause)
      throw new Error(`a file of backendTLS of backend "${backend}" cannot be used: ${reason}`, { cause })
    }
  })
}
