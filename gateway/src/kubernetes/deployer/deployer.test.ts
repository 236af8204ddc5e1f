import { beforeEach, describe, expect, it } from 'vitest'
import { isJsonObject, type JsonObject } from '../../lib/json/json.ts'
import type { Gateway } from '../objects/gateway-api.ts'
import { createDeployer, type DeployClient, type Deployer, type LiveObject } from './deployer.ts'

const gateway: Gateway = {
  apiVersion: 'gateway.networking.k8s.io/v1',
  kind: 'Gateway',
  metadata: { name: 'web', namespace: 'apps', uid: 'uid-1' },
  spec: { gatewayClassName: 'tollgate', listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }] },
}

const settings = { image: 'tollgate:1', controllerUrl: 'https://c:15012', caBundle: 'PEM', version: '1' }
const expectedIds = [
  'serviceaccounts/web-tollgate',
  'secrets/web-tollgate-session-key',
  'configmaps/web-tollgate-ca',
  'services/web-tollgate',
  'deployments/web-tollgate',
]

/** API server in memory: objects by `<plural>/<name>`, and the calls that wrote. */
function createFakeApi() {
  const objects = new Map<string, LiveObject>()
  const writes: string[] = []
  const refusals = new Map<string, string>()
  let sequence = 0
  const client: DeployClient = {
    async list(kind, { labelSelector }) {
      const [label = '', value] = labelSelector.split('=')
      const items = [...objects].filter(([id, { metadata }]) => {
        const { labels } = metadata
        return id.startsWith(`${kind.plural}/`) && isJsonObject(labels) && labels[label] === value
      })
      // As of the API server: items have no version and kind.
      return { items: items.map(([, { apiVersion: _, kind: __, ...item }]) => item) }
    },
    get: async ({ kind, name }) => objects.get(`${kind.plural}/${name}`),
    async apply(kind, object, fieldManager) {
      const id = `${kind.plural}/${object.metadata.name}`
      const refusal = refusals.get(id)
      if (refusal !== undefined) throw new Error(refusal)
      writes.push(`apply ${id} ${fieldManager}`)
      const given = JSON.parse(JSON.stringify(object)) as JsonObject & {
        metadata: JsonObject & { name: string }
      }
      const uid = objects.get(id)?.metadata['uid'] ?? `uid-of-${id}-${++sequence}`
      const live = { ...given, metadata: { ...given.metadata, uid } }
      objects.set(id, live)
      return live
    },
    async remove({ kind, name }, { uid }) {
      const id = `${kind.plural}/${name}`
      writes.push(`remove ${id}`)
      if (objects.get(id)?.metadata['uid'] !== uid) return false
      return objects.delete(id)
    },
  }
  return { client, objects, writes, refusals }
}

describe('createDeployer', () => {
  let api: ReturnType<typeof createFakeApi>
  let deployer: Deployer
  let keys: number

  beforeEach(() => {
    api = createFakeApi()
    keys = 0
    deployer = createDeployer({
      client: api.client,
      settings,
      randomBytes: (length) => Buffer.alloc(length, ++keys),
    })
  })

  function specOf(id: string): JsonObject {
    const spec = api.objects.get(id)?.['spec']
    return isJsonObject(spec) ? spec : {}
  }

  it('creates the objects of a Gateway in the order of their use', async () => {
    const result = await deployer.deploy(gateway, {})
    expect(result).toMatchObject({
      kind: 'deployed',
      deployment: { kind: 'Deployment' },
      service: { kind: 'Service' },
    })
    expect(api.writes).toEqual(expectedIds.map((id) => `apply ${id} tollgate-controller`))
  })

  it('writes nothing if nothing changed', async () => {
    await deployer.deploy(gateway, {})
    api.writes.length = 0
    expect((await deployer.deploy(gateway, {})).kind).toBe('deployed')
    expect(api.writes).toEqual([])
  })

  it('ignores defaults and fields of others', async () => {
    await deployer.deploy(gateway, {})
    const service = api.objects.get('services/web-tollgate')
    if (service === undefined) throw new Error('no service')
    api.objects.set('services/web-tollgate', {
      ...service,
      spec: { ...specOf('services/web-tollgate'), clusterIP: '10.0.0.1' },
    })
    api.writes.length = 0
    await deployer.deploy(gateway, {})
    expect(api.writes).toEqual([])
  })

  it('restores fields that others changed', async () => {
    await deployer.deploy(gateway, {})
    const service = api.objects.get('services/web-tollgate')
    if (service === undefined) throw new Error('no service')
    api.objects.set('services/web-tollgate', { ...service, spec: { type: 'ClusterIP' } })
    api.writes.length = 0
    await deployer.deploy(gateway, {})
    expect(api.writes).toEqual(['apply services/web-tollgate tollgate-controller'])
    expect(specOf('services/web-tollgate')['type']).toBe('LoadBalancer')
  })

  it('applies an object with a removed field', async () => {
    await deployer.deploy(gateway, { env: [{ name: 'A', value: '1' }] })
    api.writes.length = 0
    await deployer.deploy(gateway, {})
    expect(api.writes).toEqual(['apply deployments/web-tollgate tollgate-controller'])
  })

  it('creates the session key once', async () => {
    await deployer.deploy(gateway, {})
    const before = api.objects.get('secrets/web-tollgate-session-key')?.['data']
    await deployer.deploy(gateway, { replicas: 2 })
    expect(api.objects.get('secrets/web-tollgate-session-key')?.['data']).toEqual(before)
    expect(keys).toBe(1)
  })

  it('removes objects that are no longer wanted', async () => {
    await deployer.deploy(gateway, {
      horizontalPodAutoscaler: { maxReplicas: 3 },
      podDisruptionBudget: { minAvailable: 1 },
    })
    expect(api.objects.has('horizontalpodautoscalers/web-tollgate')).toBe(true)
    await deployer.deploy(gateway, {})
    expect([...api.objects.keys()]).toEqual(expectedIds)
  })

  it('removes the objects of the previous class', async () => {
    await deployer.deploy(gateway, {})
    await deployer.deploy({ ...gateway, spec: { ...gateway.spec, gatewayClassName: 'other' } }, {})
    expect([...api.objects.keys()]).toEqual(expectedIds.map((id) => id.replace('-tollgate', '-other')))
  })

  it('leaves objects of other owners with the label of the Gateway', async () => {
    const foreign: LiveObject = {
      metadata: { name: 'foreign', uid: 'x', labels: { 'gateway.networking.k8s.io/gateway-name': 'web' } },
    }
    api.objects.set('services/foreign', foreign)
    await deployer.deploy(gateway, {})
    expect(api.objects.get('services/foreign')).toBe(foreign)
  })

  it.each([
    ['without owner', {}],
    ['of another Gateway', { ownerReferences: [{ kind: 'Gateway', name: 'web', uid: 'uid-0' }] }],
  ])('refuses to overwrite an object %s', async (_, more) => {
    const foreign: LiveObject = { metadata: { name: 'web-tollgate', uid: 'x', ...more }, spec: { a: 1 } }
    api.objects.set('services/web-tollgate', foreign)
    expect(await deployer.deploy(gateway, {})).toEqual({
      kind: 'failed',
      message: 'Service apps/web-tollgate does not belong to Gateway apps/web: delete or rename it',
    })
    expect(api.writes).toEqual([])
    expect(api.objects.get('services/web-tollgate')).toBe(foreign)
  })

  it('waits for the end of a deletion', async () => {
    await deployer.deploy(gateway, {})
    const service = api.objects.get('services/web-tollgate')
    if (service === undefined) throw new Error('no service')
    const metadata = { ...service.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' }
    api.objects.set('services/web-tollgate', { ...service, metadata })
    expect(await deployer.deploy(gateway, { replicas: 2 })).toEqual({
      kind: 'failed',
      message: 'Service apps/web-tollgate is being deleted',
    })
  })

  it('applies the other objects after an error', async () => {
    api.refusals.set('services/web-tollgate', 'services is forbidden')
    expect(await deployer.deploy(gateway, {})).toEqual({
      kind: 'failed',
      message: 'Service web-tollgate: services is forbidden',
    })
    expect(api.objects.has('deployments/web-tollgate')).toBe(true)
  })

  it('reports errors of reads', async () => {
    const client: DeployClient = { ...api.client, list: () => Promise.reject(new Error('no connection')) }
    const failing = createDeployer({ client, settings, randomBytes: Buffer.alloc })
    expect(await failing.deploy(gateway, {})).toEqual({ kind: 'failed', message: 'no connection' })
  })

  it('retains the number of replicas when an autoscaler takes over', async () => {
    await deployer.deploy(gateway, { replicas: 5 })
    api.writes.length = 0
    await deployer.deploy(gateway, { replicas: 5, horizontalPodAutoscaler: { maxReplicas: 9 } })
    expect(api.writes).toEqual([
      'apply deployments/web-tollgate tollgate-replicas',
      'apply deployments/web-tollgate tollgate-controller',
      'apply horizontalpodautoscalers/web-tollgate tollgate-controller',
    ])
    api.writes.length = 0
    await deployer.deploy(gateway, {
      env: [{ name: 'A', value: '1' }],
      horizontalPodAutoscaler: { maxReplicas: 9 },
    })
    expect(api.writes).toEqual(['apply deployments/web-tollgate tollgate-controller'])
  })

  it('removes all objects of a Gateway that it withdraws from', async () => {
    await deployer.deploy(gateway, {})
    expect((await deployer.withdraw(gateway)).kind).toBe('deployed')
    expect([...api.objects.keys()]).toEqual([])
  })

  it('leaves objects that another controller has created for the Gateway', async () => {
    const foreign: LiveObject = {
      metadata: {
        name: 'web-other',
        uid: 'x',
        labels: { 'gateway.networking.k8s.io/gateway-name': 'web' },
        ownerReferences: [{ kind: 'Gateway', name: 'web', uid: 'uid-1' }],
      },
    }
    api.objects.set('deployments/web-other', foreign)
    await deployer.deploy(gateway, {})
    await deployer.withdraw(gateway)
    expect([...api.objects]).toEqual([['deployments/web-other', foreign]])
  })
})
