import type { Config } from '../../config/schema.ts'
import type { ObjectKey } from '../objects/meta.ts'
import type { ObjectSet } from '../objects/object-set.ts'
import type { GatewayParametersSpec } from '../own-kinds/gateway-parameters.ts'
import type { ObjectStatus } from './status/object-status.ts'

/** Name of the controller in GatewayClasses. */
export const controllerName = 'tollgate.dev/controller'

/** A Gateway as a configuration of its proxies. */
export type GatewayTranslation = {
  readonly config: Config
  /** Parameters of the class and the Gateway, merged; undefined if a reference to parameters is broken. */
  readonly parameters: GatewayParametersSpec | undefined
}

export type Translation = {
  /** By key of the Gateway; without Gateways of other controllers. */
  readonly gateways: ReadonlyMap<ObjectKey, GatewayTranslation>
  /** Sorted by kind and key. `Programmed` of Gateways and their listeners is added by the controller. */
  readonly statuses: readonly ObjectStatus[]
}

/**
 * Translates objects of a cluster into configurations and statuses: pure, deterministic, without clock and
 * I/O. Unchanged objects keep their nodes in the Config of the previous call, so that its users find changes
 * by identity.
 */
export type Translate = (objects: ObjectSet) => Translation
