import { enumeration, type Infer, list, name, object, optional } from '../../../schema/dsl.ts'
import type { PolicyStatus } from '../../objects/gateway-api.ts'
import { gatewayApiGroup } from '../../objects/kinds.ts'
import type { ObjectOf } from '../../objects/meta.ts'
import { backendSchema } from './backend.ts'
import { frontendSchema } from './frontend.ts'
import { trafficSchema } from './traffic.ts'

const maxTargets = 16

const targetRef = object(
  {
    group: enumeration([gatewayApiGroup], { doc: 'Group of the target.' }),
    kind: enumeration(['Gateway', 'HTTPRoute', 'GRPCRoute'], { doc: 'Kind of the target.' }),
    name: name({ doc: 'Name of the target, in the namespace of the policy.' }),
    sectionName: optional(
      name({ doc: 'Listener of the Gateway or rule of the route.', default: 'the whole target' }),
    ),
  },
  { doc: 'Target of the policy.' },
)

/** `spec` of a GatewayPolicy. */
export const gatewayPolicySpec = object(
  {
    targetRefs: list(targetRef, { doc: 'Targets of the policy.' }, { min: 1, max: maxTargets }),
    frontend: optional(frontendSchema),
    traffic: optional(trafficSchema),
    backend: optional(backendSchema),
  },
  { doc: 'Policies of Gateways, their listeners, routes and their rules.' },
)

export type TargetRef = Infer<typeof targetRef>
export type GatewayPolicySpec = Infer<typeof gatewayPolicySpec>
export type GatewayPolicy = ObjectOf<'GatewayPolicy', GatewayPolicySpec, PolicyStatus>
