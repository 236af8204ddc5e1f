import { shareStructure } from '../../../config/live/structural-share.ts'
import type { Config } from '../../../config/schema.ts'
import type { Gateway, GatewayClass } from '../../objects/gateway-api.ts'
import { keyOf, type ObjectKey } from '../../objects/meta.ts'
import type { InvalidObject, ObjectSet } from '../../objects/object-set.ts'
import type { GatewayParametersSpec } from '../../own-kinds/gateway-parameters.ts'
import { createMemo } from '../backends/memo.ts'
import type { References } from '../backends/references.ts'
import { controllerName } from '../controller-name.ts'
import type { GatewayPlan, ListenerPlan } from '../plan.ts'
import { mistakesText } from '../status/invalid-objects.ts'
import type { ObjectStatus } from '../status/object-status.ts'
import { compileAllowedNamespaces } from './allowed-namespaces.ts'
import { createCertificateCache } from './certificates.ts'
import { type GatewayFacts, readGateway } from './gateway-facts.ts'
import {
  classStatus,
  gatewayStatus,
  invalidClasses,
  invalidGateways,
  invalidStatus,
  parametersStatuses,
} from './gateway-status.ts'
import type { ListenerFacts } from './listeners.ts'
import { type ParametersResolution, parametersOfClass } from './parameters.ts'

export type GatewaysInput = {
  readonly objects: ObjectSet
  readonly references: References
}

export type GatewaysPlan = {
  /** Gateways of the classes of this controller, sorted by key. */
  readonly plans: readonly GatewayPlan[]
  /** Gateways of these classes that violate their schema: nothing is known about their listeners. */
  readonly invalid: ReadonlySet<ObjectKey>
  /** `gateways` of the Config: the usable listeners. The same object for the same listeners. */
  gatewaysConfig(plan: GatewayPlan): NonNullable<Config['gateways']>
  /** Parameters of the class and the Gateway, merged; undefined if a reference to parameters is broken. */
  parametersOf(plan: GatewayPlan): GatewayParametersSpec | undefined
  /** Of GatewayClasses, Gateways and GatewayParameters; counts of accepted routes have `listenerKey`s. */
  statuses(attachedRoutes: ReadonlyMap<string, number>): readonly ObjectStatus[]
}

/** A plan with the data that it was created from. */
type PlannedGateway = { readonly plan: GatewayPlan; readonly facts: GatewayFacts }

/** Creates the step that plans Gateways and their listeners. It caches the results of a call. */
export function createGatewayPlanner(): (input: GatewaysInput) => GatewaysPlan {
  const certificatesOf = createCertificateCache()
  const memo = createMemo()
  let planned: ReadonlyMap<ObjectKey, PlannedGateway> = new Map()
  return ({ objects, references }) => {
    const certificates = certificatesOf(objects, references)
    const inputs = inputsOf(objects)
    const classes = ownClasses(objects)
    const brokenClasses = invalidClasses(objects)
    const parameters = new Map<string, ParametersResolution>([
      ...brokenClasses.map((entry) => [keyOf(entry), invalidParameters(entry)] as const),
      ...classes.map((entry) => [keyOf(entry), parametersOfClass(entry, objects)] as const),
    ])
    const brokenGateways = invalidGateways(objects, parameters)
    const next = new Map<ObjectKey, PlannedGateway>()
    for (const [key, gateway] of sorted(objects.Gateway)) {
      const classParameters = parameters.get(gateway.spec.gatewayClassName)
      if (classParameters === undefined) continue
      const facts = memo(gateway, 'facts', inputs, () =>
        readGateway({ gateway, classParameters, objects, certificates, memo }),
      )
      next.set(key, planGateway(key, gateway, facts, planned.get(key)))
    }
    planned = next
    const factsOf = (plan: GatewayPlan) => next.get(plan.key)?.facts
    return {
      plans: [...next.values()].map(({ plan }) => plan),
      invalid: new Set(brokenGateways.map(keyOf)),
      // Config has mutable types; nodes are never modified.
      gatewaysConfig: (plan) => (factsOf(plan)?.gateways ?? {}) as NonNullable<Config['gateways']>,
      parametersOf: (plan) => factsOf(plan)?.parameters,
      statuses: (attachedRoutes) => [
        ...classes.map((entry) => classStatus(entry, parameters.get(keyOf(entry)))),
        ...[...next.values()].map(({ plan, facts }) => gatewayStatus(plan, facts, attachedRoutes)),
        ...[...brokenClasses, ...brokenGateways].map(invalidStatus),
        ...parametersStatuses(objects),
      ],
    }
  }
}

/** The maps that Gateways depend on; those of kinds without changes are the maps of the previous snapshot. */
function inputsOf(objects: ObjectSet): readonly unknown[] {
  const { GatewayClass, GatewayParameters, Namespace, ReferenceGrant, Secret, ConfigMap, invalid } = objects
  return [GatewayClass, GatewayParameters, Namespace, ReferenceGrant, Secret, ConfigMap, invalid]
}

/** The parameters of a class that violates its schema are not known. */
function invalidParameters(entry: InvalidObject): ParametersResolution {
  return { kind: 'invalid', message: mistakesText(entry) }
}

/** The classes of this controller, sorted by name. */
function ownClasses({ GatewayClass }: ObjectSet): GatewayClass[] {
  return sorted(GatewayClass)
    .map(([, entry]) => entry)
    .filter(({ spec }) => spec.controllerName === controllerName)
}

function sorted<T>(objects: ReadonlyMap<ObjectKey, T>): [ObjectKey, T][] {
  return [...objects].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
}

/** Returns the previous plan if nothing but status and resource version has changed. */
function planGateway(
  key: ObjectKey,
  gateway: Gateway,
  read: GatewayFacts,
  previous: PlannedGateway | undefined,
): PlannedGateway {
  const facts = shareStructure(previous?.facts, read)
  if (previous !== undefined && facts === previous.facts && isSameGateway(gateway, previous.plan.gateway)) {
    return previous
  }
  const { clientCertificate } = facts
  return {
    facts,
    plan: {
      key,
      gateway,
      listeners: facts.listeners.map((listener) => planListener(key, listener)),
      clientCertificate,
    },
  }
}

function isSameGateway(one: Gateway, other: Gateway): boolean {
  if (one === other) return true
  const contentOf = ({
    spec,
    metadata: { uid, generation, creationTimestamp, labels, annotations },
  }: Gateway) => ({
    spec,
    metadata: { uid, generation, creationTimestamp, labels, annotations },
  })
  const before = contentOf(other)
  return shareStructure(before, contentOf(one)) === before
}

function planListener(gateway: ObjectKey, facts: ListenerFacts): ListenerPlan {
  const { name, port, hostname, protocol, isPassthrough, kinds, namespaces, config } = facts
  return {
    gateway,
    name,
    port,
    hostname,
    protocol,
    isPassthrough,
    kinds,
    allowsNamespace: compileAllowedNamespaces(namespaces),
    reference: config === undefined ? undefined : `${port}/${name}`,
  }
}
