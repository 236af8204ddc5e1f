import { formatHostPort } from '../../lib/address/host-port.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import { refuse } from '../../pipeline/errors.ts'
import type { Exchange, Facts } from '../../pipeline/exchange.ts'
import type { Backend, Policy } from '../../pipeline/policy.ts'
import { chooseSticky, compileAffinity, digestOf } from '../../upstream/affinity/affinity.ts'
import { type Choose, compileChoice } from '../../upstream/choice.ts'
import { type BackendPolicies, findBackend, type NamedBackend } from '../../upstream/config.ts'
import {
  compileServers,
  type Destination,
  missingBackend,
  type SettingsOptions,
} from '../../upstream/destination.ts'
import {
  compileTarget,
  type DynamicConfig,
  parseAuthority,
  requestTargetVariables,
  withClientChosenEgress,
} from '../../upstream/dynamic.ts'
import { compileEndpoints, type EndpointServers } from '../../upstream/endpoints.ts'
import type { Health } from '../../upstream/health.ts'
import type { ErrorConfig, RouteBackend } from './config.ts'

/** A destination of requests of the route. */
export type Entry = DestinationEntry | DynamicEntry | OtherEntry
export type DestinationEntry = {
  readonly kind: 'destination'
  readonly weight: number
  readonly health: Health | undefined
  readonly destination: Destination
  /** Policies of requests of the backend; undefined without any. */
  readonly policies: readonly Policy[] | undefined
  /** The endpoint of the session of a request; undefined without a session. */
  readonly sticky?: ((exchange: Exchange) => DestinationEntry | undefined) | undefined
}
/** The client chooses the destination. */
type DynamicEntry = {
  readonly kind: 'dynamic'
  readonly weight: number
  readonly health: undefined
  readonly policies: readonly Policy[] | undefined
  /** Undefined if the request names no destination. */
  destinationOf(exchange: Exchange): Destination | undefined
}
type OtherEntry = {
  readonly kind: 'other'
  readonly weight: number
  readonly health: undefined
  readonly backend: Backend
}

export type Choices = {
  readonly choose: Choose<Entry>
  /** For retries: entries of other kinds require an unread body. */
  readonly chooseAgain: Choose<DestinationEntry>
}

export type EntryOptions<B extends RouteBackend, N extends NamedBackend> = {
  /** The `backends` section. */
  named: readonly N[]
  /** The route. */
  owner?: object | undefined
  /** Policies of the route: defaults of its backends. */
  policies: Pick<BackendPolicies, 'backendTLS' | 'backendAuth' | 'backendTunnel'>
  /** Compiles an entry of another kind: `mcp` or `ai`, inline or from the `backends` section. */
  compileOther(entry: B, named: N | undefined): Backend
  /** Compiles the policies of requests of an entry, which is at `index`. */
  compilePolicies?(entry: B, named: N | undefined, index: number): readonly Policy[] | undefined
}

/** A configured entry: one destination, or a backend whose endpoints may change. */
type Source =
  | Entry
  | {
      readonly kind: 'endpoints'
      readonly weight: number
      readonly servers: EndpointServers
      readonly policies: readonly Policy[] | undefined
      readonly sessionOf: ((facts: Facts) => number | undefined) | undefined
    }

/**
 * Compiles the choice among the entries of a route; undefined without a positive weight. Throws on an unknown
 * name or an unreadable file.
 */
export function compileEntries<B extends RouteBackend, N extends NamedBackend>(
  entries: readonly B[],
  context: CompileContext,
  options: EntryOptions<B, N>,
): (() => Choices) | undefined {
  const sources = entries
    .map((entry, index) => compileSource({ entry, index }, context, options))
    .filter(({ weight }) => weight > 0)
  return sources.length === 0 ? undefined : compileChoices(sources, context)
}

function compileSource<B extends RouteBackend, N extends NamedBackend>(
  { entry, index }: { entry: B; index: number },
  context: CompileContext,
  {
    named,
    owner,
    policies: { backendTLS, backendAuth, backendTunnel },
    compileOther,
    compilePolicies,
  }: EntryOptions<B, N>,
): Source {
  const weight = entry.weight ?? 1
  const found = entry.backend === undefined ? undefined : findBackend(entry.backend, named)
  if (entry.backend !== undefined && found === undefined)
    throw new Error(missingBackend(entry.backend, undefined))
  const ofRequests = compilePolicies?.(entry, found, index)
  if (entry.dynamic !== undefined) {
    const levels = [entry.policies, { backendTLS, backendAuth }]
    const settings = { node: entry, policies: levels }
    return { ...dynamicEntry(entry.dynamic, weight, settings, context), policies: ofRequests }
  }
  if (entry.error !== undefined) return otherEntry(weight, compileErrorBackend(entry.error))
  const { host, endpoints } = found ?? { host: entry.host, endpoints: undefined }
  if (host === undefined && endpoints === undefined) return otherEntry(weight, compileOther(entry, found))
  // Other policies of the route have run already.
  const policies = [entry.policies, found?.policies, { backendTLS, backendAuth, backendTunnel }]
  const servers = compileServers({ node: found ?? entry, owner: found ?? owner, policies }, context)
  if (found && host === undefined) {
    const affinity = entry.policies?.sessionAffinity ?? found.policies?.sessionAffinity
    return {
      kind: 'endpoints',
      weight,
      policies: ofRequests,
      sessionOf: affinity && compileAffinity(affinity),
      servers: compileEndpoints(found, servers, context),
    }
  }
  const destination = servers.at(host ?? '', found?.name)
  return { kind: 'destination', weight, health: destination.health, destination, policies: ofRequests }
}

function dynamicEntry(
  config: DynamicConfig,
  weight: number,
  settings: SettingsOptions,
  context: CompileContext,
): Omit<DynamicEntry, 'policies'> {
  const servers = compileServers(settings, withClientChosenEgress(config, context))
  const defaultPort = servers.settings.connection.tls === undefined ? 80 : 443
  const read = compileTarget(config, requestTargetVariables)
  return {
    kind: 'dynamic',
    weight,
    health: undefined,
    destinationOf({ facts, forwarding }) {
      const { host = 'client' } = forwarding ?? {}
      const authority = host === 'client' ? facts.request.host : host
      const target = read(facts, () => parseAuthority(authority, defaultPort))
      return target && servers.at(formatHostPort(target))
    },
  }
}

/** The destination of a dynamic entry for one request, with a refusal if there is none. */
export function resolveEntry(
  entry: Entry | undefined,
  exchange: Exchange,
): DestinationEntry | OtherEntry | undefined {
  if (entry?.kind === 'destination') return entry.sticky?.(exchange) ?? entry
  if (entry?.kind !== 'dynamic') return entry
  const destination = entry.destinationOf(exchange)
  if (destination === undefined) return otherEntry(entry.weight, withoutTarget)
  const { weight, policies } = entry
  return { kind: 'destination', weight, health: undefined, destination, policies }
}

const withoutTarget: Backend = (exchange) =>
  refuse(exchange, { status: 400, code: 'no_destination', message: 'the request names no destination' })

function otherEntry(weight: number, backend: Backend): OtherEntry {
  return { kind: 'other', weight, health: undefined, backend }
}

/** Compiles a backend that answers every request with an error of the gateway. */
export function compileErrorBackend({ status = 500, message }: ErrorConfig): Backend {
  const refusal = { status, code: 'backend_error', message: message ?? 'this backend is not available' }
  return (exchange) => refuse(exchange, refusal)
}

const withoutEndpoints: Backend = (exchange) =>
  refuse(exchange, { status: 503, code: 'no_endpoint', message: 'the backend has no endpoints' })

/** Compiles the choices, again whenever endpoints have changed. */
function compileChoices(sources: readonly Source[], { random }: CompileContext): () => Choices {
  const lists = sources.flatMap((source) => (source.kind === 'endpoints' ? [source.servers.list] : []))
  let built = build()
  if (lists.length === 0) return () => built.choices
  return () => {
    if (!lists.every(({ current }, index) => current === built.of[index])) built = build()
    return built.choices
  }

  function build() {
    const entries = sources.flatMap(entriesOf)
    const choices: Choices = {
      choose: compileChoice(entries, random),
      chooseAgain: compileChoice(entries.filter(isDestination), random),
    }
    return { of: lists.map(({ current }) => current), choices }
  }
}

/** The entries of a source. The endpoints of a backend share its weight; without any, the share is 503. */
function entriesOf(source: Source): Entry[] {
  if (source.kind !== 'endpoints') return [source]
  const destinations = source.servers.destinations()
  if (destinations.length === 0) return [otherEntry(source.weight, withoutEndpoints)]
  const { sessionOf, policies } = source
  const entries: DestinationEntry[] = destinations.map(({ weight, health, destination }) => ({
    kind: 'destination',
    weight: source.weight * weight,
    health,
    destination,
    policies,
    sticky: sessionOf && sticky,
  }))
  const digests = sessionOf ? destinations.map(({ destination }) => digestOf(destination.origin)) : []
  return entries

  function sticky({ facts }: Exchange): DestinationEntry | undefined {
    const session = sessionOf?.(facts)
    return session === undefined ? undefined : chooseSticky(entries, digests, session)
  }
}

function isDestination(entry: Entry): entry is DestinationEntry {
  return entry.kind === 'destination'
}
