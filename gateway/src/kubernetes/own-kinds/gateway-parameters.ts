import { type Infer, list, name, object, optional, string } from '../../schema/dsl.ts'
import type { Condition } from '../objects/gateway-api.ts'
import type { ObjectOf } from '../objects/meta.ts'

const environmentVariable = object(
  {
    name: name({ doc: 'Name.', example: 'GUARDRAIL_WEBHOOK_MAX_CONNECTIONS' }),
    value: optional(string({ doc: 'Value, a string.', example: '200' })),
  },
  { doc: 'Environment variable of the proxies.' },
)

/** `spec` of a GatewayParameters. */
export const gatewayParametersSpec = object(
  {
    env: optional(list(environmentVariable, { doc: 'Environment variables of the proxies.' }, { max: 256 })),
  },
  { doc: 'Deployment of the proxies of a Gateway or of all Gateways of a class.' },
)

export type GatewayParametersSpec = Infer<typeof gatewayParametersSpec>
export type GatewayParameters = ObjectOf<
  'GatewayParameters',
  GatewayParametersSpec,
  { readonly conditions?: readonly Condition[] | undefined }
>
