import type { Schema } from '../../../schema/dsl.ts'
import { gatewayBackendSpec } from '../../own-kinds/gateway-backend.ts'
import { gatewayParametersSpec } from '../../own-kinds/gateway-parameters.ts'
import { gatewayPolicySpec } from '../../own-kinds/gateway-policy/gateway-policy.ts'
import type { ReadKind } from '../kinds.ts'
import {
  configMapContent,
  endpointSliceContent,
  namespaceContent,
  secretContent,
  serviceSpec,
} from './core.ts'
import { backendTlsPolicySpec, gatewayClassSpec, gatewaySpec, referenceGrantSpec } from './gateways.ts'
import { grpcRouteSpec, httpRouteSpec, tcpRouteSpec, tlsRouteSpec } from './routes.ts'

/** Schema of `spec`, or of the whole object for kinds whose fields are beside `metadata`. */
export type KindSchema = { readonly of: 'spec' | 'object'; readonly schema: Schema }

export const kindSchemas: Readonly<Record<ReadKind, KindSchema>> = {
  GatewayClass: { of: 'spec', schema: gatewayClassSpec },
  Gateway: { of: 'spec', schema: gatewaySpec },
  HTTPRoute: { of: 'spec', schema: httpRouteSpec },
  GRPCRoute: { of: 'spec', schema: grpcRouteSpec },
  TLSRoute: { of: 'spec', schema: tlsRouteSpec },
  TCPRoute: { of: 'spec', schema: tcpRouteSpec },
  ReferenceGrant: { of: 'spec', schema: referenceGrantSpec },
  BackendTLSPolicy: { of: 'spec', schema: backendTlsPolicySpec },
  GatewayPolicy: { of: 'spec', schema: gatewayPolicySpec },
  GatewayParameters: { of: 'spec', schema: gatewayParametersSpec },
  GatewayBackend: { of: 'spec', schema: gatewayBackendSpec },
  Service: { of: 'spec', schema: serviceSpec },
  EndpointSlice: { of: 'object', schema: endpointSliceContent },
  Secret: { of: 'object', schema: secretContent },
  ConfigMap: { of: 'object', schema: configMapContent },
  Namespace: { of: 'object', schema: namespaceContent },
}
