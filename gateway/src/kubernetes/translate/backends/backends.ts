import type { ObjectKey } from '../../objects/meta.ts'
import type { ObjectSet } from '../../objects/object-set.ts'
import type { BackendConfig, BackendsConfig, GatewayPlan } from '../plan.ts'
import type { ObjectStatus } from '../status/object-status.ts'
import { gatewayBackendPrefix } from './gateway-backends/translate-gateway-backend.ts'
import { placeholderPrefix, type References } from './references.ts'
import type { ServiceBackend } from './services.ts'
import { type BackendUsage, tlsPolicyStatuses } from './tls-policy-status.ts'

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
  let previous: ReadonlyMap<ObjectKey, BackendsConfig> = new Map()
  let failing: Placeholders = new Map()
  return ({ objects, references, plans, used }) => {
    const placeholders: Placeholders = new Map()
    const placeholder = (name: string): BackendConfig => {
      const entry = placeholders.get(name) ?? failing.get(name) ?? { name, endpoints: [] }
      placeholders.set(name, entry)
      return entry
    }
    const backends = new Map(
      plans.map((plan) => {
        const config = backendsConfig(used.get(plan.key) ?? [], plan, { references, placeholder })
        const before = previous.get(plan.key)
        return [plan.key, before !== undefined && isSame(before, config) ? before : config]
      }),
    )
    failing = placeholders
    previous = backends
    return { backends, statuses: backendStatuses({ objects, references, used }) }
  }
}

/** Backends that answer with 503, by name. */
type Placeholders = Map<string, BackendConfig>

type Context = { readonly references: References; readonly placeholder: (name: string) => BackendConfig }

function isSame(left: BackendsConfig, right: BackendsConfig): boolean {
  return left.length === right.length && left.every((entry, index) => entry === right[index])
}

/**
 * Creates the `backends` section of a Gateway: the named backends and those that they refer to, sorted by
 * name. Names without backend get one without endpoints, so that requests fail with 503.
 */
function backendsConfig(
  names: Iterable<string>,
  { clientCertificate }: GatewayPlan,
  context: Context,
): BackendsConfig {
  const sorted = [...new Set(names)].sort()
  return sorted.flatMap((name) => configOf(name, clientCertificate, context))
}

function configOf(
  name: string,
  pair: GatewayPlan['clientCertificate'],
  context: Context,
): readonly BackendConfig[] {
  const { references, placeholder } = context
  const { services, gatewayBackends } = references
  const key = keyOfGatewayBackend(name)
  if (key !== undefined) {
    const config = gatewayBackends.config(key, pair)
    return config.length === 0 ? [placeholder(name)] : config
  }
  const service = name.startsWith(placeholderPrefix) ? undefined : services.byName(name)
  return [service === undefined ? placeholder(name) : services.config(service, pair)]
}

/** The Services of a backend. */
function servicesOf(name: string, { services, gatewayBackends }: References): readonly ServiceBackend[] {
  const key = keyOfGatewayBackend(name)
  if (key !== undefined) return gatewayBackends.services(key)
  const service = services.byName(name)
  return service === undefined ? [] : [service]
}

function keyOfGatewayBackend(name: string): ObjectKey | undefined {
  return name.startsWith(gatewayBackendPrefix) ? name.slice(gatewayBackendPrefix.length) : undefined
}

/** Statuses of GatewayBackends, and of BackendTLSPolicies by the Gateways that use their Services. */
function backendStatuses({
  objects,
  references,
  used,
}: Omit<BackendsInput, 'plans'>): readonly ObjectStatus[] {
  const { gatewayBackends, tlsPolicies } = references
  const ofBackends = gatewayBackends.statuses()
  if (objects.BackendTLSPolicy.size === 0 && objects.invalid.size === 0) return ofBackends
  const usage: BackendUsage = new Map()
  for (const [gateway, names] of used) {
    for (const name of names) {
      for (const { key, port } of servicesOf(name, references)) {
        const gateways = usage.get(key) ?? new Map()
        const ports = gateways.get(gateway) ?? new Set()
        usage.set(key, gateways.set(gateway, ports.add(port.name ?? '')))
      }
    }
  }
  return [...ofBackends, ...tlsPolicyStatuses(objects, usage, tlsPolicies)]
}
