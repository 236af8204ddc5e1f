import type { JsonObject } from '../../lib/json/json.ts'
import type { Gateway } from '../objects/gateway-api.ts'
import { apiVersionOf, gatewayApiGroup } from '../objects/kinds.ts'
import type { GatewayParametersSpec } from '../own-kinds/gateway-parameters.ts'
import { type DeployedKind, deployedKinds } from './deployed-kinds.ts'
import {
  authorityName,
  gatewayClassLabel,
  gatewayNameLabel,
  labelValue,
  proxyName,
  sessionSecretName,
} from './names.ts'
import { podTemplate } from './pod-template.ts'
import type { DeploySettings, RenderInput } from './render-input.ts'
import { autoscalerSpec, budgetSpec } from './scaling.ts'
import { applyPatch } from './strategic-merge.ts'

/** An object of a proxy, as it is applied. */
export type DeployedObject = {
  readonly apiVersion: string
  readonly kind: DeployedKind
  readonly metadata: DeployedMetadata
  readonly [field: string]: unknown
}

export type DeployedMetadata = {
  readonly name: string
  readonly namespace: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly ownerReferences: readonly {
    readonly apiVersion: string
    readonly kind: string
    readonly name: string
    readonly uid: string
    readonly controller: boolean
  }[]
}

/** Ports of the proxies themselves. */
const ownPorts: ReadonlySet<number> = new Set([15_000, 15_012, 15_020, 15_021])

/**
 * Renders the objects of the proxies of a Gateway: pure and deterministic. Autoscaler and budget exist only
 * if the parameters contain them; a Gateway without usable port has no Service.
 */
export function render(input: RenderInput): DeployedObject[] {
  const { gateway, parameters, settings, sessionKey } = input
  const { overlays = {} } = parameters
  const name = proxyName(gateway)
  const object = (kind: DeployedKind, fields: JsonObject, overlay?: Overlay, objectName = name) =>
    withOverlay(
      {
        apiVersion: apiVersionOf(deployedKinds[kind]),
        kind,
        metadata: metadataOf(gateway, objectName, settings),
        ...fields,
      },
      overlay,
    )
  const service = serviceSpec(gateway, parameters)
  const autoscaler = autoscalerSpec(parameters, name)
  const budget = budgetSpec(parameters, selectorOf(gateway))
  const key = Buffer.from(sessionKey).toString('base64')
  return [
    object('ServiceAccount', { automountServiceAccountToken: false }, overlays.serviceAccount),
    object('Secret', { type: 'Opaque', data: { key } }, undefined, sessionSecretName(gateway)),
    object('ConfigMap', { data: { 'ca.crt': settings.caBundle } }, undefined, authorityName(gateway)),
    ...(service === undefined
      ? []
      : [withServiceMetadata(object('Service', { spec: service }, overlays.service), parameters)]),
    object('Deployment', { spec: deploymentSpec(input) }, overlays.deployment),
    ...(autoscaler === undefined
      ? []
      : [object('HorizontalPodAutoscaler', { spec: autoscaler }, overlays.horizontalPodAutoscaler)]),
    ...(budget === undefined
      ? []
      : [object('PodDisruptionBudget', { spec: budget }, overlays.podDisruptionBudget)]),
  ]
}

/** Labels that select the Pods of a Gateway. */
function selectorOf(gateway: Gateway): Record<string, string> {
  return {
    'app.kubernetes.io/name': 'tollgate',
    'app.kubernetes.io/instance': proxyName(gateway),
    [gatewayNameLabel]: labelValue(gateway.metadata.name),
  }
}

type Overlay = {
  readonly metadata?: NonNullable<
    NonNullable<GatewayParametersSpec['overlays']>['serviceAccount']
  >['metadata']
  readonly spec?: Record<string, unknown> | undefined
}

function metadataOf(gateway: Gateway, name: string, { version }: DeploySettings): DeployedMetadata {
  const { metadata, spec } = gateway
  const annotations = withoutGroup(spec.infrastructure?.annotations)
  return {
    name,
    namespace: metadata.namespace ?? 'default',
    labels: {
      ...withoutGroup(spec.infrastructure?.labels),
      ...selectorOf(gateway),
      'app.kubernetes.io/managed-by': 'tollgate',
      'app.kubernetes.io/version': labelValue(version),
      [gatewayClassLabel]: labelValue(spec.gatewayClassName),
    },
    ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
    ownerReferences: [
      {
        apiVersion: gateway.apiVersion,
        kind: gateway.kind,
        name: metadata.name,
        uid: metadata.uid ?? '',
        controller: true,
      },
    ],
  }
}

/** Labels and annotations of the infrastructure, without those of the Gateway API. */
function withoutGroup(entries: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(entries).filter(([key]) => !key.startsWith(`${gatewayApiGroup}/`)))
}

function serviceSpec(gateway: Gateway, { service = {} }: GatewayParametersSpec): JsonObject | undefined {
  const { listeners, addresses = [] } = gateway.spec
  const ports = [...new Set(listeners.map(({ port }) => port))].filter((port) => !ownPorts.has(port))
  if (ports.length === 0) return undefined
  const type = service.type ?? 'LoadBalancer'
  const address = addresses.find(
    (one) => (one.type ?? 'IPAddress') === 'IPAddress' && one.value !== undefined,
  )
  const { loadBalancerClass, externalTrafficPolicy } = service
  const isBalanced = type === 'LoadBalancer'
  return {
    type,
    selector: selectorOf(gateway),
    ports: ports.map((port) => ({ name: `port-${port}`, port, protocol: 'TCP', targetPort: port })),
    ...(isBalanced && address?.value !== undefined ? { loadBalancerIP: address.value } : {}),
    ...(isBalanced && loadBalancerClass !== undefined ? { loadBalancerClass } : {}),
    ...(externalTrafficPolicy !== undefined && type !== 'ClusterIP' ? { externalTrafficPolicy } : {}),
  }
}

function withServiceMetadata(object: DeployedObject, { service }: GatewayParametersSpec): DeployedObject {
  return withOverlayMetadata(object, { labels: service?.labels, annotations: service?.annotations })
}

function deploymentSpec(input: RenderInput): JsonObject {
  const { gateway, parameters, settings } = input
  const { replicas, horizontalPodAutoscaler, overlays = {} } = parameters
  const isScaled = horizontalPodAutoscaler !== undefined
  const { labels, annotations = {} } = metadataOf(gateway, '', settings)
  // A new version alone changes the image, which starts a roll-out; the label would be another reason.
  const { 'app.kubernetes.io/version': _, ...podLabels } = labels
  const template = podTemplate(input, { labels: podLabels, annotations })
  return {
    ...(isScaled || replicas === undefined ? {} : { replicas }),
    revisionHistoryLimit: 3,
    selector: { matchLabels: selectorOf(gateway) },
    // A proxy ends only after another one is ready with its configuration.
    strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
    template: withSelected(applyPatch(template, (overlays.podTemplate ?? {}) as JsonObject), gateway),
  }
}

/** The selector is immutable: an overlay cannot change the labels that it selects. */
function withSelected(template: JsonObject, gateway: Gateway): JsonObject {
  return applyPatch(template, { metadata: { labels: selectorOf(gateway) } })
}

function withOverlay(object: DeployedObject, overlay: Overlay | undefined): DeployedObject {
  if (overlay === undefined) return object
  const spec = object['spec'] as JsonObject | undefined
  const patched =
    overlay.spec === undefined || spec === undefined ? spec : applyPatch(spec, overlay.spec as JsonObject)
  const changed = patched === undefined ? object : { ...object, spec: patched }
  return withOverlayMetadata(changed, overlay.metadata ?? {})
}

/** The labels that identify an object cannot be changed. */
function withOverlayMetadata(
  object: DeployedObject,
  {
    labels,
    annotations,
  }: {
    labels?: Record<string, string> | undefined
    annotations?: Record<string, string> | undefined
  },
): DeployedObject {
  const { metadata } = object
  return {
    ...object,
    metadata: {
      ...metadata,
      labels: { ...metadata.labels, ...labels, ...identityLabels(metadata.labels) },
      ...(annotations === undefined ? {} : { annotations: { ...metadata.annotations, ...annotations } }),
    },
  }
}

function identityLabels(labels: Readonly<Record<string, string>>): Record<string, string> {
  const identity = ['app.kubernetes.io/name', 'app.kubernetes.io/instance', gatewayNameLabel]
  return Object.fromEntries(Object.entries(labels).filter(([key]) => identity.includes(key)))
}
