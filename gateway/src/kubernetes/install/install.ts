import { containerSecurity, podSecurity } from '../deployer/pod-security.ts'
import { apiVersionOf, readKinds } from '../objects/kinds.ts'
import { controllerName } from '../translate/controller-name.ts'
import { type AccessRule, clusterRules, namespacedRules, ownRules } from './access-rules.ts'

/** An object of the API, as it is applied. */
type Manifest = {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: object
  readonly [field: string]: unknown
}

const namespace = 'tollgate-system'
const name = 'tollgate-controller'
const rbac = 'rbac.authorization.k8s.io'
const labels = { 'app.kubernetes.io/name': 'tollgate', 'app.kubernetes.io/component': 'controller' }

/** Manifests of an installation by file name, in the order in which `kubectl apply -f FOLDER` reads them. */
export function installManifests(version: string): ReadonlyMap<string, readonly Manifest[]> {
  return new Map([
    ['00-namespace.yaml', [namespaceManifest()]],
    ['10-access.yaml', accessManifests()],
    ['20-controller.yaml', controllerManifests(version)],
    ['30-gateway-class.yaml', [gatewayClass()]],
  ])
}

function namespaceManifest(): Manifest {
  // The controller satisfies the strictest profile.
  const enforced = { 'pod-security.kubernetes.io/enforce': 'restricted' }
  return {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: namespace, labels: { ...labels, ...enforced } },
  }
}

function accessManifests(): Manifest[] {
  const subjects = [{ kind: 'ServiceAccount', name, namespace }]
  const clusterRole = (suffix: string, rules: readonly AccessRule[]) => ({
    ...rbacObject('ClusterRole', `${name}-${suffix}`),
    rules,
  })
  const clusterBinding = (suffix: string) => ({
    ...rbacObject('ClusterRoleBinding', `${name}-${suffix}`),
    roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: `${name}-${suffix}` },
    subjects,
  })
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace, labels } },
    clusterRole('cluster', clusterRules()),
    clusterBinding('cluster'),
    // May be bound in single namespaces, by RoleBindings.
    clusterRole('namespaced', namespacedRules()),
    clusterBinding('namespaced'),
    { ...rbacObject('Role', name, namespace), rules: ownRules() },
    {
      ...rbacObject('RoleBinding', name, namespace),
      roleRef: { apiGroup: rbac, kind: 'Role', name },
      subjects,
    },
  ]
}

function rbacObject(kind: string, objectName: string, place?: string) {
  return {
    apiVersion: `${rbac}/v1`,
    kind,
    metadata: { name: objectName, ...(place === undefined ? {} : { namespace: place }), labels },
  }
}

function controllerManifests(version: string): Manifest[] {
  const metadata = { name, namespace, labels }
  return [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata,
      spec: {
        selector: labels,
        ports: [{ name: 'stream', port: 15_012, protocol: 'TCP', targetPort: 'stream' }],
      },
    },
    { apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec: deploymentSpec(version) },
    {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata,
      spec: { minAvailable: 1, selector: { matchLabels: labels } },
    },
  ]
}

function deploymentSpec(version: string): object {
  const image = `tollgate:${version}`
  const spread = { labelSelector: { matchLabels: labels }, topologyKey: 'kubernetes.io/hostname' }
  return {
    // All replicas serve configurations, one of them deploys and writes statuses.
    replicas: 2,
    selector: { matchLabels: labels },
    strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
    template: {
      metadata: { labels },
      spec: {
        serviceAccountName: name,
        terminationGracePeriodSeconds: 30,
        securityContext: podSecurity,
        affinity: {
          podAntiAffinity: {
            preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, podAffinityTerm: spread }],
          },
        },
        containers: [controllerContainer(image)],
        volumes: [{ name: 'tmp', emptyDir: {} }],
      },
    },
  }
}

function controllerContainer(image: string): object {
  const fieldVariable = (variable: string, fieldPath: string) => ({
    name: variable,
    valueFrom: { fieldRef: { fieldPath } },
  })
  return {
    name: 'controller',
    image,
    imagePullPolicy: 'IfNotPresent',
    args: ['controller'],
    env: [
      fieldVariable('POD_NAME', 'metadata.name'),
      fieldVariable('POD_NAMESPACE', 'metadata.namespace'),
      { name: 'PROXY_IMAGE', value: image },
      { name: 'LOG_LEVEL', value: 'info' },
    ],
    ports: [
      { name: 'stream', containerPort: 15_012, protocol: 'TCP' },
      { name: 'metrics', containerPort: 15_020, protocol: 'TCP' },
      { name: 'readiness', containerPort: 15_021, protocol: 'TCP' },
    ],
    resources: { requests: { cpu: '100m', memory: '256Mi' } },
    readinessProbe: {
      httpGet: { path: '/healthz/ready', port: 15_021 },
      periodSeconds: 5,
      timeoutSeconds: 2,
    },
    securityContext: containerSecurity,
    volumeMounts: [{ mountPath: '/tmp', name: 'tmp' }],
  }
}

function gatewayClass(): Manifest {
  return {
    apiVersion: apiVersionOf(readKinds.GatewayClass),
    kind: 'GatewayClass',
    metadata: { name: 'tollgate', labels },
    spec: { controllerName },
  }
}
