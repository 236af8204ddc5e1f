import { formatHostPort } from '../../lib/address/host-port.ts'
import { messageOf } from '../../lib/thrown.ts'
import type { EgressPolicy } from '../../net/egress/egress.ts'
import type { UpstreamTls } from '../../net/http-client/send.ts'
import type { Connection } from '../../net/listener/connection.ts'
import { createDialTls, type DialTls } from '../../net/tcp/dial.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import { findBackend, type NamedBackend } from '../../upstream/config.ts'
import {
  compileServers,
  type Destination,
  type DestinationSettings,
  missingBackend,
  type SettingsOptions,
} from '../../upstream/destination.ts'
import {
  compileTarget,
  connectionTargetVariables,
  type DynamicConfig,
  parseAuthority,
  withClientChosenEgress,
} from '../../upstream/dynamic.ts'
import { compileEndpoints } from '../../upstream/endpoints.ts'
import type { TcpRouteConfig } from './config.ts'
import type { TcpTarget } from './forward.ts'

const defaultConnectTimeoutMs = 10_000

/**
 * Compiles the backends of a route to the function that returns its current targets: endpoints may change.
 * Policies of the backend precede those of the referenced entry of `backends`, then those of the route.
 * Throws on an unknown entry and on an unreadable or invalid file.
 */
export function compileTcpTargets(
  route: TcpRouteConfig,
  backends: readonly NamedBackend[],
  context: CompileContext,
): (connection?: Connection) => readonly TcpTarget[] {
  const sources = route.backends.map((backend) => compileSource(backend, route, { backends, context }))
  if (sources.every(({ kind }) => kind === 'fixed')) {
    const targets = sources.flatMap((source) => source.targets())
    return () => targets
  }
  return (connection) => sources.flatMap((source) => source.targets(connection))
}

type Source = {
  kind: 'fixed' | 'endpoints' | 'dynamic'
  targets(connection?: Connection): readonly TcpTarget[]
}
type Surroundings = { backends: readonly NamedBackend[]; context: CompileContext }

function compileSource(
  backend: TcpRouteConfig['backends'][number],
  { policies }: TcpRouteConfig,
  { backends, context }: Surroundings,
): Source {
  const { weight = 1 } = backend
  if (backend.reject !== undefined) return { kind: 'fixed', targets: () => [rejecting(weight)] }
  if (backend.dynamic !== undefined) {
    const levels = [backend.policies, policies]
    return dynamicSource(backend.dynamic, weight, { node: backend, policies: levels }, context)
  }
  const named = backend.backend === undefined ? undefined : findBackend(backend.backend, backends)
  const host = backend.host ?? named?.host
  const node = named ?? backend
  const servers = compileServers({ node, policies: [backend.policies, named?.policies, policies] }, context)
  const dial = compileDial(servers.settings, named?.name ?? host ?? '', context.egress.of(node), context)
  const targetOf = ({ name, health, host, port }: Destination, share: number): TcpTarget => ({
    name,
    weight: share,
    health,
    dial: { host, port, ...dial },
  })
  if (host !== undefined) {
    const target = targetOf(servers.at(host, named?.name), weight)
    return { kind: 'fixed', targets: () => [target] }
  }
  if (named?.endpoints === undefined) throw new Error(missingBackend(backend.backend ?? '', named))
  const { list, destinations } = compileEndpoints(named, servers, context)
  const compile = () => {
    const targets = destinations().map((one) => targetOf(one.destination, weight * one.weight))
    return { of: list.current, targets: targets.length > 0 ? targets : [rejecting(weight)] }
  }
  let compiled = compile()
  return {
    kind: 'endpoints',
    targets() {
      if (compiled.of !== list.current) compiled = compile()
      return compiled.targets
    },
  }
}

function compileDial(
  { connection }: DestinationSettings,
  place: string,
  egress: EgressPolicy,
  context: CompileContext,
) {
  return {
    tls: connection.tls && compileDialTls(connection.tls, place, context),
    timeoutMs: connection.connectTimeoutMs ?? defaultConnectTimeoutMs,
    probes: connection.probes,
    tunnel: connection.tunnel,
    egress,
  }
}

/** A destination of the server name and port of each connection. Without a name it is reset. */
function dynamicSource(
  config: DynamicConfig,
  weight: number,
  settings: SettingsOptions,
  context: CompileContext,
): Source {
  const restricted = withClientChosenEgress(config, context)
  const servers = compileServers(settings, restricted)
  const dial = compileDial(servers.settings, 'dynamic', restricted.egress.of(settings.node), context)
  const read = compileTarget(config, connectionTargetVariables)
  return {
    kind: 'dynamic',
    targets(connection) {
      if (connection === undefined) return []
      const { source, destination } = connection
      const { hostname, port } = destination
      const target = read({ clock: context.clock, source, destination }, () =>
        hostname === undefined ? undefined : parseAuthority(hostname, port),
      )
      if (target === undefined) return [rejecting(weight)]
      return [{ name: formatHostPort(target), weight, dial: { ...target, ...dial } }]
    },
  }
}

/** Gateway API, `TCPRouteRule.backendRefs`: an invalid backend, or one without endpoints, has its share. */
function rejecting(weight: number): TcpTarget {
  return { name: '', weight, dial: undefined }
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
