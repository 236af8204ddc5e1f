import type { GatewayConfig, ListenerConfig, Protocol, TlsConfig } from './gateway-config.ts'

/** A listener in the configuration, or the implicit one of a gateway without `listeners`. */
export type ListenerPlan = {
  readonly gateway: string
  readonly name: string
  /** `<gateway>`, or `<gateway>/<listener>` if the gateway has listeners. */
  readonly place: string
  /** Path of its object in the configuration. */
  readonly path: readonly (string | number)[]
  readonly hostname: string | undefined
  readonly protocol: Protocol
  readonly tls: TlsConfig | undefined
  /** The object with its policies. */
  readonly config: GatewayConfig | ListenerConfig
}

export type Gateways = Readonly<Record<string, GatewayConfig>>
export type References = string | readonly string[] | undefined

/** Gateway of routes and sections without `gateways`. */
export const defaultGateway = 'default'

/** The listeners of a gateway, in order. */
export function listenersOf(gateway: string, config: GatewayConfig): ListenerPlan[] {
  const path = ['gateways', gateway]
  if (config.listeners === undefined) {
    return [{ gateway, name: '', place: gateway, path, hostname: undefined, ...transportOf(config), config }]
  }
  return config.listeners.map((listener, index) => {
    const name = listener.name ?? String(index)
    return {
      gateway,
      name,
      place: `${gateway}/${name}`,
      path: [...path, 'listeners', index],
      hostname: listener.hostname,
      ...transportOf(listener),
      config: listener,
    }
  })
}

function transportOf({ protocol, tls }: GatewayConfig | ListenerConfig) {
  return { protocol: protocol ?? (tls === undefined ? 'HTTP' : 'HTTPS'), tls } as const
}

export function carriesHttp({ protocol }: ListenerPlan): boolean {
  return protocol === 'HTTP' || protocol === 'HTTPS'
}

/**
 * The references, or the default gateway if there are none; undefined if there is no default gateway either.
 */
export function referencesOf(references: References, gateways: Gateways): readonly string[] | undefined {
  if (typeof references === 'string') return [references]
  if (references !== undefined) return references
  return Object.hasOwn(gateways, defaultGateway) ? [defaultGateway] : undefined
}

/** The listeners of a reference: all of a gateway, or the named one. Undefined if it does not resolve. */
export function listenersAt(reference: string, gateways: Gateways): ListenerPlan[] | undefined {
  const slash = reference.indexOf('/')
  const name = slash < 0 ? reference : reference.slice(0, slash)
  const gateway = Object.hasOwn(gateways, name) ? gateways[name] : undefined
  if (gateway === undefined) return undefined
  const listeners = listenersOf(name, gateway)
  if (slash < 0) return listeners
  const wanted = reference.slice(slash + 1)
  const found = listeners.filter((listener) => listener.name === wanted)
  return found.length === 0 ? undefined : found
}
