import type { ObjectKey } from '../../objects/meta.ts'
import type { ObjectSet } from '../../objects/object-set.ts'
import type { References } from '../backends/references.ts'
import type { GatewayPlan, RoutesConfig, TcpRoutesConfig } from '../plan.ts'
import type { PolicyIndex } from '../policies/policies.ts'
import type { ObjectStatus } from '../status/object-status.ts'

export type RoutesInput = {
  readonly objects: ObjectSet
  readonly references: References
  readonly plans: readonly GatewayPlan[]
  readonly policies: PolicyIndex
}

/** The routes of a Gateway. The same arrays and set for the same entries. */
export type GatewayRoutes = {
  readonly routes: RoutesConfig
  readonly tcpRoutes: TcpRoutesConfig
  /** Names of the backends that the routes use, with those of their policies. */
  readonly backends: ReadonlySet<string>
}

export type RoutesTranslation = {
  readonly gateways: ReadonlyMap<ObjectKey, GatewayRoutes>
  readonly statuses: readonly ObjectStatus[]
  /** Accepted routes by `<Gateway>/<listener>`. */
  readonly attachedRoutes: ReadonlyMap<string, number>
}
