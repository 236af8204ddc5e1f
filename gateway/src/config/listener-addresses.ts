import { isIP } from 'node:net'
import { type Addressed, portsOf } from './ports.ts'
import { listenersAt, listenersOf, referencesOf } from './traffic/attachments.ts'
import type { GatewayConfig, Protocol } from './traffic/gateway-config.ts'
import { trafficSections, type WrittenSections } from './traffic/sections.ts'

/** Sections of a configuration that listen or attach to listeners. */
export type ListeningConfig = WrittenSections &
  Addressed & {
    readonly config?: { readonly bindAddress?: string | undefined } | undefined
    readonly ui?: { readonly gateways?: string | readonly string[] | undefined } | undefined
  }

/** Purpose of a listener. */
export type Served = 'llm' | 'mcp' | 'routes' | 'tcpRoutes' | 'ui'

/** A listener of the configuration with its address. */
export type ListenerAddress = {
  /** Name of the gateway; `llm` or `mcp` for the own port of a section. */
  readonly gateway: string
  /** `<gateway>`, or `<gateway>/<listener>`. */
  readonly name: string
  /** IP address that is listened on. */
  readonly address: string
  readonly port: number
  readonly protocol: Protocol
  readonly hostname: string | undefined
  readonly tls: boolean
  readonly serves: readonly Served[]
}

const defaultBindAddress = '::'

/** All listeners of a configuration: those of gateways, then the own ports of sections. */
export function listenerAddresses(config: ListeningConfig): ListenerAddress[] {
  const sections = trafficSections(config)
  const { gateways } = sections
  const address = config.config?.bindAddress ?? defaultBindAddress
  const ports = portsOf({ ...config, gateways })
  const served = servedPlaces(config, gateways, sections)
  const found: ListenerAddress[] = []
  for (const [gateway, settings] of Object.entries(gateways)) {
    for (const { place, protocol, hostname, tls } of listenersOf(gateway, settings)) {
      const serves = [...(served.get(place) ?? [])]
      const { port } = settings
      found.push({ gateway, name: place, address, port, protocol, hostname, tls: tls !== undefined, serves })
    }
  }
  for (const section of ['llm', 'mcp'] as const) {
    const port = ports[section]
    if (port === undefined) continue
    const tls = section === 'llm' && config.llm?.tls !== undefined
    const own = { address, port, protocol: tls ? 'HTTPS' : 'HTTP', hostname: undefined, tls } as const
    found.push({ gateway: section, name: section, ...own, serves: [section] })
  }
  return found
}

type Places = ReadonlyMap<string, ReadonlySet<Served>>

/** Purposes of listeners by their place. */
function servedPlaces(
  config: ListeningConfig,
  gateways: Readonly<Record<string, GatewayConfig>>,
  { routes, tcpRoutes }: Pick<ReturnType<typeof trafficSections>, 'routes' | 'tcpRoutes'>,
): Places {
  const places = new Map<string, Set<Served>>()
  const seen = new Set<string>()
  const ports = portsOf({ ...config, gateways })
  const add = (references: Parameters<typeof referencesOf>[0], served: Served) => {
    // Thousands of routes have a few different references.
    const key = `${served} ${JSON.stringify(references)}`
    if (seen.has(key)) return
    seen.add(key)
    for (const reference of referencesOf(references, gateways) ?? []) {
      for (const { place } of listenersAt(reference, gateways) ?? []) {
        const purposes = places.get(place) ?? new Set()
        places.set(place, purposes.add(served))
      }
    }
  }
  for (const { gateways: references } of routes) add(references, 'routes')
  for (const { gateways: references } of tcpRoutes) add(references, 'tcpRoutes')
  for (const section of ['llm', 'mcp'] as const) {
    const settings = config[section]
    if (settings === undefined || ports[section] !== undefined) continue
    add(settings.gateways as Parameters<typeof referencesOf>[0], section)
  }
  if (config.ui !== undefined) add(config.ui.gateways, 'ui')
  return places
}

/** IP address at which this process reaches a listening address. */
export function reachableAddress(address: string): string {
  // The wildcard addresses accept IPv4, the IPv6 one too.
  if (address === '::' || address === '0.0.0.0') return '127.0.0.1'
  return isIP(address) === 0 ? '127.0.0.1' : address
}
