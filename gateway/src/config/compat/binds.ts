import { tcpRouteSchema } from '../../backends/tcp/config.ts'
import { gatewayPolicyFields } from '../../policies/registry/schema.ts'
import { enumeration, type Infer, list, name, object, optional, port } from '../../schema/dsl.ts'
import type { Path } from '../../schema/path.ts'
import { protocols, tlsSchema } from '../traffic/gateway-config.ts'
import { routeSchema } from '../traffic/route-config.ts'
import { tunnelFields } from '../tunnels/tunnels.ts'

const listener = object(
  {
    name: optional(name({ doc: 'Name of the listener.', default: 'its number, from 0' })),
    hostname: optional(name({ doc: 'Host this listener is for.', default: 'all hosts' })),
    protocol: optional(
      enumeration(protocols, { doc: 'Protocol of the listener.', default: 'HTTP, or HTTPS with tls' }),
    ),
    tls: optional(tlsSchema),
    policies: optional(object(gatewayPolicyFields, { doc: 'Policies of the listener.' })),
    routes: optional(list(routeSchema, { doc: 'Its routes.' })),
    tcpRoutes: optional(list(tcpRouteSchema, { doc: 'Its TCP routes.' })),
  },
  { doc: 'A listener with its routes.' },
)

/** The older form of gateways, with routes inside. */
export const bindsSchema = list(
  object(
    {
      port: optional(port({ doc: 'Port to listen on. Optional with mode internal.' })),
      ...tunnelFields,
      listeners: list(listener, { doc: 'Listeners on the port.' }),
    },
    { doc: 'A port.' },
  ),
  { doc: 'Older form of `gateways`, `routes` and `tcpRoutes` in one. New files use those.', advanced: true },
)

export type BindsConfig = Infer<typeof bindsSchema>

/** A `binds` section in the current form; gateways and routes are named after their position. */
export type Translated = {
  readonly gateways: Readonly<Record<string, object>>
  readonly routes: readonly object[]
  readonly tcpRoutes: readonly object[]
  /** Path of each gateway, route and TCP route in the file, for messages. */
  readonly paths: { gateways: Record<string, Path>; routes: Path[]; tcpRoutes: Path[] }
  /** Paths of ports that occur twice. */
  readonly repeated: readonly Path[]
}

/** Translates `binds`: each port becomes the gateway `bind-<port>`, whose listeners keep their names. */
export function translateBinds(binds: BindsConfig) {
  const gateways: Record<string, ReturnType<typeof gatewayOf>> = {}
  const routes: Infer<typeof routeSchema>[] = []
  const tcpRoutes: Infer<typeof tcpRouteSchema>[] = []
  const paths: Translated['paths'] = { gateways: {}, routes: [], tcpRoutes: [] }
  const repeated: Path[] = []
  binds.forEach((bind, index) => {
    const gateway = `bind-${bind.port ?? 'internal'}`
    if (Object.hasOwn(gateways, gateway)) repeated.push(['binds', index, 'port'])
    gateways[gateway] = gatewayOf(bind)
    paths.gateways[gateway] = ['binds', index]
    bind.listeners.forEach((listener, number) => {
      const name = listener.name ?? String(number)
      const under: Path = ['binds', index, 'listeners', number]
      const attach = [`${gateway}/${name}`]
      listener.routes?.forEach((route, at) => {
        routes.push({ ...route, name: route.name ?? `${gateway}/${name}/${at}`, gateways: attach })
        paths.routes.push([...under, 'routes', at])
      })
      listener.tcpRoutes?.forEach((route, at) => {
        tcpRoutes.push({ ...route, name: route.name ?? `${gateway}/${name}/tcp-${at}`, gateways: attach })
        paths.tcpRoutes.push([...under, 'tcpRoutes', at])
      })
    })
  })
  return { gateways, routes, tcpRoutes, paths, repeated }
}

function gatewayOf({ port = 0, mode, tunnelProtocol, listeners }: BindsConfig[number]) {
  return {
    port,
    ...(mode === undefined ? {} : { mode }),
    ...(tunnelProtocol === undefined ? {} : { tunnelProtocol }),
    listeners: listeners.map(({ routes, tcpRoutes, policies, ...rest }) => ({ ...rest, ...policies })),
  }
}
