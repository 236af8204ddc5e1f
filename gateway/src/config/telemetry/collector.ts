import { isToken } from '../../lib/http-token.ts'
import type { Headers } from '../../net/http/headers.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import { enumeration, name, object, optional } from '../../schema/dsl.ts'
import type { ReportIssue } from '../../schema/report.ts'
import type { SendExport } from '../../telemetry/otlp/exporter.ts'
import { grpcExport, httpExport, type Signal, signals } from '../../telemetry/otlp/transport.ts'
import { checkBackendHost, checkBackendPolicies } from '../../upstream/check.ts'
import {
  type BackendPolicies,
  backendHostSchema,
  backendPolicyFields,
  findBackend,
  hasServers,
} from '../../upstream/config.ts'
import { noCaller } from '../../upstream/credentials/caller.ts'
import {
  compileDestination,
  type Destination,
  missingBackend,
  type UpstreamContext,
} from '../../upstream/destination.ts'
import { compileNamedServers } from '../../upstream/endpoints.ts'

const { http, backendTLS, backendAuth, tcp, requestHeaderModifier } = backendPolicyFields

const policies = object(
  { http, backendTLS, backendAuth, tcp, requestHeaderModifier },
  {
    doc: 'Policies of requests to the collector. `requestHeaderModifier` sets headers, with gRPC metadata.',
  },
)

/** Address of a collector: exactly one is required. */
export const collectorAddress = {
  host: backendHostSchema,
  backend: name({ doc: 'Name of an entry of `backends` with servers.', example: '/collector' }),
}

/** Fields of a collector beside its address. */
export function collectorFields(signal: Signal) {
  return {
    protocol: optional(
      enumeration(['grpc', 'http'], {
        doc: 'Protocol of the collector: OTLP over gRPC, or over HTTP with protobuf bodies.',
        default: 'grpc',
      }),
    ),
    path: optional(name({ doc: 'Path of requests over HTTP.', default: signals[signal].path })),
    policies: optional(policies),
  }
}

/** A collector as configured. */
export type CollectorConfig = {
  readonly host?: string | undefined
  readonly backend?: string | undefined
  readonly protocol?: 'grpc' | 'http' | undefined
  readonly path?: string | undefined
  readonly policies?: BackendPolicies | undefined
  /** Further headers of requests. */
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** Reports problems that the schema cannot express. `backends` are the named backends. */
export function checkCollector(
  config: CollectorConfig,
  backends: NonNullable<UpstreamContext['backends']>,
  report: ReportIssue,
): void {
  const { host, backend: reference, path, policies: configured } = config
  if (host !== undefined) checkBackendHost(host, (message) => report(['host'], message))
  if (reference !== undefined) {
    const backend = findBackend(reference, backends)
    if (backend === undefined || !hasServers(backend)) report(['backend'], missingBackend(reference, backend))
  }
  if (path !== undefined && !/^\/[\x21-\x7e]*$/.test(path))
    report(['path'], 'must start with / and contain no spaces')
  if (configured) checkBackendPolicies(configured, (at, message) => report(['policies', ...at], message))
  if (configured?.backendAuth?.passthrough !== undefined)
    report(['policies', 'backendAuth'], 'must have a key: a collector has no client')
}

/** Reports invalid names and values of configured headers. */
export function checkCollectorHeaders(headers: CollectorConfig['headers'], report: ReportIssue): void {
  for (const [header, value] of Object.entries(headers ?? {})) {
    if (!isToken(header)) report(['headers', header], 'is not a valid header name')
    else if (!/^[\t\x20-\x7e]*$/.test(value))
      report(['headers', header], 'must have a value of printable ASCII characters')
  }
}

/** A compiled collector. */
export type Collector = {
  /** Identity of the collector with its credentials, without revealing them. */
  readonly address: string
  /** Settings of the named backend, without its endpoints, which may change. */
  readonly backend: object | undefined
  readonly send: SendExport
}

/** Compiles a collector for a signal. Throws if a file in its policies is unreadable. */
export function compileCollector(
  config: CollectorConfig,
  signal: Signal,
  context: CompileContext,
): Collector {
  const { backends = [] }: UpstreamContext = context
  const named = config.backend === undefined ? undefined : findBackend(config.backend, backends)
  const { endpoints, ...backend } = named ?? {}
  const exportTo = createExports({ config, signal, node: named ?? config }, context)
  if (named !== undefined && endpoints !== undefined) {
    const servers = compileNamedServers(named.name, backends, context, config.policies)
    const exports = new WeakMap<Destination, SendExport>()
    return {
      address: servers.key,
      backend,
      send(message) {
        const server = servers.choose()
        if (server === undefined) return Promise.reject(new Error('the collector has no endpoints'))
        const send = exports.get(server) ?? exportTo(server)
        exports.set(server, send)
        return send(message)
      },
    }
  }
  const host = config.host ?? named?.host
  if (host === undefined) throw new Error(missingBackend(config.backend ?? '', named))
  const destination = compileDestination(
    { host, node: named ?? config, policies: [config.policies, named?.policies] },
    context,
  )
  return { address: destination.name, backend, send: exportTo(destination) }
}

type ExportOptions = {
  readonly config: CollectorConfig
  readonly signal: Signal
  /** The source of the address, for the egress policy. */
  readonly node: object
}

/** Creates the function that creates the exports to a server. */
function createExports({ config, signal, node }: ExportOptions, context: CompileContext) {
  return (destination: Destination): SendExport => {
    const headers: Headers = lowerCase(config.headers ?? {})
    destination.editRequestHeaders?.(headers)
    const { origin, connection, host, port } = destination
    const authorize = (request: { headers: Headers; path: string }) =>
      destination.authorize?.apply(request, noCaller)
    if (config.protocol === 'http') {
      const path = config.path ?? signals[signal].path
      return httpExport(context.send, { origin, path, connection, headers }, authorize)
    }
    const egress = context.egress.of(node)
    const target = {
      host,
      port,
      tls: connection.tls,
      tlsKey: connection.key,
      egress,
      tunnel: connection.tunnel,
    }
    return grpcExport(context.grpc.method(target, signals[signal].method), headers, authorize)
  }
}

function lowerCase(headers: Readonly<Record<string, string>>): Headers {
  return Object.fromEntries(Object.entries(headers).map(([key, value]) => [key.toLowerCase(), value]))
}
