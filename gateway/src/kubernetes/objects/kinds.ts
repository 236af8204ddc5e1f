/** Group of the gateway's own kinds. */
export const ownGroup = 'tollgate.dev'
export const gatewayApiGroup = 'gateway.networking.k8s.io'

/** A kind of the API: its place in URLs. */
export type ApiKind = {
  /** Empty for the core group. */
  readonly group: string
  readonly version: string
  /** Name in URLs. */
  readonly plural: string
  readonly isNamespaced: boolean
}

function gatewayApi(version: string, plural: string): ApiKind {
  return { group: gatewayApiGroup, version, plural, isNamespaced: true }
}

function own(plural: string): ApiKind {
  return { group: ownGroup, version: 'v1alpha1', plural, isNamespaced: true }
}

function core(plural: string): ApiKind {
  return { group: '', version: 'v1', plural, isNamespaced: true }
}

/** Kinds that a translation reads. */
export const readKinds = {
  GatewayClass: { ...gatewayApi('v1', 'gatewayclasses'), isNamespaced: false },
  Gateway: gatewayApi('v1', 'gateways'),
  HTTPRoute: gatewayApi('v1', 'httproutes'),
  GRPCRoute: gatewayApi('v1', 'grpcroutes'),
  TLSRoute: gatewayApi('v1', 'tlsroutes'),
  TCPRoute: gatewayApi('v1', 'tcproutes'),
  ReferenceGrant: gatewayApi('v1', 'referencegrants'),
  BackendTLSPolicy: gatewayApi('v1', 'backendtlspolicies'),
  GatewayPolicy: own('gatewaypolicies'),
  GatewayParameters: own('gatewayparameters'),
  GatewayBackend: own('gatewaybackends'),
  Service: core('services'),
  EndpointSlice: { group: 'discovery.k8s.io', version: 'v1', plural: 'endpointslices', isNamespaced: true },
  Secret: core('secrets'),
  ConfigMap: core('configmaps'),
  Namespace: { ...core('namespaces'), isNamespaced: false },
} as const satisfies Record<string, ApiKind>

export type ReadKind = keyof typeof readKinds

export const readKindNames = Object.keys(readKinds) as readonly ReadKind[]

/** `v1`, or `<group>/<version>`. */
export function apiVersionOf({ group, version }: Pick<ApiKind, 'group' | 'version'>): string {
  return group === '' ? version : `${group}/${version}`
}
