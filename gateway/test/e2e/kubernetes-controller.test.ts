import { describe, expect, it } from 'vitest'
import { connectProxy, startController } from '../support/controller.ts'
import { type KubernetesApi, startKubernetesApi } from '../support/kubernetes-api.ts'
import { until } from '../support/wait.ts'

const gatewayApi = 'gateway.networking.k8s.io/v1'
const place = { namespace: 'shop', name: 'web', account: 'web-tollgate' }
const secretText = 'hunter2-in-a-secret'

function object(kind: string, name: string, spec: object) {
  return { apiVersion: gatewayApi, kind, metadata: { name, namespace: 'shop' }, spec }
}

const listeners = [{ name: 'http', port: 80, protocol: 'HTTP' }]
const gateway = object('Gateway', 'web', { gatewayClassName: 'tollgate', listeners })

function route(name: string, service = 'app') {
  return object('HTTPRoute', name, {
    parentRefs: [{ name: 'web' }],
    hostnames: [`${name}.example`],
    rules: [{ backendRefs: [{ name: service, port: 80 }] }],
  })
}

/** A cluster with a Gateway, a Service and a Secret. */
async function startCluster(): Promise<KubernetesApi> {
  const api = await startKubernetesApi()
  const metadata = { name: 'app', namespace: 'shop' }
  for (const name of ['shop', 'tollgate-system'])
    api.put({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
  api.put({
    apiVersion: gatewayApi,
    kind: 'GatewayClass',
    metadata: { name: 'tollgate' },
    spec: { controllerName: 'tollgate.dev/controller' },
  })
  api.put({ apiVersion: 'v1', kind: 'Service', metadata, spec: { ports: [{ port: 80 }] } })
  api.put({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { ...metadata, labels: { 'kubernetes.io/service-name': 'app' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['192.0.2.1'] }],
    ports: [{ port: 8_080 }],
  })
  const data = { password: Buffer.from(secretText).toString('base64') }
  api.put({ apiVersion: 'v1', kind: 'Secret', metadata: { ...metadata, name: 'secret' }, data })
  api.put(gateway)
  return api
}

type Condition = { type: string; status: string; reason: string; message: string; observedGeneration: number }

function conditionOf(api: KubernetesApi, kind: 'Gateway' | 'HTTPRoute', name: string, type: string) {
  const status: unknown = api.get(kind, 'shop', name)?.['status']
  const { conditions, parents } = JSON.parse(JSON.stringify(status ?? {}))
  const found: Condition[] = conditions ?? parents?.[0]?.conditions ?? []
  return found.find((condition) => condition.type === type)
}

/** Names of the routes of a configuration. */
function routesOf(config: { routes?: unknown } | undefined): string {
  return JSON.stringify(config?.routes ?? [])
}

function assignAddress(api: KubernetesApi): void {
  api.setStatus('Service', 'shop', 'web-tollgate', { loadBalancer: { ingress: [{ ip: '203.0.113.7' }] } })
}

describe('tollgate controller', () => {
  it('deploys, publishes and reports a Gateway as programmed once a proxy serves it', async () => {
    const api = await startCluster()
    api.put(route('one'))
    const controller = await startController(api, 'a')
    await controller.ready()
    await until('the Deployment', () => api.get('Deployment', 'shop', 'web-tollgate'))
    await until(
      'the address is absent',
      () => conditionOf(api, 'Gateway', 'web', 'Programmed')?.reason === 'AddressNotAssigned',
    )
    assignAddress(api)
    await until('no proxy', () => conditionOf(api, 'Gateway', 'web', 'Programmed')?.reason === 'Pending')
    const proxy = await connectProxy(api, controller, place)
    await until('programmed', () => conditionOf(api, 'Gateway', 'web', 'Programmed')?.status === 'True')
    expect(routesOf(proxy.configs.at(-1))).toContain('one.example')
    expect(conditionOf(api, 'HTTPRoute', 'one', 'Accepted')?.status).toBe('True')
    api.put(route('two'))
    await until('the change', () => routesOf(proxy.configs.at(-1)).includes('two.example'))
    expect(await controller.metrics()).toMatch(/^tollgate_controller_objects\{kind="HTTPRoute"\} 2$/m)
    expect(controller.stdout()).not.toContain(secretText)
    expect(controller.stdout()).not.toContain(Buffer.from(secretText).toString('base64'))
  })

  it('reports the errors of a proxy that refuses a configuration, with an event', async () => {
    const api = await startCluster()
    const controller = await startController(api, 'a')
    const proxy = await connectProxy(api, controller, place)
    proxy.refuse(['port 80 is in use'])
    await until('the Service', () => api.get('Service', 'shop', 'web-tollgate'))
    assignAddress(api)
    await until('the error', () =>
      conditionOf(api, 'Gateway', 'web', 'Programmed')?.message.includes('port 80 is in use'),
    )
    const event = await until('an event', () => api.list('Event')[0])
    expect(event).toMatchObject({
      reason: 'ConfigurationRefused',
      note: 'port 80 is in use',
      type: 'Warning',
    })
  })

  it('continues through an outage of the API server, and reads what changed in the meantime', async () => {
    const api = await startCluster()
    api.put(route('one'))
    const controller = await startController(api, 'a')
    const proxy = await connectProxy(api, controller, place)
    await until('the route', () => routesOf(proxy.configs.at(-1)).includes('one.example'))
    const before = proxy.configs.length
    await api.stop()
    await until('failed watches', () => controller.stdout().includes('"msg":"kubernetes watch failed"'))
    expect(await controller.isReady()).toBe(true)
    api.put(route('two'))
    api.delete('HTTPRoute', 'shop', 'one')
    api.compact()
    await api.start()
    await until('the changes', () => routesOf(proxy.configs.at(-1)).includes('two.example'), 30_000)
    await until('the deletion', () => !routesOf(proxy.configs.at(-1)).includes('one.example'), 30_000)
    // Never without routes in between.
    for (const config of proxy.configs.slice(before)) expect(routesOf(config)).toContain('.example')
    await until('a status', () => conditionOf(api, 'HTTPRoute', 'two', 'Accepted')?.status === 'True', 30_000)
  })

  it('starts during storms of 429 and 410', async () => {
    const api = await startCluster()
    api.put(route('one'))
    let storm = 0
    const body = {
      kind: 'Status',
      code: 429,
      reason: 'TooManyRequests',
      message: 'storage is (re)initializing',
    }
    api.intercept(({ query, path }) => {
      // Of lists and watches: a single caller would take minutes for so many refusals.
      if (path.includes('tollgate-system')) return undefined
      storm += 1
      if (storm < 40) return { status: 429, headers: { 'retry-after': '0' }, body }
      return storm < 80 && query.has('watch') ? { status: 410 } : undefined
    })
    const controller = await startController(api, 'a')
    await controller.ready()
    const proxy = await connectProxy(api, controller, place)
    await until('the route', () => routesOf(proxy.configs.at(-1)).includes('one.example'))
    api.put(route('two'))
    await until('a change', () => routesOf(proxy.configs.at(-1)).includes('two.example'), 30_000)
  })

  it('passes leadership to another replica, which knows the proxies of the first', async () => {
    const api = await startCluster()
    const first = await startController(api, 'a')
    await until('a leader', () => first.stdout().includes('"msg":"controller elected"'))
    const second = await startController(api, 'b')
    await second.ready()
    await connectProxy(api, second, place)
    await until('the Service', () => api.get('Service', 'shop', 'web-tollgate'))
    assignAddress(api)
    // The leader reads the acknowledgement that the other replica received.
    await until('programmed', () => conditionOf(api, 'Gateway', 'web', 'Programmed')?.status === 'True')
    expect(second.stdout()).not.toContain('"msg":"controller elected"')
    await first.end('SIGTERM')
    await until('another leader', () => second.stdout().includes('"msg":"controller elected"'))
    api.put(route('one'))
    await until('a status', () => conditionOf(api, 'HTTPRoute', 'one', 'Accepted')?.status === 'True')
    expect(conditionOf(api, 'Gateway', 'web', 'Programmed')?.status).toBe('True')
  })

  it('writes nothing while nothing changes, also after a restart', async () => {
    const api = await startCluster()
    for (let index = 0; index < 30; index++) api.put(route(`r${index}`, index % 2 === 0 ? 'app' : 'absent'))
    const first = await startController(api, 'a')
    const reasons = () => api.list('Event').map((event) => event['reason'])
    await until(
      'events of refused routes',
      () => reasons().filter((reason) => reason === 'BackendNotFound').length === 15,
    )
    await until('all statuses', () =>
      api.list('HTTPRoute').every(({ metadata }) => conditionOf(api, 'HTTPRoute', metadata.name, 'Accepted')),
    )
    await until(
      'a deployment',
      () => conditionOf(api, 'Gateway', 'web', 'Programmed') && api.get('Deployment', 'shop', 'web-tollgate'),
    )
    await first.end('SIGTERM')
    const writes = () =>
      api.requests
        .filter(({ method, path }) => method !== 'GET' && !path.includes('/leases'))
        .map(({ method, path }) => `${method} ${path}`)
    const before = writes()
    const second = await startController(api, 'b')
    await second.ready()
    const unchanged = /status_writes_total\{outcome="unchanged"\} (\d+)/
    await until('all are compared', async () => Number(unchanged.exec(await second.metrics())?.[1]) >= 31)
    expect(writes()).toEqual(before)
  })
})
