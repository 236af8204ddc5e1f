import type { Config } from '../../config/schema.ts'
import type { ObjectKey } from '../objects/meta.ts'
import type { ObjectSet } from '../objects/object-set.ts'
import type { GatewayParametersSpec } from '../own-kinds/gateway-parameters.ts'
import { createBackendTranslator } from './backends/backends.ts'
import { createMemo } from './backends/memo.ts'
import { createReferences } from './backends/references.ts'
import { createGatewayPlanner } from './gateways/gateways.ts'
import { createPolicyIndexer } from './policies/policies.ts'
import { createRouteTranslator } from './routes/routes.ts'
import { compareStatuses, type ObjectStatus } from './status/object-status.ts'

/** A Gateway as a configuration of its proxies. */
export type GatewayTranslation = {
  readonly config: Config
  /** Parameters of the class and the Gateway, merged; undefined if a reference to parameters is broken. */
  readonly parameters: GatewayParametersSpec | undefined
}

export type Translation = {
  /** By key of the Gateway; without Gateways of other controllers. */
  readonly gateways: ReadonlyMap<ObjectKey, GatewayTranslation>
  /** Gateways that violate their schema. Their proxies keep the previous Config. */
  readonly invalidGateways: ReadonlySet<ObjectKey>
  /** Sorted by kind and key. `Programmed` of Gateways and their listeners is added by the controller. */
  readonly statuses: readonly ObjectStatus[]
}

/**
 * Translates objects of a cluster into configurations and statuses: deterministic, without clock and I/O.
 * Unchanged objects have the same nodes in the Config as in the previous call, so that its users find changes
 * by identity.
 */
export type Translate = (objects: ObjectSet) => Translation

/** Creates a translator with empty caches. The caches change the time of a call, not its result. */
export function createTranslator(): Translate {
  const memo = createMemo()
  const planGateways = createGatewayPlanner()
  const indexPolicies = createPolicyIndexer()
  const translateRoutes = createRouteTranslator()
  const translateBackends = createBackendTranslator()
  let previous: ReadonlyMap<ObjectKey, GatewayTranslation> = new Map()
  return (objects) => {
    const references = createReferences(objects, memo)
    const gateways = planGateways({ objects, references })
    const { plans } = gateways
    const policies = indexPolicies({ objects, references, plans })
    const routes = translateRoutes({ objects, references, plans, policies })
    const used = new Map(
      [...routes.gateways].map(([key, gateway]) => [
        key,
        withNames(gateway.backends, policies.frontendOf(key)?.backends),
      ]),
    )
    const backends = translateBackends({ objects, references, plans, used })
    const translations = plans.map((plan): [ObjectKey, GatewayTranslation] => {
      const attached = routes.gateways.get(plan.key)
      const frontend = policies.frontendOf(plan.key)
      const config: Config = {
        ...(frontend && { frontendPolicies: frontend.policies }),
        gateways: gateways.gatewaysConfig(plan),
        routes: attached?.routes ?? noItems,
        tcpRoutes: attached?.tcpRoutes ?? noItems,
        backends: backends.backends.get(plan.key) ?? noItems,
      }
      return [plan.key, reuse(previous.get(plan.key), { config, parameters: gateways.parametersOf(plan) })]
    })
    previous = new Map(translations)
    const statuses = [
      ...gateways.statuses(routes.attachedRoutes),
      ...routes.statuses,
      ...backends.statuses,
      ...policies.statuses(),
    ]
    return { gateways: previous, invalidGateways: gateways.invalid, statuses: statuses.sort(compareStatuses) }
  }
}

const noItems: [] = []

function withNames(names: ReadonlySet<string>, others: readonly string[] = []): ReadonlySet<string> {
  return others.length === 0 ? names : new Set([...names, ...others])
}

/** The previous translation if all sections are the same nodes, with the previous Config where they are. */
function reuse(previous: GatewayTranslation | undefined, next: GatewayTranslation): GatewayTranslation {
  if (previous === undefined) return next
  const sections = ['frontendPolicies', 'gateways', 'routes', 'tcpRoutes', 'backends'] as const
  if (!sections.every((section) => previous.config[section] === next.config[section])) return next
  return previous.parameters === next.parameters ? previous : { ...next, config: previous.config }
}
