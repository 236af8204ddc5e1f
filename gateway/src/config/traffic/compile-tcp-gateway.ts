import { compileTcpTargets } from '../../backends/tcp/targets.ts'
import { compileTcpRoutes, type TcpRoute } from '../../backends/tcp/tcp.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { TcpListener } from '../../pipeline/snapshot.ts'
import type { ListenerPlan } from './attachments.ts'
import { compileServerTls } from './compile-tls.ts'
import { nameOfTcpRoute } from './route-kind.ts'
import type { TrafficSections } from './sections.ts'

/** Compiles the TCP listeners of one port. `attached` contains the TCP routes by scope of the listener. */
export function compileTcpGateway(
  listeners: readonly ListenerPlan[],
  attached: ReadonlyMap<string, readonly number[]>,
  { tcpRoutes, backends }: TrafficSections,
  context: CompileContext,
): Pick<TcpListener, 'kind' | 'tls' | 'connect' | 'readsServerName'> {
  const tcpRoute = (index: number): TcpRoute[] => {
    const route = tcpRoutes[index]
    if (route === undefined) return []
    const targets = compileTcpTargets(route, backends, context)
    return [{ name: nameOfTcpRoute(route, index), hostnames: route.hostnames ?? [], targets }]
  }
  const tls = compileServerTls(listeners, context, [])
  const connect = compileTcpRoutes(
    listeners.map(({ hostname, place }) => ({
      hostname,
      routes: (attached.get(place) ?? []).flatMap(tcpRoute),
    })),
    context,
    { place: listeners[0]?.gateway ?? '' },
  )
  return { kind: 'tcp', tls, readsServerName: tls === undefined && listeners[0]?.protocol === 'TLS', connect }
}
