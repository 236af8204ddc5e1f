import { formatHostPort, parseHostPort } from '../lib/address/host-port.ts'
import { parseDuration } from '../lib/duration.ts'
import type { Headers } from '../net/http/headers.ts'
import type { UpstreamConnection } from '../net/http-client/send.ts'
import type { CompileContext } from '../pipeline/compile-context.ts'
import { type Authorize, compileAuthorize } from './auth.ts'
import { type BackendPolicies, findBackend, type NamedBackend } from './config.ts'
import { compileConnection } from './connection.ts'
import { compileHeaderModifier } from './header-modifier.ts'
import { compileHealth, type Health } from './health.ts'

/** Compile context with the `backends` section of the Config that is compiled. */
export type UpstreamContext = CompileContext & { readonly backends?: readonly NamedBackend[] }

/** Changes headers in place. */
type HeaderEdit = (headers: Headers) => void

/** Where a call goes: an HTTP server, and all that is to know about asking it. */
export type Destination = {
  /** For logs: the name of the backend, or else its host and port. */
  readonly name: string
  readonly host: string
  readonly port: number
  /** As in a URL: `https://host:port`. */
  readonly origin: string
  /** Value of the host header: the port is left out where it is the scheme's own. */
  readonly authority: string
  readonly connection: UpstreamConnection
  readonly requestTimeoutMs: number | undefined
  readonly authorize: Authorize | undefined
  readonly editRequestHeaders: HeaderEdit | undefined
  readonly editReplyHeaders: HeaderEdit | undefined
  /** Undefined where failures have no consequences. */
  readonly health: Health | undefined
}

export type DestinationOptions = {
  /** `host:port`. */
  host: string
  /** The object of the Config that names the host: its source decides where connections may lead. */
  node: object
  /** Name of the backend, where it has one. What is remembered of its health belongs to that name. */
  name?: string | undefined
  /** The most specific first; each key is taken from the first that has it. */
  policies: readonly (BackendPolicies | undefined)[]
}

/** Compiles a destination. Throws when a file that its policies name cannot be read. */
export function compileDestination(options: DestinationOptions, context: CompileContext): Destination {
  const address = parseHostPort(options.host)
  if (address === undefined) throw new Error(`"${options.host}" is not host:port`)
  const policies = mergePolicies(options.policies)
  const { http, backendTLS, health } = policies
  const scheme = backendTLS === undefined ? 'http' : 'https'
  const hostPort = formatHostPort(address)
  const name = options.name ?? hostPort
  const isDefaultPort = address.port === (scheme === 'http' ? 80 : 443)
  return {
    name,
    ...address,
    origin: `${scheme}://${hostPort}`,
    authority: isDefaultPort ? hostPort.slice(0, hostPort.lastIndexOf(':')) : hostPort,
    connection: compileConnection(policies, context.egress.of(options.node), context),
    // As in the Gateway API, a limit of 0 is none.
    requestTimeoutMs: parseDuration(http?.requestTimeout ?? '0s') || undefined,
    authorize: compileAuthorize(policies.backendAuth, context),
    editRequestHeaders: compileHeaderEdit(policies.requestHeaderModifier),
    editReplyHeaders: compileHeaderEdit(policies.responseHeaderModifier),
    health: health && compileHealth(health, name, context),
  }
}

function compileHeaderEdit(config: BackendPolicies['requestHeaderModifier']): HeaderEdit | undefined {
  return config && compileHeaderModifier(config)
}

/** One set of policies out of several, the most specific first. */
export function mergePolicies(levels: readonly (BackendPolicies | undefined)[]): BackendPolicies {
  const present = levels.filter((level) => level !== undefined)
  const [only] = present
  if (only === undefined) return {}
  return present.length === 1 ? only : Object.assign({}, ...present.toReversed().map(definedOf))
}

/** A key that says undefined counts as left out. */
function definedOf(policies: BackendPolicies): BackendPolicies {
  return Object.fromEntries(Object.entries(policies).filter(([, value]) => value !== undefined))
}

/** The destination that `/name` stands for. Throws when no backend has that name, or it is not a host. */
export function compileNamedDestination(
  reference: string,
  backends: readonly NamedBackend[],
  context: CompileContext,
): Destination {
  const backend = findBackend(reference, backends)
  if (backend?.host === undefined) throw new Error(missingBackend(reference, backend))
  const { host, name, policies } = backend
  return context.cached(backend, 'destination', () =>
    compileDestination({ host, node: backend, name, policies: [policies] }, context),
  )
}

/** Why a reference leads to no destination. */
export function missingBackend(reference: string, backend: NamedBackend | undefined): string {
  if (backend === undefined) return `no backend is named "${reference.replace(/^\//, '')}"`
  return `backend "${backend.name}" is not a host`
}
