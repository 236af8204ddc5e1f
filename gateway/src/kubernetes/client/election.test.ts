import { describe, expect, it } from 'vitest'
import { endAfter } from '../../../test/support/cleanup.ts'
import { type KubernetesApi, startKubernetesApi } from '../../../test/support/kubernetes-api.ts'
import { until } from '../../../test/support/wait.ts'
import { systemClock } from '../../lib/clock.ts'
import { readKubeconfig } from './access/kubeconfig.ts'
import { createApiClient } from './client.ts'
import { createElection, type ElectionTimes } from './election.ts'

const fast: ElectionTimes = { leaseMs: 1_500, renewMs: 400, retryMs: 50 }

function candidate(api: KubernetesApi, identity: string, times = fast) {
  const client = createApiClient(readKubeconfig('kubeconfig', () => api.kubeconfig(), systemClock))
  const signals: AbortSignal[] = []
  const lost: string[] = []
  const election = createElection({
    client,
    namespace: 'system',
    name: 'lease',
    identity,
    clock: systemClock,
    random: Math.random,
    times,
    elected: (signal) => signals.push(signal),
    lost: (reason) => lost.push(reason),
    failed() {},
  })
  let isClosed = false
  const close = async () => {
    if (isClosed) return
    isClosed = true
    await election.close()
    client.close()
  }
  endAfter('test', close)
  return { election, signals, lost, close }
}

function holder(api: KubernetesApi): unknown {
  const spec = api.get('Lease', 'system', 'lease')?.['spec']
  return typeof spec === 'object' && spec !== null ? Reflect.get(spec, 'holderIdentity') : undefined
}

describe('createElection', () => {
  it('elects one of several candidates, and the next after a release', async () => {
    const api = await startKubernetesApi()
    const candidates = ['a', 'b', 'c'].map((identity) => ({ identity, ...candidate(api, identity) }))
    const leaders = () => candidates.filter(({ election }) => election.isLeader)
    const first = await until('a leader', () => leaders()[0])
    expect(leaders()).toHaveLength(1)
    expect(holder(api)).toBe(first.identity)
    const closedAt = performance.now()
    await first.close()
    expect(first.signals[0]?.aborted).toBe(true)
    await until('another leader', () => leaders()[0])
    // A release does not wait for the expiry of the lease.
    expect(performance.now() - closedAt).toBeLessThan(1_400)
    expect(first.lost).toEqual([])
  })

  it('stops the work of a leader that cannot renew, and leads again later', async () => {
    const api = await startKubernetesApi()
    const { election, signals, lost } = candidate(api, 'a')
    await until('a leader', () => election.isLeader)
    await api.stop()
    await until('the end of the work', () => signals[0]?.aborted)
    expect([election.isLeader, lost]).toEqual([false, ['lease not renewed in time']])
    await api.start()
    await until('the next election', () => election.isLeader)
    expect(signals).toHaveLength(2)
  })

  it('takes over a lease only after it did not change for its life time', async () => {
    const api = await startKubernetesApi()
    const spec = { holderIdentity: 'gone', leaseDurationSeconds: 1, renewTime: '2020-01-01T00:00:00.000000Z' }
    const metadata = { name: 'lease', namespace: 'system' }
    api.put({ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec })
    const startedAt = performance.now()
    const { election } = candidate(api, 'a')
    await until('a leader', () => election.isLeader)
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(1_500)
    expect(holder(api)).toBe('a')
  })

  it('ends leadership at once if another candidate has taken the lease', async () => {
    const api = await startKubernetesApi()
    const { election, signals, lost } = candidate(api, 'a', { ...fast, renewMs: 60_000, leaseMs: 90_000 })
    await until('a leader', () => election.isLeader)
    const lease = api.get('Lease', 'system', 'lease')
    const spec = { ...Object(lease?.['spec']), holderIdentity: 'b' }
    api.put({ ...Object(lease), spec })
    await until('the end of the work', () => signals[0]?.aborted)
    expect([election.isLeader, lost]).toEqual([false, ['lease taken by another candidate']])
    expect(holder(api)).toBe('b')
  })

  it('closes while the API server does not respond', async () => {
    const api = await startKubernetesApi()
    const { election, close } = candidate(api, 'a', { ...fast, renewMs: 60_000, leaseMs: 90_000 })
    await until('a leader', () => election.isLeader)
    const requests = api.requests.length
    api.intercept(() => 'silence')
    await until('a request without response', () => api.requests.length > requests)
    const closedAt = performance.now()
    await close()
    // Calls have a limit of 30 s.
    expect(performance.now() - closedAt).toBeLessThan(15_000)
  })
})
