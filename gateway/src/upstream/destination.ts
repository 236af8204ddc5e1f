import { formatHostPort } from '../lib/address/host-port.ts'
import { parseDuration } from '../lib/duration.ts'
import type { Headers } from '../net/http/headers.ts'
import type { UpstreamConnection } from '../net/http-client/send.ts'
import type { CompileContext } from '../pipeline/compile-context.ts'
import { type BackendPolicies, findBackend, type NamedBackend, requestPolicyOf } from './config.ts'
import { compileConnection } from './connection.ts'
import { type Authorize, compileAuthorize } from './credentials/credentials.ts'
import { parseServiceAddress } from './grpc-service/service-address.ts'
import { compileHeaderModifier } from './header-modifier.ts'
import { compileHealth, type Health } from './health.ts'

/** Compile context with the `backends` section of the configuration. */
export type UpstreamContext = CompileContext & { readonly backends?: readonly NamedBackend[] }

/** Changes headers in place. */
type HeaderEdit = (headers: Headers) => void

/** Compiled settings of requests to the servers of a backend. */
export type DestinationSettings = {
  readonly connection: UpstreamConnection
  readonly requestTimeoutMs: number | undefined
  readonly authorize: Authorize | undefined
  readonly editRequestHeaders: HeaderEdit | undefined
  readonly editReplyHeaders: HeaderEdit | undefined
}

/** An HTTP server with the compiled settings of requests to it. */
export type Destination = DestinationSettings & {
  /** Log name: the name of the backend, or else its host and port. */
  readonly name: string
  readonly host: string
  readonly port: number
  /** As in a URL: `https://host:port`. */
  readonly origin: string
  /** Value of the host header, without the default port of the scheme. */
  readonly authority: string
  /** Undefined without health policy. */
  readonly health: Health | undefined
}

export type SettingsOptions = {
  /** The configuration object that names the host: its source determines the egress policy. */
  node: object
  /** The configuration object that contains the host and policies of it. Default: `node`. */
  owner?: object | undefined
  /** The most specific first; the first definition of a key applies. */
  policies: readonly (BackendPolicies | undefined)[]
}

export type DestinationOptions = SettingsOptions & {
  /** `host:port`. */
  host: string
  /** Name of the backend, if it has one; also the key of its health state. */
  name?: string | undefined
}

/** Compiles a destination. Throws if a file in its policies is unreadable. */
export function compileDestination(options: DestinationOptions, context: CompileContext): Destination {
  return compileServers(options, context).at(options.host, options.name)
}

/** Servers with the same settings. */
export type Servers = {
  readonly settings: DestinationSettings
  /** The destination of `host:port`. `name` is its log name, and the key of its health state. */
  at(host: string, name?: string): Destination
}

/** Compiles settings once for any number of servers. Throws if a file in the policies is unreadable. */
export function compileServers(
  { node, owner, policies: levels }: SettingsOptions,
  context: CompileContext,
): Servers {
  const policies = mergePolicies(levels)
  const { http, backendTLS, health } = policies
  const scheme = backendTLS === undefined ? 'http' : 'https'
  const settings: DestinationSettings = {
    connection: compileConnection(policies, context.egress.of(node), context),
    // As in the Gateway API, 0 disables the limit.
    requestTimeoutMs: parseDuration(http?.requestTimeout ?? '0s') || undefined,
    authorize: compileAuthorize(policies.backendAuth, context, {
      ...{ destination: node, owner, connection: policies },
    }),
    editRequestHeaders: compileHeaderEdit(policies.requestHeaderModifier),
    editReplyHeaders: compileHeaderEdit(policies.responseHeaderModifier),
  }

  function atSocket(socketPath: string): Destination {
    const name = `unix:${socketPath}`
    const connection = { ...settings.connection, key: `${settings.connection.key} ${name}`, socketPath }
    const server = {
      name,
      host: 'localhost',
      port: 0,
      origin: `${scheme}://localhost`,
      authority: 'localhost',
    }
    return { ...settings, ...server, connection, health: undefined }
  }

  return {
    settings,
    at(host, givenName) {
      const address = parseServiceAddress(host)
      if (address === undefined) throw new Error(`"${host}" is not host:port`)
      if (address.socketPath !== undefined) return atSocket(address.socketPath)
      const hostPort = formatHostPort(address)
      const name = givenName ?? hostPort
      const isDefaultPort = address.port === (scheme === 'http' ? 80 : 443)
      return {
        name,
        ...address,
        origin: `${scheme}://${hostPort}`,
        authority: isDefaultPort ? hostPort.slice(0, hostPort.lastIndexOf(':')) : hostPort,
        ...settings,
        health: health && compileHealth(health, name, context),
      }
    },
  }
}

function compileHeaderEdit(config: BackendPolicies['requestHeaderModifier']): HeaderEdit | undefined {
  return config && compileHeaderModifier(config)
}

/** Merges sets of policies, the most specific first. */
export function mergePolicies(levels: readonly (BackendPolicies | undefined)[]): BackendPolicies {
  const present = levels.filter((level) => level !== undefined)
  const [only] = present
  if (only === undefined) return {}
  return present.length === 1 ? only : Object.assign({}, ...present.toReversed().map(definedOf))
}

/** Omits keys with the value undefined. */
function definedOf(policies: BackendPolicies): BackendPolicies {
  return Object.fromEntries(Object.entries(policies).filter(([, value]) => value !== undefined))
}

/**
 * Compiles the destination that `/name` refers to. Policies of `defaults` apply where the backend has none.
 * Throws if there is no such backend, or it is not a host.
 */
export function compileNamedDestination(
  reference: string,
  backends: readonly NamedBackend[],
  context: CompileContext,
  defaults?: BackendPolicies,
): Destination {
  const backend = findBackend(reference, backends)
  if (backend?.host === undefined) throw new Error(missingBackend(reference, backend))
  const { host, name, policies } = backend
  const compile = (levels: SettingsOptions['policies']) =>
    compileDestination({ host, node: backend, name, policies: levels }, context)
  if (defaults === undefined) return context.cached(backend, 'destination', () => compile([policies]))
  const byDefaults = context.cached(
    backend,
    'destinations',
    () => new WeakMap<BackendPolicies, Destination>(),
  )
  const known = byDefaults.get(defaults)
  if (known !== undefined) return known
  const destination = compile([policies, defaults])
  byDefaults.set(defaults, destination)
  return destination
}

/** The error text of a reference without destination. */
export function missingBackend(reference: string, backend: NamedBackend | undefined): string {
  if (backend === undefined) return `no backend is named "${reference.replace(/^\//, '')}"`
  const policy = requestPolicyOf(backend)
  if (policy !== undefined)
    return `backend "${backend.name}" must not have ${policy} here: only routes apply it`
  if (backend.endpoints !== undefined)
    return `backend "${backend.name}" must have a host instead of endpoints here`
  return `backend "${backend.name}" is not a host`
}
