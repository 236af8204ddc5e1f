import type { Condition, GatewayStatus, PolicyStatus, RouteStatus } from '../../objects/gateway-api.ts'
import type { ReadKind } from '../../objects/kinds.ts'
import type { ObjectKey } from '../../objects/meta.ts'

/** A condition without its time: times are set by the writer of the status, when a condition changes. */
export type ConditionState = Omit<Condition, 'lastTransitionTime'>

type WithoutTimes<T> = T extends Condition
  ? ConditionState
  : T extends readonly (infer Item)[]
    ? readonly WithoutTimes<Item>[]
    : T extends object
      ? { readonly [Field in keyof T]: WithoutTimes<T[Field]> }
      : T

/**
 * The status of an object, as far as this controller writes it. Entries of other controllers in `parents` and
 * `ancestors` are kept by the writer.
 */
export type ObjectStatus = {
  readonly kind: ReadKind
  readonly key: ObjectKey
} & (
  | { readonly of: 'gateway'; readonly status: WithoutTimes<GatewayStatus> }
  | { readonly of: 'route'; readonly status: WithoutTimes<RouteStatus> }
  | { readonly of: 'policy'; readonly status: WithoutTimes<PolicyStatus> }
  /** GatewayClass, GatewayBackend, GatewayParameters. */
  | {
      readonly of: 'conditions'
      readonly status: {
        readonly conditions: readonly ConditionState[]
        /** GatewayClass only; sorted by name. */
        readonly supportedFeatures?: readonly { readonly name: string }[] | undefined
      }
    }
)

/** Orders statuses by kind and key. */
export function compareStatuses(a: ObjectStatus, b: ObjectStatus): number {
  if (a.kind !== b.kind) return a.kind < b.kind ? -1 : 1
  return a.key === b.key ? 0 : a.key < b.key ? -1 : 1
}
