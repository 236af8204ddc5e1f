import type { Infer } from '../../schema/dsl.ts'
import type { ObjectOf } from './meta.ts'
import type { objectReference, parentReference, ReadonlyOf } from './schemas/fields.ts'
import type {
  backendTlsPolicySpec,
  frontendValidation,
  gatewayClassSpec,
  gatewayListener,
  gatewaySpec,
  labelSelector,
  referenceGrantSpec,
} from './schemas/gateways.ts'
import type {
  backendReference,
  grpcRouteRule,
  grpcRouteSpec,
  httpHeaderFilter,
  httpRouteMatch,
  httpRouteRule,
  httpRouteSpec,
  pathModifier,
  routeBackendReference,
  routeFilter,
  tcpRouteSpec,
  tlsRouteSpec,
  valueMatch,
} from './schemas/routes.ts'

// Objects of the Gateway API v1.6, standard channel, by the schemas that they are read with.

export type Condition = {
  readonly type: string
  readonly status: 'True' | 'False' | 'Unknown'
  readonly reason: string
  readonly message: string
  readonly observedGeneration?: number | undefined
  /** RFC 3339; set by the writer of the status. */
  readonly lastTransitionTime?: string | undefined
}

/** Status that consists of conditions. */
export type ConditionsStatus = { readonly conditions?: readonly Condition[] | undefined }

export type GatewayClass = ObjectOf<
  'GatewayClass',
  ReadonlyOf<Infer<typeof gatewayClassSpec>>,
  ConditionsStatus
>

export type ParametersRef = NonNullable<GatewayClass['spec']['parametersRef']>

export type LabelSelector = ReadonlyOf<Infer<typeof labelSelector>>
export type ObjectReference = ReadonlyOf<Infer<typeof objectReference>>
export type GatewayListener = ReadonlyOf<Infer<typeof gatewayListener>>
export type FrontendValidation = ReadonlyOf<Infer<typeof frontendValidation>>

export type Gateway = ObjectOf<'Gateway', ReadonlyOf<Infer<typeof gatewaySpec>>, GatewayStatus>

export type GatewayStatus = ConditionsStatus & {
  readonly addresses?: readonly { readonly type?: string | undefined; readonly value: string }[] | undefined
  readonly listeners?: readonly ListenerStatus[] | undefined
  readonly attachedListenerSets?: number | undefined
}

export type ListenerStatus = {
  readonly name: string
  readonly supportedKinds: readonly { readonly group: string; readonly kind: string }[]
  readonly attachedRoutes: number
  readonly conditions: readonly Condition[]
}

export type ParentReference = ReadonlyOf<Infer<typeof parentReference>>

export type RouteStatus = {
  readonly parents: readonly {
    readonly parentRef: ParentReference
    readonly controllerName: string
    readonly conditions: readonly Condition[]
  }[]
}

export type BackendReference = ReadonlyOf<Infer<typeof backendReference>>
export type ValueMatch = ReadonlyOf<Infer<typeof valueMatch>>
export type HttpHeaderFilter = ReadonlyOf<Infer<typeof httpHeaderFilter>>
export type PathModifier = ReadonlyOf<Infer<typeof pathModifier>>
export type RouteFilter = ReadonlyOf<Infer<typeof routeFilter>>
export type RouteBackendReference = ReadonlyOf<Infer<typeof routeBackendReference>>
export type HttpRouteRule = ReadonlyOf<Infer<typeof httpRouteRule>>
export type HttpRouteMatch = ReadonlyOf<Infer<typeof httpRouteMatch>>
export type GrpcRouteRule = ReadonlyOf<Infer<typeof grpcRouteRule>>

export type HTTPRoute = ObjectOf<'HTTPRoute', ReadonlyOf<Infer<typeof httpRouteSpec>>, RouteStatus>
export type GRPCRoute = ObjectOf<'GRPCRoute', ReadonlyOf<Infer<typeof grpcRouteSpec>>, RouteStatus>
export type TLSRoute = ObjectOf<'TLSRoute', ReadonlyOf<Infer<typeof tlsRouteSpec>>, RouteStatus>
export type TCPRoute = ObjectOf<'TCPRoute', ReadonlyOf<Infer<typeof tcpRouteSpec>>, RouteStatus>

export type ReferenceGrant = ObjectOf<'ReferenceGrant', ReadonlyOf<Infer<typeof referenceGrantSpec>>>

export type BackendTLSPolicy = ObjectOf<
  'BackendTLSPolicy',
  ReadonlyOf<Infer<typeof backendTlsPolicySpec>>,
  PolicyStatus
>

export type PolicyStatus = {
  readonly ancestors: readonly {
    readonly ancestorRef: ParentReference
    readonly controllerName: string
    readonly conditions: readonly Condition[]
  }[]
}
