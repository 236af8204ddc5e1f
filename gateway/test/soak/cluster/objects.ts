// Objects of the cluster campaign.

export const namespace = 'soak'
export const gatewayName = 'web'

const gatewayApi = 'gateway.networking.k8s.io/v1'
const ownApi = 'tollgate.dev/v1alpha1'

type Spec = Record<string, unknown>

export function object(apiVersion: string, kind: string, name: string, fields: Spec): object {
  return { apiVersion, kind, metadata: { name, namespace }, ...fields }
}

export const namespaceObject = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } }

export const gatewayClass = {
  apiVersion: gatewayApi,
  kind: 'GatewayClass',
  metadata: { name: 'tollgate' },
  spec: { controllerName: 'tollgate.dev/controller' },
}

export const gateway = object(gatewayApi, 'Gateway', gatewayName, {
  spec: {
    gatewayClassName: 'tollgate',
    listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }],
    infrastructure: {
      parametersRef: { group: 'tollgate.dev', kind: 'GatewayParameters', name: gatewayName },
    },
  },
})

export const parameters = object(ownApi, 'GatewayParameters', gatewayName, { spec: { replicas: 2 } })

/** A Deployment with its Service. */
export function application(name: string, image: string, port: number, replicas = 1): object[] {
  const labels = { app: name }
  const env = [{ name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }]
  const readinessProbe = { tcpSocket: { port }, periodSeconds: 1 }
  const containers = [{ name, image, env, ports: [{ containerPort: port }], readinessProbe }]
  const template = { metadata: { labels }, spec: { containers } }
  return [
    object('apps/v1', 'Deployment', name, {
      spec: { replicas, selector: { matchLabels: labels }, template },
    }),
    object('v1', 'Service', name, { spec: { selector: labels, ports: [{ port }] } }),
  ]
}

export function httpRoute(name: string, host: string, rule: Spec): object {
  return object(gatewayApi, 'HTTPRoute', name, {
    spec: { parentRefs: [{ name: gatewayName }], hostnames: [host], rules: [rule] },
  })
}

export const toEcho = { backendRefs: [{ name: 'echo', port: 3000 }] }

/** An LLM route whose requests a Service guards. */
export const guardedModel = [
  object(ownApi, 'GatewayBackend', 'model', {
    spec: { ai: { provider: { echo: {} } } },
  }),
  httpRoute('model', 'model.example', {
    backendRefs: [{ group: 'tollgate.dev', kind: 'GatewayBackend', name: 'model' }],
  }),
  object(ownApi, 'GatewayPolicy', 'guard', {
    spec: {
      targetRefs: [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name: 'model' }],
      backend: {
        ai: {
          promptGuard: {
            request: [{ webhook: { backendRef: { name: 'webhook', kind: 'Service', port: 8000 } } }],
          },
        },
      },
    },
  }),
]

/** One request per hour. */
export function limitOf(route: string): object {
  return object(ownApi, 'GatewayPolicy', `limit-${route}`, {
    spec: {
      targetRefs: [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name: route }],
      traffic: { rateLimit: { local: [{ requests: 1, unit: 'Hours' }] } },
    },
  })
}
