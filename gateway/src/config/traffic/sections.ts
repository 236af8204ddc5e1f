import type { TcpRouteConfig } from '../../backends/tcp/config.ts'
import type { Path } from '../../schema/path.ts'
import { type BindsConfig, type Translated, translateBinds } from '../compat/binds.ts'
import type { GatewayConfig } from './gateway-config.ts'
import type { NamedBackendConfig, RouteConfig } from './route-config.ts'

/** The traffic sections of a Config in the newer form, `binds` included. */
export type TrafficSections = {
  readonly gateways: Readonly<Record<string, GatewayConfig>>
  readonly routes: readonly RouteConfig[]
  readonly tcpRoutes: readonly TcpRouteConfig[]
  readonly backends: readonly NamedBackendConfig[]
  /** What stands twice and of which only one would count. */
  readonly clashes: readonly { path: Path; message: string }[]
  /** Where a path in this form was written. */
  written(path: Path): Path
}

/** The sections as they are written. */
export type WrittenSections = {
  readonly gateways?: Readonly<Record<string, GatewayConfig>> | undefined
  readonly routes?: readonly RouteConfig[] | undefined
  readonly tcpRoutes?: readonly TcpRouteConfig[] | undefined
  readonly backends?: readonly NamedBackendConfig[] | undefined
  readonly binds?: BindsConfig | undefined
}

type Remember = <T>(node: object, purpose: string, create: () => T) => T

/** `remember` keeps what a node was translated to, so that it keeps its identity across reloads. */
export function trafficSections(config: WrittenSections, remember: Remember = forget): TrafficSections {
  const { gateways = {}, routes = [], tcpRoutes = [], backends = [], binds } = config
  if (binds === undefined)
    return { gateways, routes, tcpRoutes, backends, clashes: [], written: (path) => path }
  const translated = remember(binds, 'binds', () => translateBinds(binds))
  return {
    gateways: { ...gateways, ...translated.gateways },
    routes: [...routes, ...translated.routes],
    tcpRoutes: [...tcpRoutes, ...translated.tcpRoutes],
    backends,
    clashes: clashesOf(translated, gateways),
    written: (path) =>
      writtenPath(path, { binds, routes: routes.length, tcpRoutes: tcpRoutes.length }, translated.paths),
  }
}

/** Of two gateways with a name, one and its policies would vanish without a word. */
function clashesOf({ gateways, paths, repeated }: Translated, own: object): TrafficSections['clashes'] {
  const taken = Object.keys(gateways).filter((name) => Object.hasOwn(own, name))
  return [
    ...repeated.map((path) => ({
      path,
      message: 'another entry of binds has this port: put its listeners there',
    })),
    ...taken.map((name) => ({
      path: paths.gateways[name] ?? ['binds'],
      message: `is the gateway ${name}, and another gateway is named so: rename that one`,
    })),
  ]
}

function forget<T>(_node: object, _purpose: string, create: () => T): T {
  return create()
}

type OwnCounts = { binds: BindsConfig; routes: number; tcpRoutes: number }
type Paths = ReturnType<typeof translateBinds>['paths']

function writtenPath(path: Path, own: OwnCounts, paths: Paths): Path {
  const [section, key, ...rest] = path
  if (section === 'gateways' && typeof key === 'string') {
    const bind = Object.hasOwn(paths.gateways, key) ? paths.gateways[key] : undefined
    return bind === undefined ? path : [...bind, ...rest]
  }
  if ((section === 'routes' || section === 'tcpRoutes') && typeof key === 'number') {
    const place = paths[section][key - own[section]]
    if (place === undefined) return path
    // Where a route attaches to is its place, and not written.
    return rest[0] === 'gateways' ? place : [...place, ...rest]
  }
  return path
}
