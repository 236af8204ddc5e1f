import type { Cluster } from './environment.ts'
import { addressOf } from './install.ts'
import { namespace } from './objects.ts'
import { steadyTraffic } from './traffic.ts'

/** Rolling restart of proxies, then of the application, under load. */
export async function rollout(cluster: Cluster): Promise<string> {
  const address = await addressOf(cluster)
  const reports: string[] = []
  for (const deployment of ['web-tollgate', 'echo']) {
    const traffic = steadyTraffic(address, 'echo.example')
    await cluster.kubectl('-n', namespace, 'rollout', 'restart', `deployment/${deployment}`)
    const status = ['rollout', 'status', `deployment/${deployment}`, '--timeout=180s']
    await cluster.kubectl('-n', namespace, ...status)
    const { sent, failures, slowestMs } = await traffic.stop()
    if (failures.length > 0)
      throw new Error(`${deployment}: ${failures.length} of ${sent}: ${failures.slice(0, 5)}`)
    reports.push(`${deployment}: ${sent} requests, slowest ${slowestMs} ms`)
  }
  return reports.join(', ')
}
