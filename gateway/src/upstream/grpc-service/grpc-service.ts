import { formatHostPort } from '../../lib/address/host-port.ts'
import { parseDuration } from '../../lib/duration.ts'
import { GrpcError, type GrpcTarget } from '../../net/grpc-client.ts'
import type { GrpcStreamOptions, OpenGrpcStream } from '../../net/grpc-stream.ts'
import type { Headers } from '../../net/http/headers.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import { type ServiceCall, tracedCall } from '../../pipeline/tracing/service-calls.ts'
import { type BackendPolicies, findBackend, type NamedBackend } from '../config.ts'
import { compileBackendTls, compileProxy } from '../connection.ts'
import type { Caller } from '../credentials/caller.ts'
import { type Authorize, compileAuthorize } from '../credentials/credentials.ts'
import type { AuthorizedRequest } from '../credentials/placement.ts'
import { type Destination, mergePolicies, missingBackend, type UpstreamContext } from '../destination.ts'
import { compileNamedServers } from '../endpoints.ts'
import { parseServiceAddress } from './service-address.ts'

/** `host` or `backend` of a service in the configuration, which is also the source of the egress policy. */
export type ServiceReference = {
  readonly host?: string | undefined
  readonly backend?: string | undefined
  /** Take precedence over those of the backend. */
  readonly policies?: BackendPolicies | undefined
}

/** A gRPC service: one server, or the endpoints of a backend. */
export type GrpcService = {
  /** Identity of the service. */
  readonly key: string
  /** `policies.http.requestTimeout`; undefined without it. */
  readonly timeoutMs: number | undefined
  /** Returns the call of a method. */
  method(path: string): ServiceCall
  /** Metadata with the credential for the service; undefined without `backendAuth`. */
  readonly authorize: ((caller: Caller) => Promise<Headers>) | undefined
  /** Returns the bidirectional stream of a method. */
  stream(path: string, options: GrpcStreamOptions): OpenGrpcStream
}

/** Compiles the service. Throws if a TLS or credential file cannot be read, and without such a backend. */
export function compileGrpcService(reference: ServiceReference, context: CompileContext): GrpcService {
  const { backends = [] }: UpstreamContext = context
  const backend = reference.backend === undefined ? undefined : findBackend(reference.backend, backends)
  const policies = mergePolicies([reference.policies, backend?.policies])
  const use = { destination: backend ?? reference, connection: policies }
  const common = {
    timeoutMs: parseDuration(policies.http?.requestTimeout ?? '0s') || undefined,
    authorize: authorizeWith(compileAuthorize(policies.backendAuth, context, use)),
  }
  if (backend?.endpoints !== undefined)
    return { ...common, ...endpointsOf(backend, policies, { context, backends }) }
  const host = reference.backend === undefined ? reference.host : backend?.host
  if (host === undefined) throw new Error(missingBackend(reference.backend ?? '', backend))
  const target = targetAt(host, { node: backend ?? reference, policies }, context)
  return {
    ...common,
    key: `${target.socketPath ?? `${target.host} ${target.port}`} ${target.tlsKey}`,
    method: (path) => tracedCall(path, context.grpc.method(target, path)),
    stream: (path, options) => context.grpc.stream(target, path, options),
  }
}

function authorizeWith(authorize: Authorize | undefined): GrpcService['authorize'] {
  if (authorize === undefined) return undefined
  return async (caller) => {
    const request: AuthorizedRequest = { headers: {}, path: '' }
    await authorize.apply(request, caller)
    return request.headers
  }
}

type Backends = { readonly context: CompileContext; readonly backends: readonly NamedBackend[] }

/** Sends each call to an endpoint by weight and health. */
function endpointsOf(
  backend: NamedBackend,
  policies: BackendPolicies,
  { context, backends }: Backends,
): Pick<GrpcService, 'key' | 'method' | 'stream'> {
  const servers = compileNamedServers(backend.name, backends, context)

  /** Selects among calls of the servers, which are created once. */
  function choosing<Call>(create: (target: GrpcTarget) => Call): () => Call | GrpcError {
    const calls = new WeakMap<Destination, Call>()
    return () => {
      const server = servers.choose()
      if (server === undefined) return new GrpcError(unavailable, 'the backend has no endpoints')
      const call =
        calls.get(server) ?? create(targetAt(authorityOf(server), { node: backend, policies }, context))
      calls.set(server, call)
      return call
    }
  }

  return {
    key: servers.key,
    method(path) {
      const choose = choosing((target) => context.grpc.method(target, path))
      return tracedCall(path, (message, options) => {
        const call = choose()
        return call instanceof GrpcError ? Promise.reject(call) : call(message, options)
      })
    },
    stream(path, options) {
      const choose = choosing((target) => context.grpc.stream(target, path, options))
      return (handler, metadata) => {
        const open = choose()
        return open instanceof GrpcError ? Promise.reject(open) : open(handler, metadata)
      }
    },
  }
}

const unavailable = 14

function authorityOf({ host, port }: Destination): string {
  return formatHostPort({ host, port })
}

type Source = { readonly node: object; readonly policies: BackendPolicies }

function targetAt(host: string, { node, policies }: Source, context: CompileContext): GrpcTarget {
  const address = parseServiceAddress(host)
  if (address === undefined) throw new Error(`"${host}" is not host:port`)
  const tls = policies.backendTLS && compileBackendTls(policies.backendTLS, context)
  const proxy = policies.backendTunnel && compileProxy(policies.backendTunnel, context)
  const tlsKey = proxy === undefined ? (tls?.key ?? '') : `${tls?.key ?? ''} by ${proxy.key}`
  const egress = context.egress.of(node)
  return { ...address, tls: tls?.settings, tlsKey, egress, tunnel: proxy?.tunnel }
}
