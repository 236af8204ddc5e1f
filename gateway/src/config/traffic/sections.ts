import type { TcpRouteConfig } from '../../backends/tcp/config.ts'
import type { Path } from '../../schema/path.ts'
import { type BindsConfig, type Translated, translateBinds } from '../compat/binds.ts'
import type { GatewayConfig } from './gateway-config.ts'
import type { NamedBackendConfig, RouteConfig, RouteGroupConfig } from './route-config.ts'

/** The traffic sections of a configuration in the current form, with `binds` translated. */
export type TrafficSections = {
  readonly gateways: Readonly<Record<string, GatewayConfig>>
  readonly routes: readonly RouteConfig[]
  readonly tcpRoutes: readonly TcpRouteConfig[]
  readonly backends: readonly NamedBackendConfig[]
  readonly routeGroups: readonly RouteGroupConfig[]
  /** Duplicates, of which only one would apply. */
  readonly clashes: readonly { path: Path; message: string }[]
  /** Translates a path to the path in the file. */
  written(path: Path): Path
}

/** The sections as in the file. */
export type WrittenSections = {
  readonly gateways?: Readonly<Record<string, GatewayConfig>> | undefined
  readonly routes?: readonly RouteConfig[] | undefined
  readonly tcpRoutes?: readonly TcpRouteConfig[] | undefined
  readonly backends?: readonly NamedBackendConfig[] | undefined
  readonly routeGroups?: readonly RouteGroupConfig[] | undefined
  readonly binds?: BindsConfig | undefined
}

type Remember = <T>(node: object, purpose: string, create: () => T) => T

/** `cached` stores the translation by node, so that it is the same object after a reload. */
export function trafficSections(config: WrittenSections, remember: Remember = forget): TrafficSections {
  const { gateways = {}, routes = [], tcpRoutes = [], backends = [], routeGroups = [], binds } = config
  if (binds === undefined)
    return { gateways, routes, tcpRoutes, backends, routeGroups, clashes: [], written: (path) => path }
  const translated = remember(binds, 'binds', () => translateBinds(binds))
  return {
    gateways: { ...gateways, ...translated.gateways },
    routes: [...routes, ...translated.routes],
    tcpRoutes: [...tcpRoutes, ...translated.tcpRoutes],
    backends,
    routeGroups,
    clashes: [...clashesOf(translated, gateways), ...portlessOf(binds)],
    written: (path) =>
      writtenPath(path, { binds, routes: routes.length, tcpRoutes: tcpRoutes.length }, translated.paths),
  }
}

/** Of two gateways with the same name, one would be lost. */
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

function portlessOf(binds: BindsConfig): TrafficSections['clashes'] {
  return binds.flatMap(({ port, mode }, index) =>
    port === undefined && mode !== 'internal'
      ? [{ path: ['binds', index], message: 'port is required' }]
      : [],
  )
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
    // The attachment of a route in `binds` is its position.
    return rest[0] === 'gateways' ? place : [...place, ...rest]
  }
  return path
}
