import type { Config } from '../../config/schema.ts'
import type { GlobalRateLimitConfig } from '../../policies/rate-limit/global/config.ts'
import type { LocalRateLimitConfig } from '../../policies/rate-limit/local-config.ts'
import type { Gateway } from '../objects/gateway-api.ts'
import type { ObjectKey } from '../objects/meta.ts'

// Results that the steps of a translation exchange.

/**
 * A Gateway of a class of this controller, with its listeners. The same object as in the previous call if
 * nothing but status and resource version has changed.
 */
export type GatewayPlan = {
  readonly key: ObjectKey
  readonly gateway: Gateway
  readonly listeners: readonly ListenerPlan[]
  /** Certificate with key for TLS to backends, as nodes of the Config; undefined without a valid one. */
  readonly clientCertificate:
    | { readonly cert: { readonly inline: string }; readonly key: { readonly inline: string } }
    | undefined
}

export type RouteKind = 'HTTPRoute' | 'GRPCRoute' | 'TLSRoute' | 'TCPRoute'

/** A listener of a Gateway, valid or not: routes attach to both. */
export type ListenerPlan = {
  readonly gateway: ObjectKey
  readonly name: string
  readonly port: number
  readonly hostname: string | undefined
  /** `HTTP`, `HTTPS`, `TLS` or `TCP`; undefined for protocols that are not supported. */
  readonly protocol: 'HTTP' | 'HTTPS' | 'TLS' | 'TCP' | undefined
  /** `tls.mode` of protocol TLS. */
  readonly isPassthrough: boolean
  /** Kinds of routes that may attach. */
  readonly kinds: readonly RouteKind[]
  /** Whether routes of a namespace may attach. */
  readonly allowsNamespace: (namespace: string) => boolean
  /** Reference in `gateways` of a Config route, `<port>/<listener>`; undefined if it serves nothing. */
  readonly reference: string | undefined
}

export type RoutesConfig = NonNullable<Config['routes']>
export type TcpRoutesConfig = NonNullable<Config['tcpRoutes']>
export type BackendsConfig = NonNullable<Config['backends']>
export type RouteConfig = Omit<RoutesConfig[number], 'policies'> & { policies?: RoutePolicies | undefined }
/** Policies of a route. Limits of the objects have no conditions. */
export type RoutePolicies = Omit<
  NonNullable<RoutesConfig[number]['policies']>,
  'localRateLimit' | 'remoteRateLimit'
> & {
  localRateLimit?: LocalRateLimitConfig | undefined
  remoteRateLimit?: GlobalRateLimitConfig | undefined
}
/** Settings of all listeners of a Gateway. */
export type FrontendPolicies = NonNullable<Config['frontendPolicies']>
export type TcpRouteConfig = TcpRoutesConfig[number]
export type BackendConfig = BackendsConfig[number]

/** Kind of the requests of a backend; routes with backends of several kinds are invalid. */
export type BackendTraffic = 'http' | 'llm' | 'mcp'

/** A resolved reference to a backend, or the reason against it. */
export type BackendResolution =
  | {
      readonly kind: 'resolved'
      /** Name in the `backends` section, without slash. */
      readonly name: string
      readonly traffic: BackendTraffic
      /** Whether the Service declares agents with the A2A protocol. */
      readonly isAgent?: true | undefined
      /**
       * Reason for which all requests to the backend fail with 503, such as an invalid BackendTLSPolicy. A
       * guard with it counts as unresolved.
       */
      readonly failure?: string | undefined
    }
  | {
      readonly kind: 'unresolved'
      /** Reason of the condition ResolvedRefs. */
      readonly reason:
        | 'InvalidKind'
        | 'BackendNotFound'
        | 'RefNotPermitted'
        | 'UnsupportedProtocol'
        | 'UnsupportedValue'
        | 'InvalidBackend'
      readonly message: string
      /** Name of a backend without endpoints, for guards, which must stay and fail, without slash. */
      readonly placeholder: string
    }

/** Key of a listener in counts of attached routes. */
export function listenerKey(gateway: ObjectKey, listener: string): string {
  return `${gateway}/${listener}`
}
