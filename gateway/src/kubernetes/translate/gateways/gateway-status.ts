import { parameterMistakes } from '../../deployer/parameters.ts'
import type { GatewayClass } from '../../objects/gateway-api.ts'
import { gatewayApiGroup } from '../../objects/kinds.ts'
import { keyOf } from '../../objects/meta.ts'
import type { InvalidObject, ObjectSet } from '../../objects/object-set.ts'
import { controllerName } from '../controller-name.ts'
import { type GatewayPlan, listenerKey } from '../plan.ts'
import { conditionsOf, type Finding, satisfied, violated } from '../status/conditions.ts'
import { mistakesText } from '../status/invalid-objects.ts'
import type { ObjectStatus } from '../status/object-status.ts'
import type { GatewayFacts } from './gateway-facts.ts'
import type { ListenerFacts } from './listeners.ts'
import type { ParametersResolution } from './parameters.ts'
import { supportedFeatures } from './supported-features.ts'

/** Status of a GatewayClass of this controller. `SupportedVersion` is added by the controller. */
export function classStatus(entry: GatewayClass, parameters: ParametersResolution | undefined): ObjectStatus {
  const accepted =
    parameters?.kind === 'invalid'
      ? violated('Accepted', 'InvalidParameters', parameters.message)
      : satisfied('Accepted', 'Accepted')
  return classStatusOf(entry, accepted)
}

function classStatusOf(entry: Pick<GatewayClass, 'metadata'>, accepted: Finding): ObjectStatus {
  return {
    kind: 'GatewayClass',
    key: keyOf(entry),
    of: 'conditions',
    status: { conditions: conditionsOf(entry, [accepted]), supportedFeatures },
  }
}

/** Status of a Gateway without `Programmed` and addresses. */
export function gatewayStatus(
  { key, gateway }: GatewayPlan,
  { findings, listeners }: GatewayFacts,
  attachedRoutes: ReadonlyMap<string, number>,
): ObjectStatus {
  return {
    kind: 'Gateway',
    key,
    of: 'gateway',
    status: {
      conditions: conditionsOf(gateway, findings),
      listeners: listeners.map((listener) => ({
        name: listener.name,
        supportedKinds: supportedKinds(listener),
        attachedRoutes: attachedRoutes.get(listenerKey(key, listener.name)) ?? 0,
        conditions: conditionsOf(gateway, listener.findings),
      })),
    },
  }
}

/** None for a listener whose protocol is not settled, as the conformance suite demands. */
function supportedKinds({ kinds, findings }: ListenerFacts) {
  if (findings.some(({ reason }) => reason === 'ProtocolConflict')) return []
  return kinds.map((kind) => ({ group: gatewayApiGroup, kind }))
}

/** Status of a GatewayClass or Gateway that violates the schema of its kind. */
export function invalidStatus(object: InvalidObject): ObjectStatus {
  const finding = violated('Accepted', 'Invalid', mistakesText(object))
  if (object.kind === 'GatewayClass') return classStatusOf(object, finding)
  const conditions = conditionsOf(object, [finding])
  return { kind: 'Gateway', key: keyOf(object), of: 'gateway', status: { conditions } }
}

/** Statuses of GatewayParameters, whether a class or Gateway refers to them or not. */
export function parametersStatuses({ GatewayParameters, invalid }: ObjectSet): readonly ObjectStatus[] {
  const valid = [...GatewayParameters.values()].map((object) => ({
    object,
    mistakes: parameterMistakes(object.spec).join('; '),
  }))
  const broken = [...invalid.values()]
    .filter(({ kind }) => kind === 'GatewayParameters')
    .map((object) => ({ object, mistakes: mistakesText(object) }))
  return [...valid, ...broken].map(({ object, mistakes }) => {
    const accepted =
      mistakes === '' ? satisfied('Accepted', 'Accepted') : violated('Accepted', 'Invalid', mistakes)
    const conditions = conditionsOf(object, [accepted])
    return { kind: 'GatewayParameters', key: keyOf(object), of: 'conditions', status: { conditions } }
  })
}

/** The GatewayClasses of this controller that violate their schema. */
export function invalidClasses({ invalid }: ObjectSet): readonly InvalidObject[] {
  return [...invalid.values()].filter(
    (object) => object.kind === 'GatewayClass' && textAt(object, 'controllerName') === controllerName,
  )
}

/** The Gateways that violate their schema, of classes with the given names. */
export function invalidGateways(
  { invalid }: ObjectSet,
  classes: ReadonlyMap<string, unknown>,
): readonly InvalidObject[] {
  return [...invalid.values()].filter(
    (object) => object.kind === 'Gateway' && classes.has(textAt(object, 'gatewayClassName') ?? ''),
  )
}

function textAt({ spec }: InvalidObject, field: string): string | undefined {
  const value: unknown =
    typeof spec === 'object' && spec !== null && Object.hasOwn(spec, field)
      ? Reflect.get(spec, field)
      : undefined
  return typeof value === 'string' ? value : undefined
}
