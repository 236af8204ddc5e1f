import { formatHostPort, parseHostPort } from '../../../lib/address/host-port.ts'
import { type GrpcCall, GrpcError, type GrpcTarget } from '../../../net/grpc-client.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import { findBackend, type NamedBackend } from '../../../upstream/config.ts'
import { compileBackendTls } from '../../../upstream/connection.ts'
import { type Destination, missingBackend, type UpstreamContext } from '../../../upstream/destination.ts'
import { compileNamedServers } from '../../../upstream/endpoints.ts'
import type { GlobalRateLimitConfig } from './config.ts'

/** A rate limit service: one server, or the endpoints of a backend. */
export type LimiterService = {
  /** Identity of the service. */
  readonly key: string
  /** Returns the call of a method. */
  method(path: string): GrpcCall
}

/** Compiles the service. Throws if a TLS file cannot be read. */
export function limiterService(config: GlobalRateLimitConfig, context: CompileContext): LimiterService {
  const { backend: reference } = config
  const { backends = [] }: UpstreamContext = context
  if (reference === undefined) return serverAt(targetAt(config.host, { node: config }, context), context)
  const backend = findBackend(reference, backends)
  if (backend?.endpoints !== undefined) return endpointsOf(backend, backends, context)
  if (backend?.host === undefined) throw new Error(missingBackend(reference, backend))
  return serverAt(targetAt(backend.host, { node: backend, backend }, context), context)
}

function serverAt(target: GrpcTarget, { grpc }: CompileContext): LimiterService {
  return {
    key: `${target.host} ${target.port} ${target.tlsKey}`,
    method: (path) => grpc.method(target, path),
  }
}

/** Sends each call to an endpoint by weight and health. */
function endpointsOf(
  backend: NamedBackend,
  backends: readonly NamedBackend[],
  context: CompileContext,
): LimiterService {
  const servers = compileNamedServers(backend.name, backends, context)
  const unavailable = 14
  return {
    key: servers.key,
    method(path) {
      const calls = new WeakMap<Destination, GrpcCall>()
      return (message, options) => {
        const server = servers.choose()
        if (server === undefined)
          return Promise.reject(new GrpcError(unavailable, 'the backend has no endpoints'))
        const call =
          calls.get(server) ??
          context.grpc.method(targetAt(authorityOf(server), { node: backend, backend }, context), path)
        calls.set(server, call)
        return call(message, options)
      }
    },
  }
}

function authorityOf({ host, port }: Destination): string {
  return formatHostPort({ host, port })
}

type Source = { readonly node: object; readonly backend?: NamedBackend }

function targetAt(host: string, { node, backend }: Source, context: CompileContext): GrpcTarget {
  const address = parseHostPort(host)
  if (address === undefined) throw new Error(`"${host}" is not host:port`)
  const tls = backend?.policies?.backendTLS && compileBackendTls(backend.policies.backendTLS, context)
  return { ...address, tls: tls?.settings, tlsKey: tls?.key ?? '', egress: context.egress.of(node) }
}
