import { describe, expect, it } from 'vitest'
import { endAfter } from '../../../../test/support/cleanup.ts'
import { type KubernetesApi, startKubernetesApi } from '../../../../test/support/kubernetes-api.ts'
import { until, within } from '../../../../test/support/wait.ts'
import { systemClock } from '../../../lib/clock.ts'
import { apiVersionOf, type ReadKind, readKinds } from '../../objects/kinds.ts'
import { readKubeconfig } from '../access/kubeconfig.ts'
import { createApiClient, type ListOptions } from '../client.ts'
import { ApiError } from '../requests/api-error.ts'
import { createListWatch } from './list-watch.ts'
import { createObjectStore, type ObjectChange } from './object-store.ts'

function route(name: string, hostname = 'a.example', namespace = 'default') {
  return {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'HTTPRoute',
    metadata: { name, namespace },
    spec: { hostnames: [hostname] },
  }
}

/** Follows a kind of the double; every error is recorded. */
function follow(
  api: KubernetesApi,
  kindName: ReadKind = 'HTTPRoute',
  selection: ListOptions = {},
  times: { unknownMs?: number } = {},
) {
  const access = readKubeconfig('kubeconfig', () => api.kubeconfig(), systemClock)
  const client = createApiClient(access)
  const kind = readKinds[kindName]
  const changes: ObjectChange[] = []
  const errors: ApiError[] = []
  const counts = { listed: 0, expired: 0 }
  const store = createObjectStore({ apiVersion: apiVersionOf(kind), kind: kindName }, (change) =>
    changes.push(change),
  )
  const watch = createListWatch({
    client,
    kind,
    store,
    clock: systemClock,
    random: Math.random,
    backOff: { minMs: 5, maxMs: 40 },
    ...selection,
    ...times,
    observer: {
      listed: () => void counts.listed++,
      failed: (error) => void errors.push(error),
      expired: () => void counts.expired++,
    },
  })
  endAfter('test', () => {
    watch.close()
    client.close()
  })
  const names = () => [...store.objects.keys()].sort()
  const has = (...expected: string[]) =>
    until(`objects ${expected.join(', ')}`, () => names().join() === expected.join())
  return { ...watch, store, changes, errors, counts, names, has }
}

function watchesOf(api: KubernetesApi): number {
  return api.requests.filter(({ query }) => query.has('watch')).length
}

describe('createListWatch', () => {
  it('lists in pages and follows changes', async () => {
    const api = await startKubernetesApi()
    for (let index = 0; index < 1_203; index++) api.put(route(`r${index}`))
    const followed = follow(api)
    await within('synced', followed.synced)
    expect(followed.names()).toHaveLength(1_203)
    expect(api.requests.filter(({ query }) => query.get('limit') === '500')).toHaveLength(3)
    api.put(route('r0', 'b.example'))
    api.delete('HTTPRoute', 'default', 'r1')
    api.put(route('new'))
    await until('the last change', () => followed.store.objects.has('default/new'))
    expect(followed.store.objects.get('default/r0')?.['spec']).toEqual({ hostnames: ['b.example'] })
    expect(followed.store.objects.has('default/r1')).toBe(false)
    expect(followed.errors).toEqual([])
  })

  it('adds the kind to items of built-in kinds and removes bookkeeping', async () => {
    const api = await startKubernetesApi()
    const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': '{}', other: '1' }
    api.put({ apiVersion: 'v1', kind: 'Service', metadata: { name: 's', namespace: 'default', annotations } })
    const followed = follow(api, 'Service')
    await within('synced', followed.synced)
    const service = followed.store.objects.get('default/s')
    expect(service).toMatchObject({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { annotations: { other: '1' } },
    })
    expect(service?.metadata['annotations']).toEqual({ other: '1' })
    expect(service?.metadata['managedFields']).toBeUndefined()
  })

  it('passes selectors and a namespace', async () => {
    const api = await startKubernetesApi()
    const secret = (name: string, type: string, namespace = 'default') =>
      api.put({ apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace }, type })
    secret('release', 'helm.sh/release.v1')
    secret('tls', 'kubernetes.io/tls')
    secret('elsewhere', 'kubernetes.io/tls', 'other')
    const fieldSelector = 'type!=helm.sh/release.v1'
    const followed = follow(api, 'Secret', { fieldSelector, namespace: 'default' })
    await within('synced', followed.synced)
    secret('late', 'helm.sh/release.v1')
    secret('last', 'Opaque')
    await followed.has('default/last', 'default/tls')
  })

  it('retains the objects and their identity while the API server is away', async () => {
    const api = await startKubernetesApi()
    api.put(route('kept'))
    api.put(route('deleted'))
    const followed = follow(api)
    await within('synced', followed.synced)
    const kept = followed.store.objects.get('default/kept')
    await api.stop()
    await until('a failed attempt', () => followed.errors.length > 2)
    expect(followed.names()).toEqual(['default/deleted', 'default/kept'])
    api.delete('HTTPRoute', 'default', 'deleted')
    api.put(route('added'))
    api.compact()
    await api.start()
    await followed.has('default/added', 'default/kept')
    expect(followed.store.objects.get('default/kept')).toBe(kept)
    expect(followed.counts.expired).toBeGreaterThan(0)
  })

  it('continues without a list after a lost connection', async () => {
    const api = await startKubernetesApi()
    const followed = follow(api)
    await within('synced', followed.synced)
    for (const how of ['reset', 'close', 'reset'] as const) {
      await until('a watch', () => api.openWatches === 1)
      api.endWatches(how)
      api.put(route(`after-${how}-${api.requests.length}`))
    }
    await until('all objects', () => followed.names().length === 3)
    expect(followed.counts.listed).toBe(1)
  })

  it('lists again after an ERROR event of code 410', async () => {
    const api = await startKubernetesApi()
    const followed = follow(api)
    await within('synced', followed.synced)
    await until('a watch', () => api.openWatches === 1)
    api.endWatches('expire')
    api.put(route('a'))
    await followed.has('default/a')
    expect(followed.counts).toEqual({ listed: 2, expired: 1 })
  })

  it('slows down while every watch expires, and recovers', async () => {
    const api = await startKubernetesApi()
    const body = { kind: 'Status', code: 410, reason: 'Expired', message: 'too old resource version' }
    api.intercept(({ query }) => (query.get('watch') === 'true' ? { status: 410, body } : undefined))
    const followed = follow(api)
    await until('several lists', () => followed.counts.listed > 5)
    expect(followed.errors.length).toBeGreaterThanOrEqual(followed.counts.listed - 1)
    api.put(route('a'))
    api.intercept(() => undefined)
    await followed.has('default/a')
  })

  it('restarts a list whose continuation expired', async () => {
    const api = await startKubernetesApi()
    for (let index = 0; index < 600; index++) api.put(route(`r${index}`))
    let compactions = 0
    api.intercept(({ query }) => {
      if (query.has('continue') && compactions++ < 2) api.compact()
      return undefined
    })
    const followed = follow(api)
    await within('synced', followed.synced)
    expect(followed.names()).toHaveLength(600)
    expect(followed.errors.map(({ status }) => status)).toEqual([410, 410])
  })

  it('waits as long as the API server requests with 429', async () => {
    const api = await startKubernetesApi()
    let refusals = 2
    const body = {
      kind: 'Status',
      code: 429,
      reason: 'TooManyRequests',
      message: 'storage is (re)initializing',
    }
    api.intercept(() =>
      refusals-- > 0 ? { status: 429, headers: { 'retry-after': '0.1' }, body } : undefined,
    )
    const followed = follow(api)
    const startedAt = performance.now()
    await within('synced', followed.synced)
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(200)
    expect(followed.errors.map(({ status, retryAfterMs }) => [status, retryAfterMs])).toEqual([
      [429, 100],
      [429, 100],
    ])
  })

  it.each([500, 503, 403, 401])('continues after status %i', async (status) => {
    const api = await startKubernetesApi()
    api.put(route('a'))
    let faults = 8
    api.intercept(() => (faults-- > 0 ? { status } : undefined))
    const followed = follow(api)
    await followed.has('default/a')
    expect(followed.errors.every((error) => error.status === status)).toBe(true)
  })

  it.each(['{"type":"ADDED","object":', 'null', '{"type":"ADDED","object":{"metadata":{}}}', '[]'])(
    'lists again after repeated broken events: %s',
    async (text) => {
      const api = await startKubernetesApi()
      const followed = follow(api)
      await within('synced', followed.synced)
      for (let watches = 1; followed.counts.listed < 2; watches++) {
        await until('a watch', () => watchesOf(api) >= watches && api.openWatches === 1)
        api.writeToWatches('HTTPRoute', `${text}\n`)
        await until('another watch', () => watchesOf(api) > watches)
      }
      api.put(route('a'))
      await followed.has('default/a')
    },
  )

  it('continues from the version of a bookmark', async () => {
    const api = await startKubernetesApi()
    const followed = follow(api)
    await within('synced', followed.synced)
    await until('a watch', () => api.openWatches === 1)
    for (let count = 0; count < 10; count++)
      api.put({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `c${count}`, namespace: 'default' } })
    api.bookmark()
    const version = api.list('ConfigMap').at(-1)?.metadata.resourceVersion
    // The compaction is not visible before the bookmark has arrived.
    api.put(route('a'))
    await followed.has('default/a')
    api.endWatches('close')
    await until('another watch', () => watchesOf(api) > 1)
    const last = api.requests.findLast(({ query }) => query.has('watch'))
    expect(Number(last?.query.get('resourceVersion'))).toBeGreaterThanOrEqual(Number(version))
    expect(followed.counts.listed).toBe(1)
  })

  it('becomes synced without a kind that is not installed, and follows it once it is', async () => {
    const api = await startKubernetesApi()
    api.removeKind('TCPRoute')
    const followed = follow(api, 'TCPRoute')
    await within('synced', followed.synced)
    expect(followed.errors.map(({ status }) => status)).toEqual([404, 404, 404])
    api.addKind('TCPRoute', readKinds.TCPRoute)
    const { apiVersion, metadata } = route('t')
    api.put({ apiVersion, kind: 'TCPRoute', metadata, spec: { rules: [] } })
    await followed.has('default/t')
  })

  it('retains the objects of a kind that the API server has lost for a moment', async () => {
    const api = await startKubernetesApi()
    api.put(route('kept'))
    const followed = follow(api)
    await within('synced', followed.synced)
    await until('a watch', () => api.openWatches === 1)
    api.removeKind('HTTPRoute')
    api.endWatches('expire')
    await until('many attempts', () => followed.errors.length > 6)
    expect(followed.names()).toEqual(['default/kept'])
    api.addKind('HTTPRoute', readKinds.HTTPRoute)
    await until('another list', () => followed.counts.listed === 2)
    expect(followed.changes).toHaveLength(1)
  })

  it('removes the objects of a kind that the API server no longer has', async () => {
    const api = await startKubernetesApi()
    api.put(route('lost'))
    const followed = follow(api, 'HTTPRoute', {}, { unknownMs: 100 })
    await within('synced', followed.synced)
    await until('a watch', () => api.openWatches === 1)
    api.removeKind('HTTPRoute')
    api.endWatches('expire')
    await followed.has()
  })

  it('delays attempts while the API server refuses watches after a long time', async () => {
    const delays: number[] = []
    let now = 0
    const watch = createListWatch({
      client: {
        list: async () => ({ items: [], resourceVersion: '1', continuation: undefined }),
        watch() {
          now += 20_000
          return Promise.reject(new ApiError({ status: 503 }, 'unavailable'))
        },
      },
      kind: readKinds.HTTPRoute,
      store: createObjectStore({ apiVersion: 'v1', kind: 'HTTPRoute' }, () => {}),
      clock: { monotonic: () => now },
      random: () => 1,
      backOff: { minMs: 1, maxMs: 16 },
      observer: { listed() {}, failed: (_, retryMs) => void delays.push(retryMs), expired() {} },
    })
    endAfter('test', watch.close)
    await until('attempts', () => delays.length >= 6)
    expect(delays.slice(0, 6)).toEqual([1, 2, 4, 8, 16, 16])
  })

  it('is not synced while it may not list', async () => {
    const api = await startKubernetesApi()
    api.intercept(() => ({ status: 403 }))
    const followed = follow(api)
    let isSynced = false
    followed.synced.then(() => {
      isSynced = true
    })
    await until('attempts', () => followed.errors.length > 4)
    expect(isSynced).toBe(false)
  })

  it('marks changes of the status and shares the rest of the object', async () => {
    const api = await startKubernetesApi()
    api.put(route('a'))
    const followed = follow(api)
    await within('synced', followed.synced)
    const before = followed.store.objects.get('default/a')
    api.setStatus('HTTPRoute', 'default', 'a', { parents: [] })
    await until('the status', () => followed.store.objects.get('default/a')?.['status'] !== undefined)
    const after = followed.store.objects.get('default/a')
    expect(after?.['spec']).toBe(before?.['spec'])
    expect(after?.metadata['resourceVersion']).not.toBe(before?.metadata['resourceVersion'])
    expect(followed.changes.map(({ isStatusOnly }) => isStatusOnly)).toEqual([false, true])
  })
})
