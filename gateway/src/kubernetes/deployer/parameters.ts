import { milliseconds } from '../../lib/duration.ts'
import { isJsonObject, type JsonObject } from '../../lib/json/json.ts'
import type { GatewayParametersSpec } from '../own-kinds/gateway-parameters.ts'
import { combinePatches, unknownDirectives } from './strategic-merge.ts'

/** Variables of the proxies that the controller sets. */
export const reservedVariables: readonly string[] = [
  'GATEWAY',
  'CONTROLLER_URL',
  'CONTROLLER_CA_FILE',
  'TOKEN_FILE',
  'STATE_DIR',
  'DRAIN_DELAY',
  'DRAIN_DEADLINE',
  'SESSION_KEY',
]

/** Name of the container of the gateway in the Pods. */
export const proxyContainerName = 'proxy'

/** The proxies refuse a longer delay. */
const longestDrainMs = 600_000

export const defaultShutdown = { min: '10s', max: '60s' }

/**
 * Merges the parameters of a class and of a Gateway. The Gateway's replace those of the class by field, and
 * variables and labels by name; autoscaler and budget are replaced as a whole, overlays are applied in
 * sequence.
 */
export function mergeParameters(
  ofClass: GatewayParametersSpec | undefined,
  ofGateway: GatewayParametersSpec | undefined,
): GatewayParametersSpec {
  if (ofClass === undefined || ofGateway === undefined) return ofGateway ?? ofClass ?? {}
  return {
    ...ofClass,
    ...defined(ofGateway),
    ...mergedField('env', mergeVariables(ofClass.env, ofGateway.env)),
    ...mergedField('image', mergeImage(ofClass.image, ofGateway.image)),
    ...mergedField('resources', mergeNested(ofClass.resources, ofGateway.resources)),
    ...mergedField('service', mergeNested(ofClass.service, ofGateway.service)),
    ...mergedField('shutdown', mergeNested(ofClass.shutdown, ofGateway.shutdown)),
    ...mergedField('overlays', mergeOverlays(ofClass.overlays, ofGateway.overlays)),
  }
}

/** Mistakes of parameters that the schema does not express; each names the field. */
export function parameterMistakes(spec: GatewayParametersSpec): string[] {
  return [
    ...variableMistakes(spec.env ?? []),
    ...shutdownMistakes(spec.shutdown),
    ...autoscalerMistakes(spec.horizontalPodAutoscaler),
    ...overlayMistakes(spec.overlays),
  ]
}

/** Mistakes of the parameters of a class and a Gateway together, which each of them may be without. */
export function mergedMistakes(spec: GatewayParametersSpec): string[] {
  const kinds = ['horizontalPodAutoscaler', 'podDisruptionBudget'] as const
  const withoutObject = kinds.filter(
    (kind) => spec.overlays?.[kind] !== undefined && spec[kind] === undefined,
  )
  return [
    ...parameterMistakes(spec),
    ...withoutObject.map((kind) => `overlays.${kind} must be used with ${kind}`),
  ]
}

type Overlays = NonNullable<GatewayParametersSpec['overlays']>

function variableMistakes(env: NonNullable<GatewayParametersSpec['env']>): string[] {
  const names = env.map(({ name }) => name)
  return names.flatMap((name, index) => {
    if (reservedVariables.includes(name)) {
      return [`env[${index}].name must not be ${name}: the controller sets this variable`]
    }
    if (/[=\0]/.test(name)) return [`env[${index}].name must not contain "="`]
    return names.indexOf(name) < index ? [`env[${index}].name must be unique: ${name} is set before`] : []
  })
}

function shutdownMistakes(shutdown: GatewayParametersSpec['shutdown']): string[] {
  const min = milliseconds(shutdown?.min ?? defaultShutdown.min) ?? 0
  const max = milliseconds(shutdown?.max ?? defaultShutdown.max) ?? 0
  if (min > longestDrainMs) return ['shutdown.min must be at most 10m']
  return min <= max ? [] : ['shutdown.min must be at most shutdown.max']
}

function autoscalerMistakes(autoscaler: GatewayParametersSpec['horizontalPodAutoscaler']): string[] {
  const { minReplicas = 1, maxReplicas = minReplicas } = autoscaler ?? {}
  return minReplicas <= maxReplicas
    ? []
    : ['horizontalPodAutoscaler.minReplicas must be at most horizontalPodAutoscaler.maxReplicas']
}

function overlayMistakes(overlays: Overlays = {}): string[] {
  const directives = unknownDirectives(overlays, 'overlays').map(
    (path) => `${path} is not supported: use $patch with the value delete or replace`,
  )
  const selector = overlays.deployment?.spec?.['selector']
  return [
    ...directives,
    ...(selector === undefined ? [] : ['overlays.deployment.spec.selector must not be set: it is immutable']),
    ...reservedInOverlays(overlays),
  ]
}

/** Variables in overlays of the Pod, whose containers are lists in free JSON. */
function reservedInOverlays({ deployment, podTemplate }: Overlays): string[] {
  const templates: [path: string, template: unknown][] = [
    ['overlays.podTemplate', podTemplate],
    ['overlays.deployment.spec.template', deployment?.spec?.['template']],
  ]
  return templates.flatMap(([path, template]) => {
    const containers = itemsAt(fieldOf(fieldOf(template, 'spec'), 'containers'))
    return containers.flatMap((container) =>
      fieldOf(container, 'name') === proxyContainerName
        ? itemsAt(fieldOf(container, 'env')).flatMap((variable) => {
            const name = fieldOf(variable, 'name')
            const isReserved = typeof name === 'string' && reservedVariables.includes(name)
            return isReserved ? [`${path} must not set ${name}: the controller sets this variable`] : []
          })
        : [],
    )
  })
}

function fieldOf(value: unknown, field: string): unknown {
  return isJsonObject(value) ? value[field] : undefined
}

function itemsAt(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function mergedField<Key extends string, Value>(key: Key, value: Value | undefined): { [K in Key]?: Value } {
  return value === undefined ? {} : ({ [key]: value } as { [K in Key]?: Value })
}

function defined<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, field]) => field !== undefined)) as T
}

function mergeVariables(
  ofClass: GatewayParametersSpec['env'],
  ofGateway: GatewayParametersSpec['env'],
): GatewayParametersSpec['env'] {
  if (ofClass === undefined || ofGateway === undefined) return ofGateway ?? ofClass
  return [...new Map([...ofClass, ...ofGateway].map((variable) => [variable.name, variable])).values()]
}

/** A tag replaces the digest of the class. */
function mergeImage(
  ofClass: GatewayParametersSpec['image'],
  ofGateway: GatewayParametersSpec['image'],
): GatewayParametersSpec['image'] {
  const merged = mergeNested(ofClass, ofGateway)
  if (merged === undefined || ofGateway?.tag === undefined || ofGateway.digest !== undefined) return merged
  const { digest: _, ...others } = merged
  return others
}

/** Merges by field; maps in the fields by key. */
function mergeNested<T extends object>(ofClass: T | undefined, ofGateway: T | undefined): T | undefined {
  if (ofClass === undefined || ofGateway === undefined) return ofGateway ?? ofClass
  const merged = new Map<string, unknown>(Object.entries(ofClass))
  for (const [key, value] of Object.entries(defined(ofGateway))) {
    const before = merged.get(key)
    merged.set(key, isMap(before) && isMap(value) ? { ...before, ...value } : value)
  }
  return Object.fromEntries(merged) as T
}

function isMap(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function mergeOverlays(ofClass: Overlays | undefined, ofGateway: Overlays | undefined): Overlays | undefined {
  if (ofClass === undefined || ofGateway === undefined) return ofGateway ?? ofClass
  // Each overlay is a patch of `metadata` and `spec`.
  return combinePatches(ofClass as JsonObject, ofGateway as JsonObject) as Overlays
}
