import type { Path } from '../../../../schema/path.ts'
import type { GatewayPolicySpec } from '../../../own-kinds/gateway-policy/gateway-policy.ts'
import type { BackendTraffic, RoutePolicies } from '../../plan.ts'
import { type FieldKind, fieldOf } from './field.ts'

type Traffic = NonNullable<GatewayPolicySpec['traffic']>

/** Fields of `traffic` without references, of which the most specific applies. */
export const trafficFields: readonly FieldKind[] = [
  trafficField(['cors'], ({ cors }) => cors && { cors }),
  trafficField(
    ['headerModifiers', 'request'],
    ({ headerModifiers }) => headerModifiers?.request && { requestHeaderModifier: headerModifiers.request },
  ),
  trafficField(
    ['headerModifiers', 'response'],
    ({ headerModifiers }) =>
      headerModifiers?.response && { responseHeaderModifier: headerModifiers.response },
  ),
  trafficField(['timeouts'], ({ timeouts }) => timeouts && { timeout: timeoutOf(timeouts) }, {
    rename: renameTimeout,
  }),
  // Models and MCP servers have retries of their own.
  trafficField(['retry'], ({ retry }) => retry && { retry }, { traffic: ['http'] }),
  trafficField(['csrf'], ({ csrf }) => csrf && { csrf }),
  trafficField(['delay'], ({ delay }) => delay && { delay }),
]

type Options = {
  readonly traffic?: readonly BackendTraffic[]
  readonly rename?: (rest: Path) => Path
}

function trafficField(
  path: Path,
  translate: (traffic: Traffic) => RoutePolicies | undefined,
  { traffic: kinds = ['http', 'llm', 'mcp'], rename }: Options = {},
): FieldKind {
  return {
    path: ['traffic', ...path].join('.'),
    traffic: kinds,
    levels: 'mostSpecific',
    translate({ traffic }) {
      const policies = traffic && translate(traffic)
      return (
        policies && fieldOf(policies, { place: Object.keys(policies), path: ['traffic', ...path], rename })
      )
    },
  }
}

const timeoutNames: Readonly<Record<string, string>> = {
  requestTimeout: 'request',
  backendRequestTimeout: 'backendRequest',
}

function timeoutOf({ request, backendRequest }: NonNullable<Traffic['timeouts']>) {
  return {
    ...(request !== undefined && { requestTimeout: request }),
    ...(backendRequest !== undefined && { backendRequestTimeout: backendRequest }),
  }
}

function renameTimeout(rest: Path): Path {
  return rest.map((step) => timeoutNames[step] ?? step)
}
