import type { GatewayBackend } from '../own-kinds/gateway-backend.ts'
import type { GatewayParameters } from '../own-kinds/gateway-parameters.ts'
import type { GatewayPolicy } from '../own-kinds/gateway-policy/gateway-policy.ts'
import type { ConfigMap, EndpointSlice, Namespace, Secret, Service } from './core.ts'
import type {
  BackendTLSPolicy,
  Gateway,
  GatewayClass,
  GRPCRoute,
  HTTPRoute,
  ReferenceGrant,
  TCPRoute,
  TLSRoute,
} from './gateway-api.ts'
import { type ReadKind, readKindNames } from './kinds.ts'
import type { ObjectKey, ObjectMeta } from './meta.ts'

type Objects = {
  GatewayClass: GatewayClass
  Gateway: Gateway
  HTTPRoute: HTTPRoute
  GRPCRoute: GRPCRoute
  TLSRoute: TLSRoute
  TCPRoute: TCPRoute
  ReferenceGrant: ReferenceGrant
  BackendTLSPolicy: BackendTLSPolicy
  GatewayPolicy: GatewayPolicy
  GatewayParameters: GatewayParameters
  GatewayBackend: GatewayBackend
  Service: Service
  EndpointSlice: EndpointSlice
  Secret: Secret
  ConfigMap: ConfigMap
  Namespace: Namespace
}

export type ReadObject = Objects[ReadKind]

/**
 * The objects of a cluster or of manifests, by kind and key. The order of a map has no meaning. An
 * object that violates the schema of its kind is in `invalid` and not in its map.
 */
export type ObjectSet = { readonly [Kind in ReadKind]: ReadonlyMap<ObjectKey, Objects[Kind]> } & {
  readonly invalid: ReadonlyMap<InvalidKey, InvalidObject>
}

/** `<kind>/<key>`. */
export type InvalidKey = string

/** An object that violates the schema of its kind. */
export type InvalidObject = {
  readonly kind: ReadKind
  readonly metadata: ObjectMeta
  /** One line each, with the path of the value. Values of secrets are omitted. */
  readonly mistakes: readonly string[]
  /** As written. It may name the controller: class of a Gateway, parents of a route, targets of a policy. */
  readonly spec?: unknown
}

export function emptyObjectSet(): ObjectSet {
  const maps = Object.fromEntries(readKindNames.map((kind) => [kind, new Map()]))
  // One map for each kind.
  return { ...(maps as unknown as Omit<ObjectSet, 'invalid'>), invalid: new Map() }
}
