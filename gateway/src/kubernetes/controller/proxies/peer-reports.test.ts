import { describe, expect, it } from 'vitest'
import { endAfter } from '../../../../test/support/cleanup.ts'
import { startKubernetesApi } from '../../../../test/support/kubernetes-api.ts'
import { until } from '../../../../test/support/wait.ts'
import { systemClock } from '../../../lib/clock.ts'
import { createControllerMeter } from '../../../telemetry/metrics/controller.ts'
import { createMetricRegistry } from '../../../telemetry/metrics/families.ts'
import { readKubeconfig } from '../../client/access/kubeconfig.ts'
import { createApiClient } from '../../client/client.ts'
import { startPeerReports } from './peer-reports.ts'

const log = { debug() {}, info() {}, warn() {}, error() {}, audit() {} }

describe('startPeerReports', () => {
  it('writes as many Gateways as an annotation has room for', async () => {
    const api = await startKubernetesApi()
    const client = createApiClient(readKubeconfig('kubeconfig', () => api.kubeconfig(), systemClock))
    const report = (index: number) =>
      [`apps/gateway-${index}`, { acknowledgedGeneration: 1, errors: ['x'.repeat(100)] }] as const
    const reports = startPeerReports({
      client,
      namespace: 'system',
      identity: 'one',
      isLeader: () => false,
      ownReport: () => new Map(Array.from({ length: 8_000 }, (_, index) => report(index))),
      changed() {},
      clock: systemClock,
      random: Math.random,
      log,
      meter: createControllerMeter(createMetricRegistry()),
    })
    endAfter('test', async () => {
      await reports.close()
      client.close()
    })
    reports.update()
    const lease = await until('the report', () => api.get('Lease', 'system', 'tollgate-proxies.one'))
    const text = String(Object(lease.metadata).annotations['tollgate.dev/proxies'])
    expect(text.length).toBeLessThanOrEqual(200_000)
    const content: unknown = JSON.parse(text)
    expect(Object.keys(Object(content)).length).toBeGreaterThan(3_000)
  })
})
