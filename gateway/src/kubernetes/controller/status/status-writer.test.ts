import { describe, expect, it } from 'vitest'
import { endAfter } from '../../../../test/support/cleanup.ts'
import { type KubernetesApi, startKubernetesApi } from '../../../../test/support/kubernetes-api.ts'
import { until, within } from '../../../../test/support/wait.ts'
import { systemClock } from '../../../lib/clock.ts'
import { createControllerMeter } from '../../../telemetry/metrics/controller.ts'
import { createMetricRegistry } from '../../../telemetry/metrics/families.ts'
import { readKubeconfig } from '../../client/access/kubeconfig.ts'
import { createApiClient } from '../../client/client.ts'
import { controllerName } from '../../translate/controller-name.ts'
import type { ObjectStatus } from '../../translate/status/object-status.ts'
import { watchObjects } from '../watching/watched-objects.ts'
import { createStatusWriter } from './status-writer.ts'
import { createWriteRate } from './write-rate.ts'

const log = { debug() {}, info() {}, warn() {}, error() {}, audit() {} }

function route(name: string) {
  return {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'HTTPRoute',
    metadata: { name, namespace: 'default' },
    spec: { rules: [] },
  }
}

type Answer = 'True' | 'False'

function routeStatus(name: string, status: Answer = 'True', reason = 'Accepted'): ObjectStatus {
  const conditions = [{ type: 'Accepted', status, reason, message: '', observedGeneration: 1 }]
  const parents = [{ parentRef: { name: 'gw' }, controllerName, conditions }]
  return { kind: 'HTTPRoute', key: `default/${name}`, of: 'route', status: { parents } }
}

const foreign = { parentRef: { name: 'other' }, controllerName: 'example.com/other', conditions: [] }

/** Status entries of a route in the API. */
function parentsOf(api: KubernetesApi, name: string): Record<string, unknown>[] {
  const status = api.get('HTTPRoute', 'default', name)?.['status']
  return typeof status === 'object' && status !== null ? Reflect.get(status, 'parents') : []
}

function reasonOf(api: KubernetesApi, name: string): unknown {
  const own = parentsOf(api, name).find((entry) => entry['controllerName'] === controllerName)
  return JSON.parse(JSON.stringify(own ?? null))?.conditions[0].reason
}

function writesOf(api: KubernetesApi): number {
  return api.requests.filter(({ method }) => method === 'PUT').length
}

async function start(api: KubernetesApi) {
  const client = createApiClient(readKubeconfig('kubeconfig', () => api.kubeconfig(), systemClock))
  const meter = createControllerMeter(createMetricRegistry())
  const environment = { client, clock: systemClock, random: Math.random, log, meter }
  const objects = watchObjects({
    ...environment,
    namespaces: undefined,
    changed: (kind, { key }) => writer.check(kind, key),
  })
  const reported: string[] = []
  const writer = createStatusWriter({
    ...environment,
    latest: objects.latest,
    entries: objects.entries,
    rate: createWriteRate({ perSecond: 1_000, burst: 1_000 }, systemClock),
    written: ({ key }, { metadata }) => void reported.push(`${key} ${metadata.name}`),
  })
  endAfter('test', async () => {
    await writer.close()
    objects.close()
    client.close()
  })
  await within('synced', objects.synced)
  return { writer, objects, reported }
}

describe('createStatusWriter', () => {
  it('writes a status once, and not again for its own event or the same result', async () => {
    const api = await startKubernetesApi()
    api.put(route('a'))
    const { writer, objects, reported } = await start(api)
    writer.update([routeStatus('a')])
    await until('the status', () => reasonOf(api, 'a') === 'Accepted')
    await until('its event', () => objects.latest('HTTPRoute', 'default/a')?.['status'] !== undefined)
    writer.update([routeStatus('a')])
    writer.check('HTTPRoute', 'default/a')
    api.put(route('b'))
    writer.update([routeStatus('a'), routeStatus('b')])
    await until('another status', () => reasonOf(api, 'b') === 'Accepted')
    expect(writesOf(api)).toBe(2)
    await until('reports', () => reported.length === 2)
    expect(reported).toEqual(['default/a a', 'default/b b'])
  })

  it('retains entries of other controllers, also through conflicts', async () => {
    const api = await startKubernetesApi()
    api.put({ ...route('a'), status: { parents: [foreign] } })
    const { writer } = await start(api)
    let conflicts = 3
    api.intercept(({ method }) => {
      // Another controller writes between the read and the write.
      if (method === 'PUT' && conflicts-- > 0) {
        const parents = [
          { ...foreign, conditions: [{ type: 'X', round: conflicts }] },
          ...parentsOf(api, 'a').slice(1),
        ]
        api.setStatus('HTTPRoute', 'default', 'a', { parents })
      }
      return undefined
    })
    writer.update([routeStatus('a')])
    await until('the status', () => reasonOf(api, 'a') === 'Accepted')
    expect(parentsOf(api, 'a').map((entry) => entry['controllerName'])).toEqual([
      'example.com/other',
      controllerName,
    ])
    expect(parentsOf(api, 'a')[0]).toMatchObject({ conditions: [{ type: 'X', round: 0 }] })
  })

  it('changes lastTransitionTime only with the status of a condition', async () => {
    const api = await startKubernetesApi()
    const old = '2020-01-01T00:00:00Z'
    const status = JSON.parse(JSON.stringify(routeStatus('a').status))
    status.parents[0].conditions[0].lastTransitionTime = old
    api.put({ ...route('a'), status })
    const { writer } = await start(api)
    const timeOf = () => JSON.parse(JSON.stringify(parentsOf(api, 'a')))[0].conditions[0].lastTransitionTime
    writer.update([routeStatus('a', 'True', 'Other')])
    await until('the reason', () => reasonOf(api, 'a') === 'Other')
    expect(timeOf()).toBe(old)
    writer.update([routeStatus('a', 'False', 'NoMatchingParent')])
    await until('the status', () => reasonOf(api, 'a') === 'NoMatchingParent')
    expect(timeOf()).not.toBe(old)
  })

  it('removes its entries from objects that no longer concern it, and nothing before the first update', async () => {
    const api = await startKubernetesApi()
    const { parents } = JSON.parse(JSON.stringify(routeStatus('a').status))
    api.put({ ...route('a'), status: { parents: [foreign, ...parents] } })
    const { writer } = await start(api)
    writer.check('HTTPRoute', 'default/a')
    expect(parentsOf(api, 'a')).toHaveLength(2)
    writer.update([])
    await until('the removal', () => parentsOf(api, 'a').length === 1)
    expect(parentsOf(api, 'a')).toEqual([foreign])
  })

  it('slows down while another controller with the same name replaces its entries', async () => {
    const api = await startKubernetesApi()
    api.put(route('a'))
    const { writer } = await start(api)
    let replacements = 0
    const rival = { parents: [{ parentRef: { name: 'gw' }, controllerName, conditions: [] }] }
    api.intercept(({ method, path }) => {
      if (method !== 'PUT' || !path.endsWith('/status')) return undefined
      // After the write.
      setImmediate(() => {
        replacements += 1
        api.setStatus('HTTPRoute', 'default', 'a', rival)
      })
      return undefined
    })
    writer.update([routeStatus('a')])
    await until('two replacements', () => replacements >= 2)
    // The third write would come 2 s after the second: a hot loop would make hundreds.
    for (let count = 0; count < 50; count++) {
      writer.check('HTTPRoute', 'default/a')
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(writesOf(api)).toBeLessThanOrEqual(3)
    // A new result is written at once.
    const before = writesOf(api)
    writer.update([routeStatus('a', 'False', 'Invalid')])
    await until('the new result', () => writesOf(api) > before, 1_500)
  })

  it('writes the status of one object while others fail', async () => {
    const api = await startKubernetesApi()
    for (const name of ['a', 'b', 'c']) api.put(route(name))
    const { writer } = await start(api)
    api.intercept(({ method, path }) =>
      method === 'PUT' && path.includes('/a/') ? { status: 403 } : undefined,
    )
    writer.update(['a', 'b', 'c'].map((name) => routeStatus(name)))
    await until('the others', () => reasonOf(api, 'b') === 'Accepted' && reasonOf(api, 'c') === 'Accepted')
    api.intercept(() => undefined)
    await until('the last', () => reasonOf(api, 'a') === 'Accepted')
  })
})
