import { type Infer, object } from '../../schema/dsl.ts'
import type { Condition } from '../objects/gateway-api.ts'
import type { ObjectOf } from '../objects/meta.ts'

/** `spec` of a GatewayBackend. */
export const gatewayBackendSpec = object(
  {},
  { doc: 'A destination that is not a Service: models, MCP servers, external hosts.' },
)

export type GatewayBackendSpec = Infer<typeof gatewayBackendSpec>
export type GatewayBackend = ObjectOf<
  'GatewayBackend',
  GatewayBackendSpec,
  { readonly conditions?: readonly Condition[] | undefined }
>
