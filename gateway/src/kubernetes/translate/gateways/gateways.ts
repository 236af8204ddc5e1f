import type { Config } from '../../../config/schema.ts'
import type { ObjectKey } from '../../objects/meta.ts'
import type { ObjectSet } from '../../objects/object-set.ts'
import type { GatewayParametersSpec } from '../../own-kinds/gateway-parameters.ts'
import type { References } from '../backends/references.ts'
import type { GatewayPlan } from '../plan.ts'
import type { ObjectStatus } from '../status/object-status.ts'

export type GatewaysInput = {
  readonly objects: ObjectSet
  readonly references: References
}

export type GatewaysPlan = {
  /** Gateways of accepted and refused classes of this controller, sorted by key. */
  readonly plans: readonly GatewayPlan[]
  /** `gateways` of the Config: the usable listeners. The same object for the same listeners. */
  gatewaysConfig(plan: GatewayPlan): NonNullable<Config['gateways']>
  /** Parameters of the class and the Gateway, merged; undefined if a reference to parameters is broken. */
  parametersOf(plan: GatewayPlan): GatewayParametersSpec | undefined
  /** Of GatewayClasses and Gateways; `attachedRoutes` has accepted routes by `<Gateway>/<listener>`. */
  statuses(attachedRoutes: ReadonlyMap<string, number>): readonly ObjectStatus[]
}

/** Creates the step that plans Gateways and their listeners. It caches the results of a call. */
export function createGatewayPlanner(): (input: GatewaysInput) => GatewaysPlan {
  return () => ({
    plans: [],
    gatewaysConfig: () => ({}),
    parametersOf: () => ({}),
    statuses: () => [],
  })
}

/** Key of a listener in `attachedRoutes`. */
export function listenerKey(gateway: ObjectKey, listener: string): string {
  return `${gateway}/${listener}`
}
