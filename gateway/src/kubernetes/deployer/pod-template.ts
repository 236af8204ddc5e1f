import { hash } from 'node:crypto'
import { milliseconds } from '../../lib/duration.ts'
import type { JsonObject, JsonValue } from '../../lib/json/json.ts'
import { keyOf } from '../objects/meta.ts'
import type { GatewayParametersSpec } from '../own-kinds/gateway-parameters.ts'
import { tokenAudience } from '../stream/token-audience.ts'
import { imageOf } from './image.ts'
import { authorityName, proxyName, sessionSecretName } from './names.ts'
import { defaultShutdown, proxyContainerName } from './parameters.ts'
import { containerSecurity, podSecurity } from './pod-security.ts'
import type { RenderInput } from './render-input.ts'

type PodMetadata = {
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}

const stateDirectory = '/var/lib/tollgate'
const controllerDirectory = '/run/tollgate'
const tokenSeconds = 3_600
const metricsPort = 15_020
const readinessPort = 15_021
/** For the log lines and reports of aborted requests. */
const shutdownReserveMs = 5_000
const defaultRequests = { cpu: '100m', memory: '128Mi' }

/** The template of the Pods of a Gateway, independent of listeners and routes, which never restart Pods. */
export function podTemplate(input: RenderInput, { labels, annotations }: PodMetadata): JsonObject {
  const { gateway, parameters, sessionKey } = input
  return {
    metadata: {
      labels: { ...labels },
      annotations: { ...annotations, 'checksum/session-key': hash('sha256', sessionKey, 'hex').slice(0, 16) },
    },
    spec: {
      serviceAccountName: proxyName(gateway),
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: shutdownOf(parameters).maxSeconds,
      securityContext: {
        ...podSecurity,
        sysctls: [{ name: 'net.ipv4.ip_unprivileged_port_start', value: '0' }],
      },
      containers: [proxyContainer(input)],
      volumes: volumesOf(input),
    },
  }
}

function proxyContainer({ gateway, parameters, settings }: RenderInput): JsonObject {
  const { image } = parameters
  const shutdown = shutdownOf(parameters)
  const ready = { httpGet: { path: '/healthz/ready', port: readinessPort } }
  return {
    name: proxyContainerName,
    image: imageOf(settings.image, image),
    ...(image?.pullPolicy === undefined ? {} : { imagePullPolicy: image.pullPolicy }),
    args: ['proxy'],
    env: environment(
      [
        { name: 'GATEWAY', value: keyOf(gateway) },
        { name: 'CONTROLLER_URL', value: settings.controllerUrl },
        { name: 'CONTROLLER_CA_FILE', value: `${controllerDirectory}/ca.crt` },
        { name: 'TOKEN_FILE', value: `${controllerDirectory}/token` },
        { name: 'STATE_DIR', value: stateDirectory },
        // New connections arrive until all load balancers have removed the Pod.
        { name: 'DRAIN_DELAY', value: shutdown.min },
        { name: 'DRAIN_DEADLINE', value: shutdown.deadline },
        {
          name: 'SESSION_KEY',
          valueFrom: { secretKeyRef: { name: sessionSecretName(gateway), key: 'key' } },
        },
        fieldVariable('POD_NAME', 'metadata.name'),
        fieldVariable('POD_NAMESPACE', 'metadata.namespace'),
        fieldVariable('NODE_NAME', 'spec.nodeName'),
      ],
      parameters,
    ),
    ports: [
      { name: 'metrics', containerPort: metricsPort, protocol: 'TCP' },
      { name: 'readiness', containerPort: readinessPort, protocol: 'TCP' },
    ],
    resources: resourcesOf(parameters),
    // Ready with the first complete configuration, from the controller or the persisted copy.
    startupProbe: { ...ready, periodSeconds: 1, failureThreshold: 600 },
    readinessProbe: { ...ready, periodSeconds: 5, timeoutSeconds: 2, failureThreshold: 2 },
    securityContext: containerSecurity,
    volumeMounts: [
      { mountPath: stateDirectory, name: 'state' },
      { mountPath: '/tmp', name: 'tmp' },
      { mountPath: controllerDirectory, name: 'controller', readOnly: true },
    ],
  }
}

/** Quantities as text, the form that the API server returns. */
function resourcesOf({ resources }: GatewayParametersSpec): JsonObject {
  const texts = (quantities: Record<string, string | number>): JsonObject =>
    Object.fromEntries(Object.entries(quantities).map(([name, quantity]) => [name, String(quantity)]))
  return {
    requests: texts({ ...defaultRequests, ...resources?.requests }),
    ...(resources?.limits === undefined ? {} : { limits: texts(resources.limits) }),
  }
}

function volumesOf({ gateway }: RenderInput): JsonValue[] {
  const token = { path: 'token', audience: tokenAudience, expirationSeconds: tokenSeconds }
  const authority = { name: authorityName(gateway), items: [{ key: 'ca.crt', path: 'ca.crt' }] }
  return [
    { name: 'state', emptyDir: {} },
    { name: 'tmp', emptyDir: {} },
    {
      name: 'controller',
      projected: { sources: [{ serviceAccountToken: token }, { configMap: authority }] },
    },
  ]
}

type Variable = NonNullable<GatewayParametersSpec['env']>[number]

function fieldVariable(name: string, fieldPath: string): JsonObject {
  return { name, valueFrom: { fieldRef: { fieldPath } } }
}

/** Generated variables, replaced by those of the parameters with the same name, then the others. */
function environment(generated: readonly JsonObject[], { env = [] }: GatewayParametersSpec): JsonValue[] {
  const given = new Map(env.map((variable): [JsonValue, JsonObject] => [variable.name, variableOf(variable)]))
  const replaced = generated.filter(({ name }) => name === undefined || !given.has(name))
  return [...replaced, ...given.values()]
}

function variableOf({ name, value, valueFrom }: Variable): JsonObject {
  if (valueFrom === undefined) return { name, value: value ?? '' }
  return { name, valueFrom: JSON.parse(JSON.stringify(valueFrom)) as JsonObject }
}

/** `deadline` is the time for requests after `min`, up to a moment before the process is killed. */
function shutdownOf({ shutdown }: GatewayParametersSpec) {
  const { min = defaultShutdown.min, max = defaultShutdown.max } = shutdown ?? {}
  const maxMs = milliseconds(max) ?? 0
  const deadlineMs = maxMs - (milliseconds(min) ?? 0) - shutdownReserveMs
  return {
    min,
    deadline: `${Math.max(deadlineMs, 0)}ms`,
    // Whole seconds, as Kubernetes requires.
    maxSeconds: Math.ceil(maxMs / 1_000),
  }
}
