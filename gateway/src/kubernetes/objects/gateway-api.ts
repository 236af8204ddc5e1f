import type { ObjectOf } from './meta.ts'

// Objects of the Gateway API v1.6, standard channel, reduced to the fields read here. Enumerations are plain
// strings: later versions add values, which are reported as not supported.

export type Condition = {
  readonly type: string
  readonly status: 'True' | 'False' | 'Unknown'
  readonly reason: string
  readonly message: string
  readonly observedGeneration?: number | undefined
  /** RFC 3339; set by the writer of the status. */
  readonly lastTransitionTime?: string | undefined
}

export type ParametersRef = {
  readonly group: string
  readonly kind: string
  readonly name: string
  readonly namespace?: string | undefined
}

export type GatewayClass = ObjectOf<
  'GatewayClass',
  {
    readonly controllerName: string
    readonly parametersRef?: ParametersRef | undefined
    readonly description?: string | undefined
  },
  { readonly conditions?: readonly Condition[] | undefined }
>

export type LabelSelector = {
  readonly matchLabels?: Readonly<Record<string, string>> | undefined
  readonly matchExpressions?:
    | readonly {
        readonly key: string
        readonly operator: string
        readonly values?: readonly string[] | undefined
      }[]
    | undefined
}

export type ObjectReference = {
  readonly group?: string | undefined
  readonly kind?: string | undefined
  readonly name: string
  readonly namespace?: string | undefined
}

export type GatewayListener = {
  readonly name: string
  readonly hostname?: string | undefined
  readonly port: number
  readonly protocol: string
  readonly tls?:
    | {
        readonly mode?: string | undefined
        readonly certificateRefs?: readonly ObjectReference[] | undefined
        readonly options?: Readonly<Record<string, string>> | undefined
      }
    | undefined
  readonly allowedRoutes?:
    | {
        readonly namespaces?:
          | { readonly from?: string | undefined; readonly selector?: LabelSelector | undefined }
          | undefined
        readonly kinds?: readonly { readonly group?: string | undefined; readonly kind: string }[] | undefined
      }
    | undefined
}

export type FrontendValidation = {
  readonly caCertificateRefs?: readonly ObjectReference[] | undefined
  /** `AllowValidOnly` or `AllowInsecureFallback`. */
  readonly mode?: string | undefined
}

export type Gateway = ObjectOf<
  'Gateway',
  {
    readonly gatewayClassName: string
    readonly listeners: readonly GatewayListener[]
    readonly addresses?:
      | readonly { readonly type?: string | undefined; readonly value?: string | undefined }[]
      | undefined
    readonly infrastructure?:
      | {
          readonly labels?: Readonly<Record<string, string>> | undefined
          readonly annotations?: Readonly<Record<string, string>> | undefined
          readonly parametersRef?: Omit<ParametersRef, 'namespace'> | undefined
        }
      | undefined
    readonly tls?:
      | {
          /** Client certificate of the gateway towards backends. */
          readonly backend?: { readonly clientCertificateRef?: ObjectReference | undefined } | undefined
          /** Validation of certificates of clients. */
          readonly frontend?:
            | {
                readonly default?: { readonly validation?: FrontendValidation | undefined } | undefined
                readonly perPort?:
                  | readonly {
                      readonly port: number
                      readonly tls: { readonly validation?: FrontendValidation | undefined }
                    }[]
                  | undefined
              }
            | undefined
        }
      | undefined
    readonly allowedListeners?: unknown
  },
  GatewayStatus
>

export type GatewayStatus = {
  readonly addresses?: readonly { readonly type?: string | undefined; readonly value: string }[] | undefined
  readonly conditions?: readonly Condition[] | undefined
  readonly listeners?: readonly ListenerStatus[] | undefined
  readonly attachedListenerSets?: number | undefined
}

export type ListenerStatus = {
  readonly name: string
  readonly supportedKinds: readonly { readonly group: string; readonly kind: string }[]
  readonly attachedRoutes: number
  readonly conditions: readonly Condition[]
}

export type ParentReference = {
  readonly group?: string | undefined
  readonly kind?: string | undefined
  readonly namespace?: string | undefined
  readonly name: string
  readonly sectionName?: string | undefined
  readonly port?: number | undefined
}

export type RouteStatus = {
  readonly parents: readonly {
    readonly parentRef: ParentReference
    readonly controllerName: string
    readonly conditions: readonly Condition[]
  }[]
}

export type BackendReference = ObjectReference & {
  readonly port?: number | undefined
  readonly weight?: number | undefined
}

/** `type` is `Exact` or `RegularExpression`. */
export type ValueMatch = {
  readonly name: string
  readonly type?: string | undefined
  readonly value: string
}

export type HttpHeaderFilter = {
  readonly set?: readonly { readonly name: string; readonly value: string }[] | undefined
  readonly add?: readonly { readonly name: string; readonly value: string }[] | undefined
  readonly remove?: readonly string[] | undefined
}

export type PathModifier = {
  /** `ReplaceFullPath` or `ReplacePrefixMatch`. */
  readonly type: string
  readonly replaceFullPath?: string | undefined
  readonly replacePrefixMatch?: string | undefined
}

/** A filter of an HTTPRoute or GRPCRoute; `type` names the field that is set. */
export type RouteFilter = {
  readonly type: string
  readonly requestHeaderModifier?: HttpHeaderFilter | undefined
  readonly responseHeaderModifier?: HttpHeaderFilter | undefined
  readonly requestMirror?:
    | {
        readonly backendRef: BackendReference
        readonly percent?: number | undefined
        readonly fraction?:
          | { readonly numerator: number; readonly denominator?: number | undefined }
          | undefined
      }
    | undefined
  readonly requestRedirect?:
    | {
        readonly scheme?: string | undefined
        readonly hostname?: string | undefined
        readonly path?: PathModifier | undefined
        readonly port?: number | undefined
        readonly statusCode?: number | undefined
      }
    | undefined
  readonly urlRewrite?:
    | { readonly hostname?: string | undefined; readonly path?: PathModifier | undefined }
    | undefined
  readonly cors?:
    | {
        readonly allowOrigins?: readonly string[] | undefined
        readonly allowMethods?: readonly string[] | undefined
        readonly allowHeaders?: readonly string[] | undefined
        readonly exposeHeaders?: readonly string[] | undefined
        readonly allowCredentials?: boolean | undefined
        /** In seconds. */
        readonly maxAge?: number | undefined
      }
    | undefined
  readonly extensionRef?: { readonly group: string; readonly kind: string; readonly name: string } | undefined
}

export type RouteBackendReference = BackendReference & {
  readonly filters?: readonly RouteFilter[] | undefined
}

export type HttpRouteRule = {
  readonly name?: string | undefined
  readonly matches?: readonly HttpRouteMatch[] | undefined
  readonly filters?: readonly RouteFilter[] | undefined
  readonly backendRefs?: readonly RouteBackendReference[] | undefined
  readonly timeouts?:
    | { readonly request?: string | undefined; readonly backendRequest?: string | undefined }
    | undefined
  /** Experimental channel. */
  readonly retry?:
    | {
        readonly codes?: readonly number[] | undefined
        readonly attempts?: number | undefined
        readonly backoff?: string | undefined
      }
    | undefined
  readonly sessionPersistence?: unknown
}

export type HttpRouteMatch = {
  readonly path?: { readonly type?: string | undefined; readonly value?: string | undefined } | undefined
  readonly headers?: readonly ValueMatch[] | undefined
  readonly queryParams?: readonly ValueMatch[] | undefined
  readonly method?: string | undefined
}

type CommonRouteSpec = {
  readonly parentRefs?: readonly ParentReference[] | undefined
  readonly hostnames?: readonly string[] | undefined
}

export type HTTPRoute = ObjectOf<
  'HTTPRoute',
  CommonRouteSpec & { readonly rules?: readonly HttpRouteRule[] | undefined },
  RouteStatus
>

export type GrpcRouteRule = {
  readonly name?: string | undefined
  readonly matches?:
    | readonly {
        readonly method?:
          | {
              readonly type?: string | undefined
              readonly service?: string | undefined
              readonly method?: string | undefined
            }
          | undefined
        readonly headers?: readonly ValueMatch[] | undefined
      }[]
    | undefined
  readonly filters?: readonly RouteFilter[] | undefined
  readonly backendRefs?: readonly RouteBackendReference[] | undefined
  readonly sessionPersistence?: unknown
}

export type GRPCRoute = ObjectOf<
  'GRPCRoute',
  CommonRouteSpec & { readonly rules?: readonly GrpcRouteRule[] | undefined },
  RouteStatus
>

type ConnectionRouteRule = {
  readonly name?: string | undefined
  readonly backendRefs?: readonly BackendReference[] | undefined
}

export type TLSRoute = ObjectOf<
  'TLSRoute',
  CommonRouteSpec & { readonly rules: readonly ConnectionRouteRule[] },
  RouteStatus
>

export type TCPRoute = ObjectOf<
  'TCPRoute',
  {
    readonly parentRefs?: readonly ParentReference[] | undefined
    readonly rules: readonly ConnectionRouteRule[]
  },
  RouteStatus
>

export type ReferenceGrant = ObjectOf<
  'ReferenceGrant',
  {
    readonly from: readonly { readonly group: string; readonly kind: string; readonly namespace: string }[]
    readonly to: readonly {
      readonly group: string
      readonly kind: string
      readonly name?: string | undefined
    }[]
  }
>

export type BackendTLSPolicy = ObjectOf<
  'BackendTLSPolicy',
  {
    readonly targetRefs: readonly {
      readonly group: string
      readonly kind: string
      readonly name: string
      readonly sectionName?: string | undefined
    }[]
    readonly validation: {
      readonly caCertificateRefs?: readonly ObjectReference[] | undefined
      readonly wellKnownCACertificates?: string | undefined
      readonly hostname: string
      readonly subjectAltNames?:
        | readonly {
            readonly type: string
            readonly hostname?: string | undefined
            readonly uri?: string | undefined
          }[]
        | undefined
    }
    readonly options?: Readonly<Record<string, string>> | undefined
  },
  PolicyStatus
>

export type PolicyStatus = {
  readonly ancestors: readonly {
    readonly ancestorRef: ParentReference
    readonly controllerName: string
    readonly conditions: readonly Condition[]
  }[]
}
